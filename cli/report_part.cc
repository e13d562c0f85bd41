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

bool IsOfWindows(const std::string& section) {
  return std::find(std::begin(kOfWindows), std::end(kOfWindows), section) != std::end(kOfWindows);
}

std::string Time(int64_t ns) { return ns == 0 ? "0 s" : FormatDuration(static_cast<double>(ns)); }

// What is said where no window lies wholly between the times.
Error NoWindow(const Bounds& bounds, const analysis::RunView& view) {
  const std::string where = fmt::format("run {}", view.run.run_id);
  if (view.windows.empty())
    return Error(ExitCode::kInconclusive,
                 "this run has no course over time: it was seen from outside, or too short", where,
                 "leave out --since and --until");
  int64_t start_ns = INT64_MAX, end_ns = 0;  // of the windows that lie there in part
  for (const analysis::WindowRow& window : view.windows) {
    const int64_t window_end_ns = window.start_ns + window.duration_ns;
    if (window.start_ns >= bounds.until_ns || window_end_ns <= bounds.since_ns) continue;
    start_ns = std::min(start_ns, window.start_ns);
    end_ns = std::max(end_ns, window_end_ns);
  }
  if (end_ns == 0)
    return Error(ExitCode::kInconclusive,
                 fmt::format("nothing was recorded between these times; it lasted {}",
                             Time(view.run.duration_ns)),
                 where, "leave out --since and --until");
  constexpr int64_t kMs = 1'000'000;
  return Error(ExitCode::kInconclusive,
               "no window of its course over time lies wholly between these times", where,
               fmt::format("--since {}ms --until {}ms are the ends of what does in part",
                           start_ns / kMs, (end_ns + kMs - 1) / kMs));
}

// Which part it is, for machines.
dashboards::Section PartFacts(const PartBounds& bounds) {
  const auto time = [](int64_t ns) {
    return Quantity::Of(static_cast<double>(ns), Unit::kNanoseconds, Source::kAccount);
  };
  dashboards::Section section;
  section.key = "part";
  section.facts = {{"start_seconds", time(bounds.start_ns)}, {"end_seconds", time(bounds.end_ns)}};
  return section;
}

}  // namespace

PartBounds CutToPart(const RunPart& part, analysis::RunView* view) {
  const Bounds bounds = BoundsOf(part);
  std::vector<size_t> windows;
  for (size_t w = 0; w < view->windows.size(); ++w) {
    const analysis::WindowRow& window = view->windows[w];
    if (window.start_ns >= bounds.since_ns &&
        window.start_ns + window.duration_ns <= bounds.until_ns)
      windows.push_back(w);
  }
  if (windows.empty()) throw NoWindow(bounds, *view);
  const analysis::WindowRow& last = view->windows[windows.back()];
  const PartBounds taken{view->windows[windows.front()].start_ns, last.start_ns + last.duration_ns};
  *view = analysis::SliceOf(*view, windows);
  return taken;
}

dashboards::Report ReportOfPart(const PartBounds& bounds, const analysis::RunView& view,
                                const analysis::Statements& statements,
                                const std::vector<std::string>& sections) {
  const std::vector<std::string> known = dashboards::SectionNames();
  for (std::string name : sections) {
    std::replace(name.begin(), name.end(), ' ', '-');
    if (std::find(known.begin(), known.end(), name) != known.end() && !IsOfWindows(name))
      throw Error(ExitCode::kUsage, fmt::format("{} is of whole runs", name), "",
                  "leave out --since and --until");
  }
  dashboards::Report report = dashboards::MakeReport(view, statements);
  std::erase_if(report.sections,
                [](const dashboards::Section& section) { return !IsOfWindows(section.name); });
  const std::string words =
      fmt::format("from {} to {}", Time(bounds.start_ns), Time(bounds.end_ns));
  report.first.conditions.insert(report.first.conditions.begin(),
                                 fmt::format("This is about a part of the run: {}.", words));
  if (!sections.empty()) report = dashboards::OnlySections(report, sections);
  report.title += fmt::format(", a part of it: {}", words);
  report.sections.push_back(PartFacts(bounds));
  return report;
}

}  // namespace headrace::cli
