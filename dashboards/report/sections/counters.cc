// Hardware counters by operator or process: per instruction, per row and per second, with the share
// of the time in which each counter really counted.
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

// A counter that counted less of the time says too little to be shown as a figure.
constexpr double kLeastRunning = 0.1;
constexpr char kTooShort[] = "counted in less than a tenth of the time";

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

std::optional<Section> Counters(const analysis::RunView& run,
                                const analysis::Statements& statements) {
  Section section{"counters", "", {}, {}, {}};
  std::map<std::string, std::map<std::string, std::vector<const MeasurementRow*>>> owners;
  for (const MeasurementRow& row : run.measurements) {
    if (!row.bucket && row.value && IsCounter(row))
      owners[OwnerOf(row)][row.metric].push_back(&row);
  }
  if (owners.empty()) {
    section.facts.push_back({"unavailable", WhyNot(run, {"hardware counters"})});
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
  const std::map<std::string, double> rows_by_owner = RowsByOwner(run, statements.doubts);
  if (!rows_by_owner.empty()) {  // before "counted"
    table.columns.insert(table.columns.end() - 1, {"cycles_per_row", "cycles/row"});
    table.columns.insert(table.columns.end() - 1, {"llc_misses_per_row", "LLC misses/row"});
  }
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
  Table topdown{"topdown",
                "",
                {{"owner", "owner"},
                 {"retiring_ratio", "useful"},
                 {"bad_speculation_ratio", "thrown away"},
                 {"frontend_ratio", "no instructions"},
                 {"backend_ratio", "memory, units"}},
                {}};
  topdown.text_rows = 10;
  std::vector<std::pair<double, std::vector<Value>>> rows, slots;
  for (const auto& [owner, metrics_of_owner] : owners) {
    const auto& metrics = metrics_of_owner;
    std::optional<double> least;
    bool too_short = false;
    const auto sum = [&](const std::string& metric) -> std::optional<double> {
      const auto it = metrics.find(metric);
      if (it == metrics.end()) return std::nullopt;
      std::optional<double> total;
      for (const MeasurementRow* row : it->second) {
        if (row->running_ratio && *row->running_ratio < kLeastRunning) {
          too_short = true;
          continue;
        }
        total = total.value_or(0) + *row->value;
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
    const auto mean = [&](const std::string& metric) -> std::optional<double> {
      const auto it = metrics.find(metric);
      return it == metrics.end() ? std::nullopt : it->second.front()->value;
    };
    const auto retiring = mean("topdown_retiring_ratio"),
               thrown = mean("topdown_bad_speculation_ratio");
    const auto frontend = mean("topdown_frontend_ratio"), backend = mean("topdown_backend_ratio");
    if (retiring || thrown || frontend || backend) {
      const std::string no_slots = "this counter was not available";
      slots.push_back({cycles.value_or(0),
                       {owner, Ratio(retiring, no_slots), Ratio(thrown, no_slots),
                        Ratio(frontend, no_slots), Ratio(backend, no_slots)}});
    }
    if (!cycles && !instructions && !llc && !branches) continue;
    const std::string none = too_short ? kTooShort : "this counter was not available";
    const auto owned_rows = rows_by_owner.find(owner);
    const double owner_rows = owned_rows == rows_by_owner.end() ? 0 : owned_rows->second;
    const auto per_row = [&](const std::optional<double>& count) {
      return owner_rows > 0 && count ? std::optional<double>(*count / owner_rows) : std::nullopt;
    };
    const std::string no_rows = owner_rows > 0 ? none : "rows are known of operators only";
    std::vector<Value> row = {owner,
                              Number(part(instructions, cycles, 1), Unit::kCount, none),
                              Number(rate(cycles), Unit::kCount, none),
                              Number(rate(instructions), Unit::kCount, none),
                              Number(part(llc, instructions, 1000), Unit::kCount, none),
                              Number(part(branches, instructions, 1000), Unit::kCount, none)};
    if (!rows_by_owner.empty()) {
      row.push_back(Number(per_row(cycles), Unit::kCount, no_rows));
      row.push_back(Number(per_row(llc), Unit::kCount, no_rows));
    }
    row.push_back(Ratio(least.value_or(1), ""));
    rows.emplace_back(cycles.value_or(0), std::move(row));
  }

  const auto add = [&](auto* sorted, Table* to) {
    std::stable_sort(sorted->begin(), sorted->end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [weight, row] : *sorted) to->rows.push_back(std::move(row));
    if (!to->rows.empty()) section.tables.push_back(std::move(*to));
  };
  add(&rows, &table);
  add(&slots, &topdown);
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
