// Each operator's time, split exactly: on a CPU, blocked by cause, ready without a CPU, waiting.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/table_rows.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;
using analysis::OperatorRow;

constexpr std::array<const char*, 4> kClasses = {"storage", "network", "lock", "sleep"};

double WholeNs(const OperatorRow& op) {
  return static_cast<double>(op.busy_ns + op.wait_in_ns + op.wait_out_ns);
}

constexpr const char* kOneWay = "only one of the two ways to find c was in use";

// Of all its time, as every other column of the row.
std::optional<double> ResidualRatio(const OperatorRow& op) {
  if (!op.residual_ns || WholeNs(op) <= 0) return std::nullopt;
  return static_cast<double>(*op.residual_ns) / WholeNs(op);
}

std::vector<Value> SplitRow(const analysis::RunView& run, const OperatorRow& op) {
  const auto of = [&](const MeasurementRow& row) {
    return row.operator_name == op.name && row.stage == op.stage;
  };
  const double whole = WholeNs(op);
  const bool exact = op.source == "ebpf";
  const std::string reason = exact ? "no time in it" : "this operator's time was not split by eBPF";
  const auto share = [&](std::optional<double> ns) {
    return Ratio(ns && whole > 0 ? std::optional<double>(*ns / whole) : std::nullopt, reason);
  };
  const auto exact_share = [&](double ns) {
    return share(exact ? std::optional<double>(ns) : std::nullopt);
  };
  const auto real = [](const analysis::Count& ns) {
    return ns ? std::optional<double>(static_cast<double>(*ns)) : std::nullopt;
  };
  std::vector<Value> row = {op.name, op.stage, share(real(op.on_cpu_ns))};
  const double blocked = SumOf(run, "off_cpu_ns", of).value_or(0);
  double named = 0;
  for (const char* cause : kClasses) {
    const double ns = SumOf(run, "off_cpu_ns", [&](const MeasurementRow& each) {
                        return of(each) && each.cause == cause;
                      }).value_or(0);
    named += ns;
    row.push_back(exact_share(ns));
  }
  row.push_back(exact_share(std::max(0.0, blocked - named)));
  row.push_back(share(real(op.runnable_ns)));
  row.push_back(share(static_cast<double>(op.wait_in_ns + op.wait_out_ns)));
  row.push_back(op.source);
  row.push_back(Ratio(ResidualRatio(op), kOneWay));
  return row;
}

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
  std::optional<double> worst;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    const OperatorRow& op = run.operators[i];
    const std::string doubt = analysis::Doubts::Of(statements.doubts.operators, i);
    if (!doubt.empty()) {
      table.rows.push_back(DoubtedRow(
          table, {{"operator", op.name}, {"stage", op.stage}, {"source", op.source}}, doubt));
      continue;
    }
    if (const auto residual = ResidualRatio(op)) {
      worst = std::max(worst.value_or(0), std::abs(*residual));
    }
    table.rows.push_back(SplitRow(run, op));
  }
  section.facts.push_back({"worst_residual_ratio", Ratio(worst, kOneWay)});
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("time split", 12, TimeSplit);

}  // namespace
}  // namespace headrace::dashboards
