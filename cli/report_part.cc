#include "cli/report_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "analysis/run/run_slice.h"
#include "base/error.h"
#include "base/units.h"
#include "dashboards/report/make_report.h"

namespace headrace::cli {
namespace {

// What is made of the windows alone. Stacks, single reads, processes and the machine's counters are
// sums over the whole run.
constexpr const char* kOfWindows[] = {"verdict", "ladder", "operators", "queues", "time-split"};

struct Bounds {
  int64_t since_ns = 0, until_ns = INT64_MAX;
};

Bounds BoundsOf(const RunPart& part) {
  Bounds bounds;
  if (!part.since.empty()) bounds.since_ns = ParseDuration(part.since, "--since");
  if (!part.until.empty()) bounds.until_ns = ParseDuration(part.until, "--until");
  if (bounds.since_ns >= bounds.until_ns)
    throw Error(ExitCode::kUsage, "is not after --since", "--until",
                "times are since the run began: --since 10s --until 20s");
  return bounds;
}

}  // namespace

void CutToPart(const RunPart& part, analysis::RunView* view) {
  const Bounds bounds = BoundsOf(part);
  std::vector<size_t> windows;
  for (size_t w = 0; w < view->windows.size(); ++w) {
    const analysis::WindowRow& window = view->windows[w];
    if (window.start_ns >= bounds.since_ns &&
        window.start_ns + window.duration_ns <= bounds.until_ns)
      windows.push_back(w);
  }
  if (windows.empty())
    throw Error(ExitCode::kInconclusive,
                view->windows.empty()
                    ? "this run has no course over time: it was seen from outside, or too short"
                    : fmt::format("nothing was recorded between these times; it lasted {}",
                                  FormatDuration(static_cast<double>(view->run.duration_ns))),
                fmt::format("run {}", view->run.run_id), "leave out --since and --until");
  *view = analysis::SliceOf(*view, windows);
}

dashboards::Report ReportOfPart(const RunPart& part, const analysis::RunView& view,
                                const analysis::Statements& statements) {
  dashboards::Report report = dashboards::MakeReport(view, statements);
  std::erase_if(report.sections, [](const dashboards::Section& section) {
    return std::find(std::begin(kOfWindows), std::end(kOfWindows), section.name) ==
           std::end(kOfWindows);
  });
  report.first.conditions.insert(
      report.first.conditions.begin(),
      fmt::format("This is about a part of the run: from {} to {}.",
                  part.since.empty() ? "its start" : Printable(part.since, 20),
                  part.until.empty() ? "its end" : Printable(part.until, 20)));
  return report;
}

}  // namespace headrace::cli
