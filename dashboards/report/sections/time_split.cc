// Each operator's time, split exactly: on a CPU, blocked by cause, ready without a CPU, waiting.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;
using analysis::OperatorRow;

constexpr std::array<const char*, 4> kClasses = {"storage", "network", "lock", "sleep"};

std::optional<Section> TimeSplit(const analysis::RunView& run,
                                 const analysis::Statements& statements) {
  if (run.operators.empty()) return std::nullopt;
  Section section{"time_split", "", {}, {}, {}};
  const bool split = run.Has("off_cpu_ns") || run.Has("on_cpu_ns");
  if (!split) {
    section.facts.push_back({"unavailable", WhyNot(run, {"off-CPU"})});
    return section;
  }
  section.title = "Where each operator's time goes (shares of its own time; b by cause)";
  Table table{"time_split",
              "",
              {{"operator", "operator"},
               {"stage", "stage"},
               {"on_cpu_ratio", "c"},
               {"storage_ratio", "storage"},
               {"network_ratio", "network"},
               {"lock_ratio", "lock"},
               {"sleep_ratio", "sleep"},
               {"other_ratio", "other"},
               {"runnable_ratio", "q"},
               {"wait_ratio", "wait"},
               {"source", "source"},
               {"residual_ratio", "residual"}},
              {}};
  table.text_rows = 20;
  double worst = 0;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    const OperatorRow& op = run.operators[i];
    const std::string doubt = analysis::Doubts::Of(statements.doubts.operators, i);
    if (!doubt.empty()) {
      std::vector<Value> row = {op.name, op.stage};
      for (size_t c = row.size(); c < table.columns.size(); ++c) {
        row.push_back(table.columns[c].key == "source" ? Value(op.source)
                                                       : Value(Quantity::Unavailable(doubt)));
      }
      table.rows.push_back(std::move(row));
      continue;
    }
    const auto of = [&](const MeasurementRow& row) {
      return row.operator_name == op.name && row.stage == op.stage;
    };
    const double whole = static_cast<double>(op.busy_ns + op.wait_in_ns + op.wait_out_ns);
    const auto share = [&](std::optional<double> ns) {
      return ns && whole > 0 ? std::optional<double>(*ns / whole) : std::nullopt;
    };
    const auto real = [](const analysis::Count& ns) {
      return ns ? std::optional<double>(static_cast<double>(*ns)) : std::nullopt;
    };
    const bool exact = op.source == "ebpf";
    const std::string reason =
        exact ? "no time in it" : "this operator's time was not split by eBPF";
    std::vector<Value> row = {op.name, op.stage, Ratio(share(real(op.on_cpu_ns)), reason)};
    const double blocked = SumOf(run, "off_cpu_ns", of).value_or(0);
    double named = 0;
    for (const char* cause : kClasses) {
      const double ns = SumOf(run, "off_cpu_ns", [&](const MeasurementRow& each) {
                          return of(each) && each.cause == cause;
                        }).value_or(0);
      named += ns;
      row.push_back(Ratio(exact ? share(ns) : std::nullopt, reason));
    }
    row.push_back(Ratio(exact ? share(std::max(0.0, blocked - named)) : std::nullopt, reason));
    row.push_back(Ratio(share(real(op.runnable_ns)), reason));
    row.push_back(Ratio(share(static_cast<double>(op.wait_in_ns + op.wait_out_ns)), reason));
    row.push_back(op.source);
    std::optional<double> residual;
    if (op.residual_ns && whole > 0) {  // of all its time, as every other column of the row
      residual = static_cast<double>(*op.residual_ns) / whole;
      worst = std::max(worst, std::abs(*residual));
    }
    row.push_back(Ratio(residual, "only one of the two ways to find c was in use"));
    table.rows.push_back(std::move(row));
  }
  section.facts.push_back({"worst_residual_ratio", Ratio(worst, "")});
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("time split", 12, TimeSplit);

}  // namespace
}  // namespace headrace::dashboards
