// PipelineModel: the consumer, and what of the pipeline runs on its thread.
#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/model/pipeline_model.h"
#include "analysis/run/counter_sums.h"
#include "analysis/run/known_loaders.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

bool HostIsFull(const RunView& run) {
  const HostRow* busy = run.FindHost("host_busy_cores");
  const HostRow* total = run.FindHost("host_cores");
  return busy != nullptr && total != nullptr && busy->mean_value && total->mean_value &&
         *busy->mean_value >= kHostFull * *total->mean_value;
}

}  // namespace

// Whether another stage's threads lived so much longer than their operators were visited that they
// may have done this stage's work: a thread belongs to the stage of the operator it enters first.
bool PipelineModel::OtherThreadsHaveTime(size_t s, int64_t busy_ns) const {
  for (size_t t = 0; t < stages_.size(); ++t) {
    if (t == s || stages_[t].row == kNoStage) continue;
    int64_t free_ns = run_->stages[stages_[t].row].lifetime_ns;
    for (const size_t i : stages_[t].operators) {
      const OperatorRow& op = run_->operators[i];
      free_ns -= op.busy_ns + op.wait_in_ns + op.wait_out_ns;
    }
    if (free_ns >= busy_ns) return true;
  }
  return false;
}

// A stage that has no threads although its operators were at work ran on the thread that asked for
// batches: the consumer's, which then waited for as long as they took.
void PipelineModel::FindStagesOnConsumer() {
  int64_t consumer_ns = 0;
  for (const size_t row : consumer_rows_) consumer_ns += run_->stages[row].lifetime_ns;
  if (consumer_ns <= 0) return;
  for (size_t s = 0; s < stages_.size(); ++s) {
    StageModel& stage = stages_[s];
    if (stage.row == kNoStage || run_->stages[stage.row].lifetime_ns > 0) continue;
    int64_t busy_ns = 0;
    for (const size_t i : stage.operators) busy_ns += run_->operators[i].busy_ns;
    // Of several ranks, the sum of their ones.
    const bool declared = run_->stages[stage.row].max_parallelism_count > 0 &&
                          run_->stages[stage.row].last_parallelism_count == 0;
    const KnownLoader* known = FindKnownLoader(*run_, run_->stages[stage.row].name);
    const bool always = declared || (known != nullptr && known->first != nullptr);
    // What ends an epoch is done between the waits for batches.
    const bool outside_waits =
        !declared &&
        static_cast<double>(busy_ns) > kWithinItsWait * static_cast<double>(run_->steps.wait_ns);
    if (busy_ns <= 0 || outside_waits || (!always && OtherThreadsHaveTime(s, busy_ns))) {
      continue;
    }
    stage.on_consumer = true;
    stage.stays_on_consumer = declared;
    current_.parallelism[s] = 0;
  }
}

bool PipelineModel::loads_on_consumer() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const StageModel& stage) { return stage.on_consumer; });
}

bool PipelineModel::IsReceiving(size_t op, const char* kind) const {
  const size_t stage = operators_[op].stage;
  return operators_[op].kind == kind && stage != kNoStage && stages_[stage].stays_on_consumer;
}

bool PipelineModel::measures_order() const {
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (IsReceiving(i, kOrderKind)) return true;
  }
  return false;
}

double PipelineModel::OnConsumers(const Settings& settings, const Demands& demands) const {
  double all_s = 0;
  for (size_t s = 0; s < stages_.size(); ++s) {
    if (settings.parallelism[s] <= 0) all_s += demands.stage_s[s];
  }
  return all_s / consumers_;
}

// Several trainers in one recording wait and compute for more time than passes.
void PipelineModel::CountConsumers() {
  const WindowRow& sum = steady_sum_;
  if (sum.duration_ns <= 0) return;
  const double at_once = static_cast<double>(sum.steps.wait_ns + sum.steps.compute_ns) /
                         static_cast<double>(sum.duration_ns);
  constexpr double kMost = 4096;
  if (!std::isfinite(at_once)) return;
  consumers_ = static_cast<int>(std::lround(std::clamp(at_once, 1.0, kMost)));
  // No more than the threads that they had, where these are known.
  double threads = 0;
  for (const size_t row : consumer_rows_) {
    threads +=
        static_cast<double>(sum.stages[row].lifetime_ns) / static_cast<double>(sum.duration_ns);
  }
  if (threads > 0) {
    consumers_ = std::min(consumers_, std::max(1, static_cast<int>(std::lround(threads))));
  }
}

double PipelineModel::ConsumerComputeCpu(const Demands& demands) const {
  double cpu_s = 0;
  bool known = true;
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (operators_[i].stage != kNoStage) continue;
    cpu_s += demands.operators[i].cpu_s;
    known = known && run_->operators[i].on_cpu_ns.has_value();
  }
  return std::min(demands.consumer_s, known ? cpu_s : demands.consumer_cpu_s);
}

// What the scheduler accounts to the stage's threads. A stage on the consumer's has its share of
// that one, by the time it was busy.
StageCounters PipelineModel::ThreadsOf(const StageModel& stage, const WindowRow& sum) const {
  if (!stage.on_consumer) {
    return stage.row < sum.stages.size() ? sum.stages[stage.row] : StageCounters();
  }
  double busy_ns = 0;
  for (const size_t i : stage.operators) busy_ns += static_cast<double>(sum.operators[i].busy_ns);
  const double all_ns = static_cast<double>(sum.steps.wait_ns + sum.steps.compute_ns);
  const double share = all_ns > 0 ? std::min(1.0, busy_ns / all_ns) : 0;
  StageCounters threads;
  for (const size_t row : consumer_rows_) {
    const auto add = [share](const Count& from, Count* to) {
      if (from) *to = to->value_or(0) + std::llround(share * static_cast<double>(*from));
    };
    add(sum.stages[row].on_cpu_ns, &threads.on_cpu_ns);
    add(sum.stages[row].runnable_ns, &threads.runnable_ns);
  }
  return threads;
}

// The consumer's c + b. How long it had no core inside its step (q) is known from its operators, or
// lies between what its threads' account allows; where that is not readable and the machine is
// full, it suffers at most what the stages do.
void PipelineModel::EstimateConsumer(const WindowRow& sum, Demands* demands) const {
  const double steps = std::max(1.0, Steps(sum.steps)) * consumers_;
  const double compute_s = Seconds(sum.steps.compute_ns), wait_s = Seconds(sum.steps.wait_ns);
  double q_s = 0, c_s = 0;
  bool by_operator = false, known = true;
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (operators_[i].stage != kNoStage) continue;
    const OperatorCounters& op = sum.operators[i];
    by_operator = true;
    known = known && op.runnable_ns.has_value();
    q_s += Seconds(op.runnable_ns);
    c_s += Seconds(op.on_cpu_ns);
  }
  double least_q = q_s, most_q = q_s;
  if (!by_operator || !known) {
    Count threads;
    for (const size_t row : consumer_rows_) {
      if (!sum.stages[row].runnable_ns) {
        threads.reset();
        break;
      }
      threads = threads.value_or(0) + *sum.stages[row].runnable_ns;
    }
    q_s = least_q = most_q = 0;
    if (threads) {
      const double all_s = Seconds(threads);
      least_q = std::max(0.0, all_s - wait_s);
      most_q = std::min(all_s, std::max(0.0, compute_s - c_s));
      q_s = compute_s + wait_s > 0 ? all_s * compute_s / (compute_s + wait_s) : 0;
    } else if (HostIsFull(*run_)) {
      most_q = compute_s * (1 - ShareOfCores(sum).value_or(1));
    }
  }
  const auto left = [&](double q) {
    return std::max({compute_s - q, std::min(c_s, compute_s), 0.0}) / steps;
  };
  demands->consumer_s = left(std::clamp(q_s, least_q, std::max(least_q, most_q)));
  demands->consumer_least_s = left(std::max(least_q, most_q));
  demands->consumer_most_s = left(least_q);
}

// Requests for batches that run on the consumer's thread take as long as its operators plus the
// time outside them, which is work of the loader, too, but for the waits for those that make the
// batches. The part of that time in which the thread did not compute may have been spent waiting
// for others.
void PipelineModel::EstimateLoad(const WindowRow& sum, Demands* demands) const {
  size_t stage = 0;
  while (stage < stages_.size() && !stages_[stage].on_consumer) ++stage;
  if (stage == stages_.size()) return;
  const double steps = std::max(1.0, Steps(sum.steps)) * consumers_;
  double busy_s = 0, own_cpu_s = 0, q_s = 0, lifetime_s = 0;
  for (size_t i = 0; i < operators_.size(); ++i) {
    const size_t of = operators_[i].stage;
    if (of == kNoStage) own_cpu_s += demands->operators[i].cpu_s;
    if (of == kNoStage || !stages_[of].on_consumer) continue;
    busy_s += Seconds(sum.operators[i].busy_ns) + Seconds(sum.operators[i].wait_in_ns);
  }
  for (const size_t row : consumer_rows_) {
    q_s += Seconds(sum.stages[row].runnable_ns);
    lifetime_s += Seconds(sum.stages[row].lifetime_ns);
  }
  const double ran = lifetime_s > 0 ? std::clamp(1 - q_s / lifetime_s, 0.0, 1.0) : 1;
  const double rest_s = ran * std::max(0.0, Seconds(sum.steps.wait_ns) - busy_s) / steps;
  const double cpu_s = std::min(rest_s, std::max(0.0, demands->consumer_cpu_s - own_cpu_s));
  demands->stage_s[stage] += rest_s;
  demands->stage_cpu_s[stage] += cpu_s;
  demands->consumer_cpu_s -= cpu_s;
  demands->unattributed_cpu_s -= cpu_s;
  demands->consumer_load_s = rest_s - cpu_s;
}

// Workers that are always busy lose nothing by the order, in whatever order their batches come.
// What one thread does, as the one that pins memory, comes in order.
void PipelineModel::EstimateOrder(const WindowRow& sum, Demands* demands) const {
  double wait_s = 0;
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (IsReceiving(i, kOrderKind)) wait_s += Seconds(sum.operators[i].wait_in_ns);
  }
  if (wait_s <= 0) return;
  std::optional<double> idle;
  for (const StageModel& stage : stages_) {
    double all_s = 0, out_s = 0;
    if (stage.on_consumer || stage.parallelism <= consumers_) continue;  // one for each trainer
    for (const size_t i : stage.operators) {
      const OperatorCounters& op = sum.operators[i];
      all_s += Seconds(op.busy_ns) + Seconds(op.wait_in_ns) + Seconds(op.wait_out_ns);
      out_s += Seconds(op.wait_out_ns);
    }
    if (all_s > 0) idle = std::min(idle.value_or(1), out_s / all_s);
  }
  demands->order_wait_most_s = wait_s / (std::max(1.0, Steps(sum.steps)) * consumers_);
  demands->order_wait_s = idle.value_or(0) * demands->order_wait_most_s;
}

}  // namespace headrace::analysis
