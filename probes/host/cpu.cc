// CPU time of the machine by state, and steal: time in which a hypervisor ran somebody else. Steal
// is the one figure that must stand next to any claim about CPU in a virtual machine.
#include <unistd.h>

#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

// Fields of the line "cpu" of /proc/stat, in its order (proc(5)); guest time is in user and nice.
constexpr const char* kStates[] = {"user", "nice", "system", "idle", "iowait", "irq", "softirq"};
constexpr size_t kSteal = 8;

class Cpu : public HostProbe {
  void Sample(const Host& host, const Target&, Reading& out) override {
    const std::string path = "/proc/stat";
    const std::string fix = "run where the host's /proc is mounted";
    const auto text = host.Read(path);
    if (!text) {
      out.MissingFile(path, fix);
      return;
    }
    static const double tick_ns = 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));
    std::string_view rest = *text;
    for (std::string_view line; NextLine(&rest, &line);) {
      const auto fields = Fields(line, 16);
      if (fields.empty() || fields[0] != "cpu") continue;
      for (size_t i = 1; i < fields.size() && i <= std::size(kStates); i++) {
        if (const auto ticks = Count(fields[i])) {
          out.Counter("host_cpu_ns", Cause(kStates[i - 1]), static_cast<double>(*ticks) * tick_ns);
        }
      }
      const auto steal = fields.size() > kSteal ? Count(fields[kSteal]) : std::nullopt;
      if (steal) out.Counter("steal_ns", {}, static_cast<double>(*steal) * tick_ns);
      break;
    }
    if (out.empty()) out.Missing(path + ": content not understood", fix);
    if (const auto switches = KeyedCount(*text, "ctxt")) {
      out.Counter("host_switches_count", {}, static_cast<double>(*switches));
    }
    if (const auto forks = KeyedCount(*text, "processes")) {
      out.Counter("host_forks_count", {}, static_cast<double>(*forks));
    }
    if (const auto running = KeyedCount(*text, "procs_running")) {
      out.Gauge("host_tasks_count", Cause("runnable"), static_cast<double>(*running));
    }
    if (const auto blocked = KeyedCount(*text, "procs_blocked")) {
      out.Gauge("host_tasks_count", Cause("blocked on io"), static_cast<double>(*blocked));
    }
  }
};

HR_PROBE("cpu", {.summary = "CPU time of the machine by state, and steal",
                 .affects = "steal and other programs' CPU use go unnoticed",
                 .level = 1,
                 .period_ns = kSecondNs,
                 .check = CheckHostProbe<Cpu>,
                 .make = MakeProbe<Cpu>});

}  // namespace
}  // namespace headrace::probes
