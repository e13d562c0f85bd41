// Hardware counters by operator or process: per instruction, per row and per second, with the share
// of the time in which each counter really counted.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/table_rows.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;

// A counter that counted less of the time says too little to be shown as a figure.
constexpr double kLeastRunning = 0.1;
constexpr char kTooShort[] = "counted in less than a tenth of the time";
constexpr char kNotAvailable[] = "this counter was not available";

bool IsCounter(const MeasurementRow& row) {
  const std::string& m = row.metric;
  return m == "cycles_count" || m == "instructions_count" || m == "ipc_ratio" ||
         m == "branches_count" || m == "memory_read_bytes" || m == "memory_write_bytes" ||
         (m.ends_with("_misses_count") && m.find("page") == std::string::npos) ||
         m.starts_with("topdown_") || m.starts_with("stalls_") || row.running_ratio.has_value();
}

// Rows that each operator gave, by the name its counters have.
std::map<std::string, double> RowsByOwner(const analysis::RunView& run,
                                          const analysis::Doubts& doubts) {
  std::map<std::string, double> rows;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    if (!analysis::Doubts::Of(doubts.operators, i).empty()) continue;
    const analysis::OperatorRow& op = run.operators[i];
    MeasurementRow owner;
    owner.operator_name = op.name;
    owner.stage = op.stage;
    rows[OwnerOf(owner)] += static_cast<double>(op.rows_count);
  }
  return rows;
}

using MeasurementsByMetric = std::map<std::string, std::vector<const MeasurementRow*>>;

// Counters of one owner. What counted too little of the time is left out.
struct OwnerCounters {
  std::optional<double> cycles, instructions, llc_misses, branch_misses;
  std::optional<double> least_running;  // the smallest share of the time that one counted
  bool too_short = false;               // one counted too little of the time

  bool empty() const { return !cycles && !instructions && !llc_misses && !branch_misses; }
  std::string WhyNone() const { return too_short ? kTooShort : kNotAvailable; }
};

OwnerCounters CountersOf(const MeasurementsByMetric& metrics) {
  OwnerCounters counters;
  const auto sum = [&](const std::string& metric) -> std::optional<double> {
    const auto it = metrics.find(metric);
    if (it == metrics.end()) return std::nullopt;
    std::optional<double> total;
    for (const MeasurementRow* row : it->second) {
      if (row->running_ratio && *row->running_ratio < kLeastRunning) {
        counters.too_short = true;
        continue;
      }
      total = total.value_or(0) + *row->value;
      if (row->running_ratio) {
        counters.least_running = std::min(counters.least_running.value_or(1), *row->running_ratio);
      }
    }
    return total;
  };
  counters.cycles = sum("cycles_count");
  counters.instructions = sum("instructions_count");
  counters.llc_misses = sum("llc_misses_count");
  counters.branch_misses = sum("branch_misses_count");
  return counters;
}

std::optional<double> Scaled(const std::optional<double>& a, const std::optional<double>& b,
                             double scale) {
  return a && b && *b > 0 ? std::optional<double>(scale * *a / *b) : std::nullopt;
}

Table EmptyCounterTable(bool with_rows) {
  Table table{"hardware_counters",
              "",
              {{"owner", "owner"},
               {"ipc_ratio", "IPC"},
               {"cycles_per_second", "cycles/s"},
               {"instructions_per_second", "instructions/s"},
               {"llc_misses_per_kiloinstruction", "LLC misses/1000"},
               {"branch_misses_per_kiloinstruction", "branch misses/1000"}},
              {}};
  if (with_rows) {
    table.columns.push_back({"cycles_per_row", "cycles/row"});
    table.columns.push_back({"llc_misses_per_row", "LLC misses/row"});
  }
  table.columns.push_back({"running_ratio", "counted"});
  table.text_rows = 10;
  return table;
}

// `owner_rows`: 0 if they are not known. `with_rows`: the table has figures per row.
std::vector<Value> CounterRow(const analysis::RunView& run, const std::string& owner,
                              const OwnerCounters& counters, bool with_rows, double owner_rows) {
  const auto rate = [&](const std::optional<double>& count) {
    return Number(PerSecond(run, count), Unit::kCount, counters.WhyNone());
  };
  const auto per_row = [&](const std::optional<double>& count) {
    return Number(Scaled(count, owner_rows, 1), Unit::kCount,
                  owner_rows > 0 ? counters.WhyNone() : "rows are known of operators only");
  };
  const auto per = [&](const std::optional<double>& a, const std::optional<double>& b,
                       double scale) {
    return Number(Scaled(a, b, scale), Unit::kCount, counters.WhyNone());
  };
  std::vector<Value> row = {owner,
                            per(counters.instructions, counters.cycles, 1),
                            rate(counters.cycles),
                            rate(counters.instructions),
                            per(counters.llc_misses, counters.instructions, 1000),
                            per(counters.branch_misses, counters.instructions, 1000)};
  if (with_rows) {
    row.push_back(per_row(counters.cycles));
    row.push_back(per_row(counters.llc_misses));
  }
  row.push_back(Ratio(counters.least_running.value_or(1), ""));
  return row;
}

// Where the slots of the pipeline went; absent if nothing of it was counted.
std::optional<std::vector<Value>> TopdownRow(const std::string& owner,
                                             const MeasurementsByMetric& metrics) {
  std::vector<Value> row = {owner};
  bool any = false;
  for (const char* metric : {"topdown_retiring_ratio", "topdown_bad_speculation_ratio",
                             "topdown_frontend_ratio", "topdown_backend_ratio"}) {
    const auto found = metrics.find(metric);
    const auto share = found == metrics.end() ? std::nullopt : found->second.front()->value;
    any = any || share.has_value();
    row.push_back(Ratio(share, kNotAvailable));
  }
  if (!any) return std::nullopt;
  return row;
}

void AddValues(const std::string& owner, const MeasurementsByMetric& metrics, Table* detail) {
  for (const auto& [metric, list] : metrics) {
    for (const MeasurementRow* row : list) {
      detail->rows.push_back({metric, owner, row->subject, Number(row->value, Unit::kCount, ""),
                              row->unit, Ratio(row->running_ratio, "counted all the time"),
                              row->source});
    }
  }
}

// What the memory controllers moved.
void SayMemoryTraffic(const analysis::RunView& run, Section* section) {
  const auto read = PerSecond(run, SumOf(run, "memory_read_bytes"));
  const auto written = PerSecond(run, SumOf(run, "memory_write_bytes"));
  if (!read && !written) return;
  std::string text;
  if (read) text += FormatBytesRate(*read) + " read";
  if (written) text += (text.empty() ? "" : ", ") + FormatBytesRate(*written) + " written";
  section->sentences.push_back({"memory", text + ", the whole machine"});
}

std::optional<Section> Counters(const analysis::RunView& run,
                                const analysis::Statements& statements) {
  Section section{"counters", "", {}, {}, {}};
  std::map<std::string, MeasurementsByMetric> owners;
  for (const MeasurementRow& row : run.measurements) {
    if (!row.bucket && row.value && IsCounter(row))
      owners[OwnerOf(row)][row.metric].push_back(&row);
  }
  if (owners.empty()) {
    section.facts.push_back({"unavailable", WhyNot(run, {"hardware counters"})});
    return section;
  }
  section.title = "Hardware counters";
  const std::map<std::string, double> rows_by_owner = RowsByOwner(run, statements.doubts);
  const bool with_rows = !rows_by_owner.empty();
  Table table = EmptyCounterTable(with_rows);
  Table topdown{"topdown",
                "",
                {{"owner", "owner"},
                 {"retiring_ratio", "useful"},
                 {"bad_speculation_ratio", "thrown away"},
                 {"frontend_ratio", "no instructions"},
                 {"backend_ratio", "memory, units"}},
                {}};
  topdown.text_rows = 10;
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
  std::vector<WeightedRow> rows, slots;  // weight: cycles
  for (const auto& [owner, metrics] : owners) {
    const OwnerCounters counters = CountersOf(metrics);
    const double cycles = counters.cycles.value_or(0);
    AddValues(owner, metrics, &detail);
    if (auto row = TopdownRow(owner, metrics)) slots.emplace_back(cycles, std::move(*row));
    if (counters.empty()) continue;
    const auto owned = rows_by_owner.find(owner);
    rows.emplace_back(cycles, CounterRow(run, owner, counters, with_rows,
                                         owned == rows_by_owner.end() ? 0 : owned->second));
  }
  AddHeaviestFirst(std::move(rows), &table);
  AddHeaviestFirst(std::move(slots), &topdown);
  for (Table* filled : {&table, &topdown}) {
    if (!filled->rows.empty()) section.tables.push_back(std::move(*filled));
  }
  section.tables.push_back(std::move(detail));
  SayMemoryTraffic(run, &section);
  return section;
}

HR_SECTION("counters", 18, Counters);

}  // namespace
}  // namespace headrace::dashboards
