#include "collectors/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/file.h"
#include "probes/process.h"

namespace headrace::collectors {

RunInfo DescribeRun(int64_t pid, const std::string& name, const std::string& pipeline_path,
                    const std::string& program) {
  RunInfo info;
  info.pid = pid;
  info.started_realtime_ns = RealtimeNs();
  info.command = Printable(probes::ReadCommandLine(pid), 4096);
  if (const auto stat = probes::ReadProcessStat(pid)) info.program = Printable(stat->name);
  if (!program.empty()) info.program = program;
  info.name = name;
  if (name.empty()) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    char text[32];
    std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
    info.name = fmt::format("{}-{}", info.program, text);
  }
  if (!pipeline_path.empty()) {
    char* absolute = realpath(pipeline_path.c_str(), nullptr);
    info.pipeline_path = absolute ? absolute : pipeline_path;
    free(absolute);
    try {
      info.pipeline_text = ReadWholeFile(pipeline_path, 1 << 20);
    } catch (const Error&) {
      info.pipeline_text.clear();
    }
  }
  // The collector is started by the pipeline's own command or from the same shell and so shares its
  // affinity and cgroup.
  const CoreBudget cores = ReadCoreBudget();
  info.cores_count = cores.cores;
  info.cores_bound_by = cores.bound_by;
  const MemoryBudget memory = ReadMemoryBudget();
  info.memory_bytes = static_cast<int64_t>(memory.bytes);
  info.memory_bound_by = memory.bound_by;
  utsname system{};
  if (uname(&system) == 0) {
    info.hostname = system.nodename;
    info.kernel = fmt::format("{} {}", system.sysname, system.release);
  }
  info.cpu_model = CpuModelName();
  return info;
}

}  // namespace headrace::collectors
