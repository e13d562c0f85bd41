// Page faults and throttling: time and events that the kernel adds to a pipeline's own.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/table_rows.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;

constexpr char kFaultsTitle[] = "Page faults and throttling";

struct Faults {
  std::optional<double> minor, major, huge_refused;
};

// By operator where the kernel's events were counted, else by process.
std::map<std::string, Faults> FaultsByOwner(const analysis::RunView& run) {
  const char* const metric =
      run.Has("page_faults_count") ? "page_faults_count" : "process_page_faults_count";
  std::map<std::string, Faults> owners;
  for (const MeasurementRow& row : run.measurements) {
    if (!row.value) continue;
    const bool fault = row.metric == metric;
    if (!fault && row.metric != "huge_page_failures_count") continue;
    Faults& faults = owners[OwnerOf(row)];
    std::optional<double>& field = !fault                 ? faults.huge_refused
                                   : row.cause == "major" ? faults.major
                                                          : faults.minor;
    field = field.value_or(0) + *row.value;
  }
  return owners;
}

Table FaultTable(const analysis::RunView& run, const std::map<std::string, Faults>& owners) {
  Table table{"page_faults",
              "",
              {{"owner", "owner"},
               {"minor_per_second", "minor/s"},
               {"major_per_second", "major/s"},
               {"huge_page_failures_count", "huge pages refused"}},
              {}};
  table.text_rows = 6;
  constexpr double kMajorWeight = 1000;  // one that reads a device, in those that do not
  std::vector<WeightedRow> rows;
  for (const auto& [owner, faults] : owners) {
    rows.push_back({faults.minor.value_or(0) + kMajorWeight * faults.major.value_or(0),
                    {owner, Number(PerSecond(run, faults.minor), Unit::kCount, "none was seen"),
                     Number(PerSecond(run, faults.major), Unit::kCount, "none was seen"),
                     Number(faults.huge_refused, Unit::kCount, "none was seen")}});
  }
  AddHeaviestFirst(std::move(rows), &table);
  return table;
}

// The quota's own account, and what the program saw of it.
void AddThrottling(const analysis::RunView& run, Section* section) {
  const std::string none = WhyNot(run, {"cgroup", "throttl"});
  const bool kernel = run.Has("throttled_ns");
  const Quantity time =
      Measured(run, kernel ? "throttled_ns" : "cgroup_throttled_ns", Unit::kNanoseconds, none);
  const Quantity times =
      Measured(run, kernel ? "throttled_count" : "cgroup_throttled_count", Unit::kCount, none);
  section->facts.push_back({"throttled_seconds", time});
  section->facts.push_back({"throttled_count", times});
  if (!time.available() || time.value() <= 0 || run.run.duration_ns <= 0) return;
  section->title = kFaultsTitle;
  section->sentences.push_back(
      {"throttled",
       fmt::format("{} in {} periods: the CPU quota of the control group is used up",
                   FormatDuration(time.value()),
                   times.available() ? FormatCount(times.value()) : std::string("some"))});
}

std::optional<Section> Memory(const analysis::RunView& run, const analysis::Statements&) {
  Section section{"faults_and_throttling", "", {}, {}, {}};
  const std::map<std::string, Faults> owners = FaultsByOwner(run);
  if (owners.empty()) {
    section.facts.push_back({"unavailable", WhyNot(run, {"fault"})});
  } else {
    section.title = kFaultsTitle;
    section.tables.push_back(FaultTable(run, owners));
  }
  AddThrottling(run, &section);
  return section;
}

HR_SECTION("memory", 17, Memory);

}  // namespace
}  // namespace headrace::dashboards
