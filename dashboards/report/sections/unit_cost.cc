// What a million rows cost: CPU, machine time, energy, the consumer's wait, and money where the
// user said a price. And whose fault the wait is: storage, the rest of the pipeline, or nobody.
#include <fmt/format.h>

#include "analysis/advice/recommendations.h"
#include "analysis/run/operator_class.h"
#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;
using analysis::RunView;

constexpr double kMillion = 1e6;

// Joules of the processor packages, of the whole machine.
std::optional<double> PackageJoules(const RunView& run) {
  return SumOf(run, "energy_joules", [](const MeasurementRow& row) {
    return !row.process_id && row.subject.find("package") != std::string::npos;
  });
}

std::optional<Section> UnitCost(const RunView& run, const analysis::Statements& statements) {
  if (run.steps.rows_count <= 0 || !statements.doubts.steps.empty()) return std::nullopt;
  Section section{"unit_cost", "Cost of a million rows", {}, {}, {}};
  const double millions = static_cast<double>(run.steps.rows_count) / kMillion;
  const double wall_s = static_cast<double>(run.run.duration_ns) * 1e-9;
  Table table{"per_million_rows",
              "",
              {{"what", "what"},
               {"amount", "a million rows"},
               {"unit", "unit"},
               {"assumption", "how it was measured"}},
              {}};
  const auto add = [&](const char* what, std::optional<double> amount, const char* unit,
                       Source source, const std::string& told, const std::string& why_not) {
    table.rows.push_back({std::string(what),
                          amount ? Quantity::Of(*amount / millions, Unit::kCount, source)
                                 : Quantity::Unavailable(why_not, Unit::kCount),
                          std::string(unit), amount ? told : std::string()});
  };
  const analysis::HostRow* process = run.FindHost("process_cpu_ns");
  std::optional<double> cpu_s;
  if (process != nullptr && process->last_value) cpu_s = *process->last_value * 1e-9;
  add("CPU of pipeline and trainer", cpu_s, "core s", Source::kCounter,
      "the processes' CPU clocks, whole run", "the process's CPU time was not recorded");
  std::optional<double> reserved_s;
  std::optional<double> used;
  if (cpu_s && wall_s > 0) used = *cpu_s / wall_s;
  if (const auto cores = analysis::CoreBudgetOf(run, used).cores) reserved_s = *cores * wall_s;
  add("cores kept for it", reserved_s, "core s", Source::kEstimate,
      "all cores it may use, as long as it ran", "the core budget was not recorded");
  std::optional<double> stalled_s;
  if (run.steps.wait_ns + run.steps.compute_ns > 0) {
    stalled_s = static_cast<double>(run.steps.wait_ns) * 1e-9;
  }
  add("wait of the trainer", stalled_s, "s", Source::kAccount, "step records",
      "no step was recorded");
  const auto joules = PackageJoules(run);
  add("energy, processors", joules, "J", Source::kCounter, "RAPL, all that ran on the machine",
      WhyNot(run, {"energy"}));
  add("energy, accelerators", SumOf(run, "gpu_energy_joules"), "J", Source::kCounter,
      "driver, all that ran on them", "no accelerator reports its energy");
  std::optional<double> money;
  if (run.core_hour_price && reserved_s) money = *reserved_s / 3600 * *run.core_hour_price;
  add("price of the cores", money, "money", Source::kEstimate,
      run.core_hour_price
          ? fmt::format("{:g} an hour for each core kept, nothing else", *run.core_hour_price)
          : "",
      run.core_hour_price ? "the core budget was not recorded"
                          : "no price was given: --core-hour-price P");
  section.tables.push_back(std::move(table));
  return section;
}

std::optional<Section> StallSplit(const RunView& run, const analysis::Statements& statements) {
  if (!statements.model || !statements.bottleneck) return std::nullopt;
  const analysis::PipelineModel& model = *statements.model;
  Section section{"stall_split", "", {}, {}, {}};
  const double consumer_s = model.demands().consumer_s, rate = model.demands().rate;
  if (consumer_s * rate < 0.001) {
    section.facts.push_back(
        {"unavailable", "the trainer computes nothing: all of its time is a wait for data"});
    return section;
  }
  const analysis::Evidence evidence(run, statements);
  analysis::Variant no_storage = evidence.Now();
  for (size_t i = 0; i < model.operators().size(); ++i) {
    const analysis::OperatorModel& op = model.operators()[i];
    if (analysis::ClassOf(op.kind, op.name) != analysis::OperatorClass::kFetch) continue;
    no_storage.scales.push_back({analysis::Scaled::kOperator, i, 0});
  }
  if (no_storage.scales.empty()) {
    section.facts.push_back(
        {"unavailable", "no operator of the kinds \"fetch\", \"read\" or \"io\""});
    return section;
  }
  section.title = "Who the trainer waits for (each row takes one cause away; predicted)";
  const analysis::Outcome without = evidence.Predict(no_storage);
  // As long as the trainer computed in this run, which beside other programs is longer than by its
  // own demand: the shares of all rows are then of like steps, and add up to what it waited.
  const double now_s = 1 / rate, computes_s = (1 - model.stall_ratio()) * now_s;
  const double prepare_s = std::clamp(1 / without.rate, computes_s, now_s);
  Table table{"stall_causes",
              "",
              {{"case", "case"},
               {"batches_per_second", "rate"},
               {"stall_ratio", "then it waits"},
               {"cause", "so it waits for"},
               {"step_ratio", "of each step now"}},
              {}};
  const auto share = [&](double seconds) {
    return Quantity::Of(std::max(0.0, seconds / now_s), Unit::kRatio, Source::kEstimate);
  };
  const auto waits_at = [&](double at) {
    return Quantity::Of(std::max(0.0, 1 - at * computes_s), Unit::kRatio, Source::kEstimate);
  };
  table.rows.push_back({std::string("as recorded"),
                        Quantity::Of(rate, Unit::kPerSecond, Source::kAccount),
                        Quantity::Of(model.stall_ratio(), Unit::kRatio, Source::kAccount),
                        std::string("storage"), share(now_s - prepare_s)});
  table.rows.push_back({std::string("storage at no cost"),
                        Quantity::Of(without.rate, Unit::kPerSecond, Source::kEstimate)
                            .WithInterval(without.rate_interval.low, without.rate_interval.high),
                        waits_at(without.rate), std::string("the rest of the pipeline"),
                        share(prepare_s - computes_s)});
  table.rows.push_back({std::string("all data ready"),
                        Quantity::Of(1 / consumer_s, Unit::kPerSecond, Source::kAccount),
                        Quantity::Of(0, Unit::kRatio, Source::kEstimate),
                        std::string("nothing: it computes"), share(computes_s)});
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("unit cost", 34, UnitCost);
HR_SECTION("stall split", 7, StallSplit);

}  // namespace
}  // namespace headrace::dashboards
