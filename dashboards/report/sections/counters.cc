// Hardware counters by operator or process: per instruction and per second, with the share of the
// time in which each counter really counted.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;

bool IsCounter(const MeasurementRow& row) {
  const std::string& m = row.metric;
  return m == "cycles_count" || m == "instructions_count" || m == "ipc_ratio" ||
         m == "branches_count" || m == "memory_read_bytes" || m == "memory_write_bytes" ||
         (m.ends_with("_misses_count") && m.find("page") == std::string::npos) ||
         m.starts_with("topdown_") || (m.starts_with("stall") && m.ends_with("_cycles_count")) ||
         row.running_ratio.has_value();
}

std::optional<Section> Counters(const analysis::RunView& run, const analysis::Statements&) {
  Section section{"counters", "", {}, {}, {}};
  std::map<std::string, std::map<std::string, std::vector<const MeasurementRow*>>> owners;
  for (const MeasurementRow& row : run.measurements) {
    if (!row.bucket && row.value && IsCounter(row))
      owners[OwnerOf(row)][row.metric].push_back(&row);
  }
  if (owners.empty()) {
    section.facts.push_back({"unavailable", WhyNot(run, {"counter", "perf", "PMU"})});
    return section;
  }
  section.title = "Hardware counters";
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  Table table{"hardware_counters",
              "",
              {{"owner", "owner"},
               {"ipc_ratio", "IPC"},
               {"cycles_per_second", "cycles/s"},
               {"instructions_per_second", "instructions/s"},
               {"llc_misses_per_kiloinstruction", "LLC misses/1000"},
               {"branch_misses_per_kiloinstruction", "branch misses/1000"},
               {"running_ratio", "counted"}},
              {}};
  table.text_rows = 10;
  Table detail{"counter_values",
               "",
               {{"metric", "metric"},
                {"owner", "owner"},
                {"subject", "of"},
                {"value", "value"},
                {"unit", "unit"},
                {"running_ratio", "counted"},
                {"source", "source"}},
               {},
               true};
  std::vector<std::pair<double, std::vector<Value>>> rows;
  for (const auto& [owner, metrics] : owners) {
    std::optional<double> least;
    const auto sum = [&](const std::string& metric) -> std::optional<double> {
      const auto it = metrics.find(metric);
      if (it == metrics.end()) return std::nullopt;
      double total = 0;
      for (const MeasurementRow* row : it->second) {
        total += *row->value;
        if (row->running_ratio) least = std::min(least.value_or(1), *row->running_ratio);
      }
      return total;
    };
    const auto cycles = sum("cycles_count"), instructions = sum("instructions_count");
    const auto llc = sum("llc_misses_count"), branches = sum("branch_misses_count");
    for (const auto& [metric, list] : metrics) {
      for (const MeasurementRow* row : list) {
        detail.rows.push_back({metric, owner, row->subject, Number(row->value, Unit::kCount, ""),
                               row->unit, Ratio(row->running_ratio, "counted all the time"),
                               row->source});
      }
    }
    const auto part = [&](const std::optional<double>& a, const std::optional<double>& b,
                          double scale) {
      return a && b && *b > 0 ? std::optional<double>(scale * *a / *b) : std::nullopt;
    };
    const auto rate = [&](const std::optional<double>& a) {
      return a && seconds > 0 ? std::optional<double>(*a / seconds) : std::nullopt;
    };
    if (!cycles && !instructions && !llc && !branches) continue;
    const std::string none = "this counter was not to be had";
    rows.push_back(
        {cycles.value_or(0),
         {owner, Number(part(instructions, cycles, 1), Unit::kCount, none),
          Number(rate(cycles), Unit::kCount, none), Number(rate(instructions), Unit::kCount, none),
          Number(part(llc, instructions, 1000), Unit::kCount, none),
          Number(part(branches, instructions, 1000), Unit::kCount, none),
          Ratio(least.value_or(1), "")}});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [weight, row] : rows) table.rows.push_back(std::move(row));
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
  section.tables.push_back(std::move(detail));
  const auto memory = [&](const char* metric) {
    const auto bytes = SumOf(run, metric);
    return bytes && seconds > 0 ? std::optional<double>(*bytes / seconds) : std::nullopt;
  };
  const auto read = memory("memory_read_bytes"), written = memory("memory_write_bytes");
  if (read || written) {
    std::string text;
    if (read) text += FormatBytesRate(*read) + " read";
    if (written) text += (text.empty() ? "" : ", ") + FormatBytesRate(*written) + " written";
    section.sentences.push_back({"memory", text + ", the whole machine"});
  }
  return section;
}

HR_SECTION("counters", 18, Counters);

}  // namespace
}  // namespace headrace::dashboards
