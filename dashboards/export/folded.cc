// Folded stacks: a line a stack, frames from the root separated by ';', a blank and the weight.
#include <fmt/format.h>

#include "base/error.h"
#include "dashboards/export/escape.h"
#include "dashboards/export/export.h"
#include "dashboards/export/stacks.h"

namespace headrace::dashboards {
namespace {

void WriteFolded(const ExportRequest& request, const ExportSink& sink) {
  bool any = false;
  for (const ExportedStack& stack : ReadStacks(request.store, request.run_id)) {
    if (stack.kind != request.kind) continue;
    std::string line;
    for (const std::string& frame : stack.frames) {
      line += fmt::format("{}{}", line.empty() ? "" : ";", FoldedFrame(frame));
    }
    sink(fmt::format("{} {}\n", line, stack.time_ns));
    any = true;
  }
  if (!any) {
    throw Error(ExitCode::kBadData,
                fmt::format("run {} has no time of kind {}, by stack or by operator",
                            request.run_id, request.kind),
                "", "measurement level 3 records stacks: 'headrace doctor' says what it needs");
  }
}

HR_EXPORT(
    "folded",
    {.ending = ".folded",
     .holds = "stacks by stage and operator, weights in nanoseconds; --kind cpu (the default), "
              "off_cpu (blocked inside operators), waiting or python",
     .opens = "flamegraph.pl, inferno, speedscope",
     .by_kind = true,
     .write = WriteFolded});

}  // namespace
}  // namespace headrace::dashboards
