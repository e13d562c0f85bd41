#include "cli/report_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/units.h"
#include "dashboards/report/make_report.h"

namespace headrace::cli {
namespace {

// What is made of the windows alone. Stacks, single reads, processes and the machine's counters are
// sums over the whole run.
constexpr const char* kOfWindows[] = {"verdict", "ladder", "operators", "queues", "time-split"};

bool IsOfWindows(const std::string& section) {
  return std::find(std::begin(kOfWindows), std::end(kOfWindows), section) != std::end(kOfWindows);
}

std::string Time(int64_t ns) { return ns == 0 ? "0 s" : FormatDuration(static_cast<double>(ns)); }

// Which part it is, for machines.
dashboards::Section PartFacts(const analysis::RunTimes& times) {
  const auto time = [](int64_t ns) {
    return Quantity::Of(static_cast<double>(ns), Unit::kNanoseconds, Source::kAccount);
  };
  dashboards::Section section;
  section.key = "part";
  section.facts = {{"start_seconds", time(times.start_ns)}, {"end_seconds", time(times.end_ns)}};
  return section;
}

}  // namespace

analysis::RunTimes TimesOf(const RunPart& part) {
  analysis::RunTimes times;
  if (!part.since.empty()) times.start_ns = ParseDuration(part.since, "--since");
  if (!part.until.empty()) times.end_ns = ParseDuration(part.until, "--until");
  if (times.start_ns >= times.end_ns)
    throw Error(ExitCode::kUsage, "is not after --since", "--until",
                "times are since the run began: --since 10s --until 20s");
  return times;
}

dashboards::Report ReportOfPart(const analysis::RunTimes& times, const analysis::RunView& view,
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
  const std::string words = fmt::format("from {} to {}", Time(times.start_ns), Time(times.end_ns));
  report.first.conditions.insert(report.first.conditions.begin(),
                                 fmt::format("This is about a part of the run: {}.", words));
  if (!sections.empty()) report = dashboards::OnlySections(report, sections);
  report.title += fmt::format(", a part of it: {}", words);
  report.sections.push_back(PartFacts(times));
  return report;
}

}  // namespace headrace::cli
