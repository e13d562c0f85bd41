// speedscope's own file format (file-format-schema.json of its package): one sampled profile a
// kind.
#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "base/error.h"
#include "dashboards/export/escape.h"
#include "dashboards/export/export.h"
#include "dashboards/export/stacks.h"
#include "dashboards/sql_values.h"
#include "dashboards/stack_kinds.h"

namespace headrace::dashboards {
namespace {

struct SampledProfile {
  std::string samples, weights;  // JSON, without their brackets
  int64_t total_ns = 0;
};

void WriteSpeedscope(const ExportRequest& request, const ExportSink& sink) {
  const ExportedRun run = ReadExportedRun(request.store, request.run_id);
  std::unordered_map<std::string, size_t> frames;
  std::string frame_list;
  std::map<std::string, SampledProfile> profiles;  // by kind
  for (const ExportedStack& stack : ReadStacks(request.store, request.run_id)) {
    std::string sample;
    for (const std::string& frame : stack.frames) {
      const auto [it, added] = frames.try_emplace(frame, frames.size());
      if (added) {
        frame_list +=
            fmt::format("{}{{\"name\":{}}}", it->second == 0 ? "" : ",\n", JsonString(frame));
      }
      sample += fmt::format("{}{}", sample.empty() ? "" : ",", it->second);
    }
    SampledProfile& profile = profiles[stack.kind];
    const char* comma = profile.samples.empty() ? "" : ",\n";
    profile.samples += fmt::format("{}[{}]", comma, sample);
    profile.weights += fmt::format("{}{}", *comma == '\0' ? "" : ",", stack.time_ns);
    profile.total_ns = EndOfWindow(profile.total_ns, stack.time_ns);
  }
  if (frames.empty()) {
    throw Error(ExitCode::kBadData,
                fmt::format("run {} has no time by stack or by operator", request.run_id), "",
                "measurement level 3 records stacks: 'headrace doctor' says what it needs");
  }
  sink(
      fmt::format("{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
                  "\"exporter\":\"headrace {}\",\"name\":{},\"activeProfileIndex\":0,"
                  "\"shared\":{{\"frames\":[",
                  HEADRACE_VERSION, JsonString(fmt::format("run {} {}", run.run_id, run.name))));
  sink(frame_list);
  sink("]},\"profiles\":[");
  bool first = true;
  for (const StackKind& kind : kStackKinds) {
    const SampledProfile& profile = profiles[kind.key];
    if (profile.samples.empty()) continue;
    sink(
        fmt::format("{}{{\"type\":\"sampled\",\"name\":\"{}\",\"unit\":\"nanoseconds\","
                    "\"startValue\":0,\"endValue\":{},\"samples\":[",
                    first ? "" : ",", kind.tool, profile.total_ns));
    sink(profile.samples);
    sink("],\"weights\":[");
    sink(profile.weights);
    sink("]}");
    first = false;
  }
  sink("]}\n");
}

HR_EXPORT(
    "speedscope",
    {.ending = ".speedscope.json",
     .holds = "stacks by stage and operator: a profile on a CPU, one blocked, one waiting, and one "
              "of Python functions",
     .opens = "https://www.speedscope.app, or npx speedscope FILE",
     .write = WriteSpeedscope});

}  // namespace
}  // namespace headrace::dashboards
