// One row per operator: where its threads' time goes, what it moves, what it alone could sustain.
#include <fmt/format.h>

#include <cmath>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/table_rows.h"
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

// The time that an operator's threads lived, and how many they were on average.
struct StageThreads {
  double lifetime_ns = 0;  // 0: not recorded
  std::optional<double> count;
};

StageThreads ThreadsOf(const RunView& run, const OperatorRow& op) {
  StageThreads threads;
  for (const StageRow& stage : run.stages) {
    if (stage.name != op.stage) continue;
    threads.lifetime_ns = static_cast<double>(stage.lifetime_ns);
    // The mean over the run, but a whole number where only the start and the end pull it down.
    threads.count = stage.parallelism_count;
    const double last = static_cast<double>(stage.last_parallelism_count);
    if (threads.count && std::abs(*threads.count - last) < 0.15 * last) threads.count = last;
  }
  return threads;
}

// What the operator could do if nothing else limited it, with one thread.
struct Alone {
  std::optional<double> batches_per_second, visits_per_batch;
};

Alone AloneOf(const analysis::Statements& statements, const OperatorRow& op, size_t index) {
  Alone alone;
  if (!statements.model) return alone;
  const analysis::Demands& demands = statements.model->demands();
  const analysis::Demands::Operator& demand = demands.operators[index];
  const double each = demand.cpu_s + demand.blocked_s;
  if (each > 0) alone.batches_per_second = 1 / each;
  // The consumer is no stage of the model: what it could take is its own pace.
  if (op.kind == "consumer" && demands.consumer_s > 0) {
    alone.batches_per_second = 1 / demands.consumer_s;
  }
  alone.visits_per_batch = statements.model->operators()[index].visit_ratio;
  return alone;
}

std::vector<Value> ShareRow(const RunView& run, const analysis::Statements& statements,
                            size_t index) {
  const OperatorRow& op = run.operators[index];
  const StageThreads threads = ThreadsOf(run, op);
  const Alone alone = AloneOf(statements, op, index);
  const auto share = [&](const Count& part, const std::string& why_none) {
    return Ratio(Share(part, threads.lifetime_ns),
                 threads.lifetime_ns > 0 ? why_none : "no thread lifetime recorded");
  };
  // An operator that counted no byte over a whole run does not count bytes; rows likewise.
  const auto rate = [&](int64_t count, Unit unit, const char* why_none) {
    std::optional<double> counted;
    if (count > 0) counted = static_cast<double>(count);
    return Number(PerSecond(run, counted), unit, why_none);
  };
  // Operators of a stage may run on threads of another: a loader's part of the trainer's thread.
  const std::string no_split =
      IsShared(op) ? WhyShared(op) : "measurement level 1 does not split CPU time";
  Count off_cpu;
  if (op.on_cpu_ns) off_cpu = std::max<int64_t>(0, op.busy_ns - *op.on_cpu_ns);
  const std::string no_time = "no thread lifetime recorded";
  return {op.name,
          op.stage,
          Number(threads.count, Unit::kCount, "its stage was not declared"),
          share(op.busy_ns, no_time),
          share(op.on_cpu_ns, no_split),
          share(off_cpu, no_split),
          share(op.wait_in_ns, no_time),
          share(op.wait_out_ns, no_time),
          share(op.lock_wait_ns, no_time),
          op.kind,
          rate(op.rows_count, Unit::kRowsPerSecond, "the operator counted no rows"),
          Number(alone.batches_per_second, Unit::kPerSecond,
                 statements.model ? "no work recorded" : "no verdict"),
          Number(alone.visits_per_batch, Unit::kCount, "no verdict"),
          rate(op.bytes_in_bytes, Unit::kBytesPerSecond, "the operator counted no bytes"),
          rate(op.bytes_out_bytes, Unit::kBytesPerSecond, "the operator counted no bytes")};
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
  for (size_t i = 0; i < run.operators.size(); ++i) {
    const OperatorRow& op = run.operators[i];
    const std::string doubt = analysis::Doubts::Of(statements.doubts.operators, i);
    if (!doubt.empty()) {
      table.rows.push_back(DoubtedRow(
          table, {{"operator", op.name}, {"stage", op.stage}, {"kind", op.kind}}, doubt));
      continue;
    }
    const double lifetime_ns = ThreadsOf(run, op).lifetime_ns;
    if (IsShared(op) && lifetime_ns > 0) {
      section.sentences.push_back(
          {"split", fmt::format("{}: c + b + q {} in one figure; c is between {} and {}", op.name,
                                FormatPercent(*Share(op.busy_ns, lifetime_ns)),
                                FormatPercent(*Share(op.on_cpu_low_ns, lifetime_ns)),
                                FormatPercent(*Share(op.on_cpu_high_ns, lifetime_ns)))});
    }
    table.rows.push_back(ShareRow(run, statements, i));
  }
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("operators", 10, Operators);

}  // namespace
}  // namespace headrace::dashboards
