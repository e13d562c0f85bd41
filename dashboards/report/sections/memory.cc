// Page faults and throttling: time and events that the kernel adds to a pipeline's own.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;

std::optional<Section> Memory(const analysis::RunView& run, const analysis::Statements&) {
  Section section{"faults_and_throttling", "", {}, {}, {}};
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  struct Faults {
    std::optional<double> minor, major, huge;
  };
  std::map<std::string, Faults> owners;
  const bool exact = run.Has("page_faults_count");
  for (const MeasurementRow& row : run.measurements) {
    if (!row.value) continue;
    if (row.metric == (exact ? "page_faults_count" : "process_page_faults_count")) {
      Faults& faults = owners[OwnerOf(row)];
      std::optional<double>& field = row.cause == "major" ? faults.major : faults.minor;
      field = field.value_or(0) + *row.value;
    } else if (row.metric == "huge_page_failures_count") {
      Faults& faults = owners[OwnerOf(row)];
      faults.huge = faults.huge.value_or(0) + *row.value;
    }
  }
  if (owners.empty()) {
    section.facts.push_back({"unavailable", WhyNot(run, {"fault"})});
  } else {
    section.title = "Page faults and throttling";
    Table table{"page_faults",
                "",
                {{"owner", "owner"},
                 {"minor_per_second", "minor/s"},
                 {"major_per_second", "major/s"},
                 {"huge_page_failures_count", "huge pages refused"}},
                {}};
    table.text_rows = 6;
    std::vector<std::pair<double, std::vector<Value>>> rows;
    for (const auto& [owner, faults] : owners) {
      const auto rate = [&](const std::optional<double>& count) {
        return count && seconds > 0 ? std::optional<double>(*count / seconds) : std::nullopt;
      };
      rows.push_back({faults.minor.value_or(0) + 1000 * faults.major.value_or(0),
                      {owner, Number(rate(faults.minor), Unit::kCount, "none was seen"),
                       Number(rate(faults.major), Unit::kCount, "none was seen"),
                       Number(faults.huge, Unit::kCount, "none was seen")}});
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [weight, row] : rows) table.rows.push_back(std::move(row));
    section.tables.push_back(std::move(table));
  }
  // The quota's own account, and what the program saw of it.
  const std::string none = WhyNot(run, {"cgroup", "throttl"});
  const bool kernel = run.Has("throttled_ns");
  const Quantity time =
      Measured(run, kernel ? "throttled_ns" : "cgroup_throttled_ns", Unit::kNanoseconds, none);
  const Quantity times =
      Measured(run, kernel ? "throttled_count" : "cgroup_throttled_count", Unit::kCount, none);
  section.facts.push_back({"throttled_seconds", time});
  section.facts.push_back({"throttled_count", times});
  if (time.available() && time.value() > 0 && run.run.duration_ns > 0) {
    if (section.title.empty()) section.title = "Page faults and throttling";
    section.sentences.push_back(
        {"throttled",
         fmt::format("{} in {} periods: the CPU quota of the control group is used up",
                     FormatDuration(time.value()),
                     times.available() ? FormatCount(times.value()) : std::string("some"))});
  }
  return section;
}

HR_SECTION("memory", 17, Memory);

}  // namespace
}  // namespace headrace::dashboards
