// One row per operator: where its threads' time goes, what it moves, what it alone could sustain.
#include <fmt/format.h>

#include <cmath>

#include "base/units.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Count;
using analysis::OperatorRow;
using analysis::RunView;
using analysis::StageRow;

std::optional<double> Share(const Count& part, double whole) {
  if (!part || whole <= 0) return std::nullopt;
  return static_cast<double>(*part) / whole;
}

// Whether the CPU clock covered the operator, but its time not apart from its neighbours'.
bool IsShared(const OperatorRow& op) {
  return !op.on_cpu_ns && op.source == "thread_clock" && op.on_cpu_low_ns && op.on_cpu_high_ns;
}

// "visits of 3.1 us share a thread's CPU clock with those of others"
std::string WhyShared(const OperatorRow& op) {
  const double visits = static_cast<double>(std::max<int64_t>(1, op.completions_count));
  return fmt::format("unknown: visits of {} share readings of a thread's CPU clock with others",
                     FormatDuration(static_cast<double>(op.busy_ns) / visits));
}

std::optional<Section> Operators(const RunView& run, const analysis::Statements& statements) {
  if (run.operators.empty()) return std::nullopt;
  Section section{
      "operator_shares",
      "Operators (shares of their stage's thread time; c: on a CPU, b+q: blocked or runnable)",
      {},
      {},
      {}};
  Table table{"operators",
              "",
              {{"operator", "operator"},
               {"stage", "stage"},
               {"threads_count", "threads"},
               {"busy_ratio", "busy"},
               {"on_cpu_ratio", "c"},
               {"off_cpu_ratio", "b+q"},
               {"wait_in_ratio", "wait in"},
               {"wait_out_ratio", "wait out"},
               {"lock_wait_ratio", "lock wait"},
               {"kind", "kind"},
               {"rows_per_second", "rows/s"},
               {"accounted_batches_per_second", "1 thread alone"},
               {"visit_ratio", "visits/batch"},
               {"bytes_in_per_second", "bytes in"},
               {"bytes_out_per_second", "bytes out"}},
              {}};
  table.second_block = 10;  // what it moves, after where its time goes
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  const std::string no_split = "measurement level 1 does not split CPU time";
  for (size_t i = 0; i < run.operators.size(); ++i) {
    const OperatorRow& op = run.operators[i];
    double lifetime = 0;
    std::optional<double> threads;
    for (const StageRow& stage : run.stages) {
      if (stage.name != op.stage) continue;
      lifetime = static_cast<double>(stage.lifetime_ns);
      // The mean over the run, but a whole number where only the start and the end pull it down.
      threads = stage.parallelism_count;
      const double last = static_cast<double>(stage.last_parallelism_count);
      if (threads && std::abs(*threads - last) < 0.15 * last) threads = last;
    }
    // Operators of a stage may run on threads of another: a loader's part of the trainer's thread.
    const std::string why_no_split = lifetime <= 0  ? "no thread lifetime recorded"
                                     : IsShared(op) ? WhyShared(op)
                                                    : no_split;
    // Figures that cannot be true are not shown, whatever is derived from them neither.
    const std::string doubt = analysis::Doubts::Of(statements.doubts.operators, i);
    if (!doubt.empty()) {
      std::vector<Value> row = {op.name, op.stage};
      for (size_t c = row.size(); c < table.columns.size(); ++c) {
        row.push_back(table.columns[c].key == "kind" ? Value(op.kind)
                                                     : Value(Quantity::Unavailable(doubt)));
      }
      table.rows.push_back(std::move(row));
      continue;
    }
    if (IsShared(op) && lifetime > 0) {
      section.sentences.push_back(
          {"split", fmt::format("{}: c + b + q {} in one figure; c is between {} and {}", op.name,
                                FormatPercent(*Share(op.busy_ns, lifetime)),
                                FormatPercent(*Share(op.on_cpu_low_ns, lifetime)),
                                FormatPercent(*Share(op.on_cpu_high_ns, lifetime)))});
    }
    Count off_cpu;
    if (op.on_cpu_ns) off_cpu = std::max<int64_t>(0, op.busy_ns - *op.on_cpu_ns);
    std::optional<double> alone, visits;
    if (statements.model) {
      const analysis::Demands::Operator& demand = statements.model->demands().operators[i];
      const double each = demand.cpu_s + demand.blocked_s;
      if (each > 0) alone = 1 / each;
      // The consumer is no stage of the model: what it could take is its own pace.
      const double step = statements.model->demands().consumer_s;
      if (op.kind == "consumer" && step > 0) alone = 1 / step;
      visits = statements.model->operators()[i].visit_ratio;
    }
    const auto per_second = [&](int64_t count) {
      return seconds > 0 ? std::optional<double>(static_cast<double>(count) / seconds)
                         : std::nullopt;
    };
    // An operator that counted no byte over a whole run does not count bytes; rows likewise.
    const auto counted = [&](int64_t count) {
      return count > 0 ? per_second(count) : std::optional<double>();
    };
    table.rows.push_back(
        {op.name, op.stage, Number(threads, Unit::kCount, "its stage was not declared"),
         Ratio(Share(op.busy_ns, lifetime), "no thread lifetime recorded"),
         Ratio(Share(op.on_cpu_ns, lifetime), why_no_split),
         Ratio(Share(off_cpu, lifetime), why_no_split),
         Ratio(Share(op.wait_in_ns, lifetime), "no thread lifetime recorded"),
         Ratio(Share(op.wait_out_ns, lifetime), "no thread lifetime recorded"),
         Ratio(Share(op.lock_wait_ns, lifetime), "no thread lifetime recorded"), op.kind,
         Number(counted(op.rows_count), Unit::kRowsPerSecond, "the operator counted no rows"),
         Number(alone, Unit::kPerSecond, statements.model ? "no work recorded" : "no verdict"),
         Number(visits, Unit::kCount, "no verdict"),
         Number(counted(op.bytes_in_bytes), Unit::kBytesPerSecond, "the operator counted no bytes"),
         Number(counted(op.bytes_out_bytes), Unit::kBytesPerSecond,
                "the operator counted no bytes")});
  }
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("operators", 10, Operators);

}  // namespace
}  // namespace headrace::dashboards
