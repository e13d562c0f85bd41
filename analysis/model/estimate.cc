// PipelineModel::Estimate: what a batch costs, from counters summed over windows.
#include <algorithm>

#include "analysis/model/pipeline_model.h"
#include "analysis/run/counter_sums.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// c of the operators of one stage, in seconds: what each lies between, and a choice that adds up.
struct CpuSplit {
  std::vector<double> low, high, cpu_s;
  double sum_s = 0;
};

// What c of an operator lies between in these windows, as told of the run.
void AddOperator(const OperatorCounters& op, bool told, CpuSplit* split) {
  double low = 0, high = Seconds(op.busy_ns);
  if (op.on_cpu_low_ns && op.on_cpu_high_ns) {
    low = std::min(Seconds(op.on_cpu_low_ns), Seconds(op.on_cpu_high_ns));
    high = std::max(Seconds(op.on_cpu_low_ns), Seconds(op.on_cpu_high_ns));
  }
  if (told && op.on_cpu_ns) low = high = Seconds(op.on_cpu_ns);
  split->low.push_back(low);
  split->high.push_back(high);
}

void ChooseMiddle(CpuSplit* split) {
  for (size_t i = 0; i < split->low.size(); ++i) {
    split->cpu_s.push_back((split->low[i] + split->high[i]) / 2);
    split->sum_s += split->cpu_s[i];
  }
}

// Chooses c of each operator within its interval so that all add up to `sum_s` as far as they can:
// at the same part of every interval, or at parts in proportion to `places`.
void Choose(double sum_s, const std::vector<double>& places, CpuSplit* split) {
  split->cpu_s.resize(split->low.size());
  const auto at = [&](double scale) {
    split->sum_s = 0;
    for (size_t i = 0; i < split->low.size(); ++i) {
      const double part = std::min(1.0, scale * (places.empty() ? 1.0 : places[i]));
      split->cpu_s[i] = split->low[i] + part * (split->high[i] - split->low[i]);
      split->sum_s += split->cpu_s[i];
    }
    return split->sum_s;
  };
  double least = 0, most = 1;
  while (most < 1e6 && at(most) < sum_s) most *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (least + most) / 2;
    (at(middle) < sum_s ? least : most) = middle;
  }
}

// The times of one stage's threads and operators in these windows, in seconds.
struct StageTimes {
  CpuSplit cpu;
  // Whether the time on a CPU is known of every operator.
  bool is_split = true;
  double busy_s = 0, off_cpu_s = 0;
  // On a CPU and ready without one, of the threads; the part of the latter that fell inside of
  // operators.
  double on_cpu_s = 0, runnable_s = 0, runnable_inside_s = 0;
};

StageTimes TimesOf(const StageModel& stage, const RunView& run, const WindowRow& sum,
                   const StageCounters& threads, const std::vector<double>& places) {
  StageTimes times;
  std::vector<double> own_places;
  for (const size_t i : stage.operators) {
    const OperatorCounters& op = sum.operators[i];
    const bool told = run.operators[i].on_cpu_ns.has_value();
    times.busy_s += Seconds(op.busy_ns);
    AddOperator(op, told, &times.cpu);
    if (!places.empty()) own_places.push_back(places[i]);
    times.is_split = times.is_split && told && (op.on_cpu_ns || op.on_cpu_low_ns);
  }
  const bool is_scheduled = threads.on_cpu_ns.has_value();
  if (times.is_split) {
    ChooseMiddle(&times.cpu);
  } else {
    Choose(is_scheduled ? std::min(Seconds(threads.on_cpu_ns), times.busy_s) : 0, own_places,
           &times.cpu);
  }
  for (size_t m = 0; m < stage.operators.size(); ++m) {
    const OperatorCounters& op = sum.operators[stage.operators[m]];
    times.off_cpu_s +=
        std::max(0.0, Seconds(op.busy_ns) - times.cpu.cpu_s[m] - Seconds(op.lock_wait_ns));
  }
  times.on_cpu_s = is_scheduled ? Seconds(threads.on_cpu_ns) : times.cpu.sum_s;
  times.runnable_s = times.runnable_inside_s = Seconds(threads.runnable_ns);
  // A thread that mostly blocks inside its operators is made runnable as often by its queues'
  // waits as by its own; one that computes is preempted while it computes. Where being runnable
  // is half of its time off the cores and more, they are full, and it is the latter.
  if (times.is_split && times.off_cpu_s > 3 * times.cpu.sum_s) {
    const double share = times.runnable_s / times.off_cpu_s;
    times.runnable_inside_s *= 0.5 + 0.5 * std::clamp((share - 0.1) / 0.4, 0.0, 1.0);
  }
  return times;
}

// The time in which an operator that took `cpu_s` was blocked, without its waits for locks.
double BlockedSeconds(const OperatorCounters& op, double cpu_s, const StageTimes& stage) {
  const double busy_s = Seconds(op.busy_ns), lock_wait_s = Seconds(op.lock_wait_ns);
  double blocked_s;
  if (stage.is_split && op.blocked_ns) {
    blocked_s = std::max(0.0, Seconds(op.blocked_ns) - lock_wait_s);
  } else if (stage.is_split) {
    const double off_s = std::max(0.0, busy_s - cpu_s - lock_wait_s);
    const double ready_s =
        stage.off_cpu_s > 0 ? stage.runnable_inside_s * off_s / stage.off_cpu_s : 0;
    blocked_s = std::max(0.0, off_s - ready_s);
  } else {
    const double share = stage.busy_s > 0 ? busy_s / stage.busy_s : 0;
    blocked_s = std::max(0.0, busy_s - lock_wait_s - cpu_s - stage.runnable_s * share);
  }
  if (!op.blocked_ns && op.blocked_low_ns && op.blocked_high_ns) {
    blocked_s = std::min(std::max(blocked_s, Seconds(op.blocked_low_ns) - lock_wait_s),
                         Seconds(op.blocked_high_ns));
  }
  return blocked_s;
}

// At least 1: what a batch costs is of no use where there was none.
double StepsOf(const WindowRow& sum) {
  return std::max<double>(1, static_cast<double>(sum.steps.steps_count));
}

}  // namespace

WindowRow PipelineModel::Sum(const std::vector<size_t>& windows) const {
  WindowRow sum;
  if (windows.empty()) {
    sum.duration_ns = run_->run.duration_ns;
    sum.operators.assign(run_->operators.begin(), run_->operators.end());
    sum.stages.assign(run_->stages.begin(), run_->stages.end());
    sum.queues.assign(run_->queues.begin(), run_->queues.end());
    sum.resources.assign(run_->resources.begin(), run_->resources.end());
    sum.steps = run_->steps;
    return sum;
  }
  std::vector<const WindowRow*> rows;
  for (const size_t w : windows) rows.push_back(&run_->windows[w]);
  return SumOf(rows);
}

WindowRow PipelineModel::SumOf(const std::vector<const WindowRow*>& windows) const {
  WindowRow sum;
  sum.operators.resize(run_->operators.size());
  sum.stages.resize(run_->stages.size());
  sum.resources.resize(run_->resources.size());
  bool first = true;
  for (const WindowRow* row : windows) {
    const WindowRow& window = *row;
    sum.duration_ns += window.duration_ns;
    for (size_t i = 0; i < window.operators.size(); ++i) {
      Add(&sum.operators[i], window.operators[i], first);
    }
    for (size_t i = 0; i < window.stages.size(); ++i) {
      sum.stages[i].lifetime_ns += window.stages[i].lifetime_ns;
      Add(&sum.stages[i].on_cpu_ns, window.stages[i].on_cpu_ns, first);
      Add(&sum.stages[i].runnable_ns, window.stages[i].runnable_ns, first);
    }
    for (size_t i = 0; i < window.resources.size(); ++i) {
      sum.resources[i].acquisitions_count += window.resources[i].acquisitions_count;
      sum.resources[i].wait_ns += window.resources[i].wait_ns;
      sum.resources[i].hold_ns += window.resources[i].hold_ns;
      sum.resources[i].moved_bytes += window.resources[i].moved_bytes;
    }
    sum.steps.steps_count += window.steps.steps_count;
    sum.steps.rows_count += window.steps.rows_count;
    sum.steps.wait_ns += window.steps.wait_ns;
    sum.steps.compute_ns += window.steps.compute_ns;
    first = false;
  }
  return sum;
}

Demands PipelineModel::Estimate(const std::vector<size_t>& windows,
                                const std::vector<double>& places) const {
  return EstimateFrom(Sum(windows), places);
}

Demands PipelineModel::EstimateFrom(const WindowRow& sum, const std::vector<double>& places) const {
  Demands demands;
  const double steps = StepsOf(sum);
  demands.rate = sum.duration_ns > 0 ? steps / Seconds(sum.duration_ns) : 0;
  demands.rows = static_cast<double>(sum.steps.rows_count) / steps;
  demands.operators.resize(operators_.size());
  demands.stage_s.resize(stages_.size());
  demands.stage_cpu_s.resize(stages_.size());
  double stages_cpu_s = 0, on_consumer_s = 0;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const double on_cpu_s = EstimateStage(s, sum, places, &demands);
    demands.cpu_s += demands.stage_cpu_s[s];
    // The rest of the consumer's thread is the consumer's.
    if (stages_[s].on_consumer) {
      stages_cpu_s += demands.stage_cpu_s[s];
      on_consumer_s += demands.stage_cpu_s[s];
    } else {
      stages_cpu_s += on_cpu_s * stages_[s].taken_ratio / steps;
    }
  }
  demands.unattributed_cpu_s = std::max(0.0, stages_cpu_s - demands.cpu_s) + other_cpu_s_;
  EstimateConsumerCpu(sum, on_consumer_s, &demands);
  EstimateConsumer(sum, &demands);
  demands.unattributed_cpu_s += demands.consumer_cpu_s;
  demands.cpu_s += demands.unattributed_cpu_s;
  EstimateLoad(sum, &demands);
  EstimateOrder(sum, &demands);
  for (const ResourceModel& resource : resources_) {
    if (resource.curve) {
      EstimateStorage(*resource.curve, &demands);
    } else if (resource.counted_s) {
      EstimateCounted(resource, &demands);
    } else {
      EstimateAccounted(resource, sum, &demands);
    }
  }
  return demands;
}

// The share of their time in which those who make batches compute, in the busiest stage but that of
// who takes them.
double PipelineModel::MakersCompute(const WindowRow& sum, size_t taker) const {
  double most = 0;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const StageModel& stage = stages_[s];
    if (s == taker || stage.on_consumer || stage.row >= sum.stages.size()) continue;
    const StageCounters& threads = sum.stages[stage.row];
    const double all_s = Seconds(threads.lifetime_ns);
    if (all_s > 0) {
      most = std::max(most, (Seconds(threads.on_cpu_ns) + Seconds(threads.runnable_ns)) / all_s);
    }
  }
  return std::min(1.0, most);
}

// Returns the seconds that the stage's threads were on a CPU.
double PipelineModel::EstimateStage(size_t s, const WindowRow& sum,
                                    const std::vector<double>& places, Demands* demands) const {
  const StageModel& stage = stages_[s];
  const double steps = StepsOf(sum);
  const StageTimes times = TimesOf(stage, *run_, sum, ThreadsOf(stage, sum), places);
  for (size_t m = 0; m < stage.operators.size(); ++m) {
    const size_t i = stage.operators[m];
    const OperatorCounters& op = sum.operators[i];
    double blocked_s = BlockedSeconds(op, times.cpu.cpu_s[m], times);
    // Who takes a batch from a worker is blocked for as long as that one is busy with others. Who
    // unpickles one has it, and asks its worker for the memory of each tensor: that is a cost, but
    // for the time in which the worker computes. That is how long the next batch takes anyway, and
    // a worker with less to do answers sooner.
    const std::string& kind = operators_[i].kind;
    const bool costs = kind == kStartKind || kind == kFirstBatchKind || kind == kUnpickleKind ||
                       kind == kSampleKind;
    if (stage.stays_on_consumer && times.is_split && !costs) blocked_s = 0;
    if (kind == kUnpickleKind) blocked_s *= 1 - MakersCompute(sum, s);
    const double completions = static_cast<double>(op.completions_count);
    // An operator that completed nothing in these windows is booked per step instead.
    const double scale = completions > 0 ? operators_[i].visit_ratio / completions : 1 / steps;
    Demands::Operator& out = demands->operators[i];
    out.cpu_s = times.cpu.cpu_s[m] * scale;
    out.cpu_low_s = times.cpu.low[m] * scale;
    out.cpu_high_s = times.cpu.high[m] * scale;
    out.blocked_s = blocked_s * scale;
    out.lock_wait_s = Seconds(op.lock_wait_ns) * scale;
    out.busy_s = Seconds(op.busy_ns) * scale;
    out.rows = static_cast<double>(op.rows_count) * scale;
    out.bytes_in = static_cast<double>(op.bytes_in_bytes) * scale;
    out.bytes_out = static_cast<double>(op.bytes_out_bytes) * scale;
    demands->stage_s[s] += out.cpu_s + out.blocked_s;
    demands->stage_cpu_s[s] += out.cpu_s;
  }
  return times.on_cpu_s;
}

// on_stages_s: what stages without threads of their own take of the consumer's.
void PipelineModel::EstimateConsumerCpu(const WindowRow& sum, double on_stages_s,
                                        Demands* demands) const {
  const double steps = StepsOf(sum);
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (operators_[i].stage != kNoStage) continue;
    demands->operators[i].cpu_s = Seconds(sum.operators[i].on_cpu_ns) / steps;
    demands->consumer_cpu_s += demands->operators[i].cpu_s;
  }
  // Its threads also wake for each batch and take it, outside of their operators.
  double threads_s = 0;
  for (const size_t row : consumer_rows_) threads_s += Seconds(sum.stages[row].on_cpu_ns) / steps;
  demands->consumer_cpu_s = std::max(demands->consumer_cpu_s, threads_s - on_stages_s);
}

void PipelineModel::EstimateStorage(const DeviceCurve& curve, Demands* demands) const {
  const Demands::Operator& io = demands->operators[curve.io];
  Demands::Resource storage;
  storage.bytes = curve.from_device * io.bytes_out;
  storage.hold_s = std::min(storage.bytes / curve.Most(), io.cpu_s + io.blocked_s);
  // Where the device is full, reads also wait for each other: no demand of theirs, as waiting
  // for a lock is none.
  const size_t stage = operators_[curve.io].stage;
  const double in_flight = curve.in_flight * std::max(1, current_.parallelism[stage]);
  if (demands->rate * storage.hold_s > kDeviceFull && in_flight * curve.At(1) > curve.Most()) {
    const double alone = curve.Most() / (in_flight * curve.At(1));
    const double less_s =
        std::min(io.blocked_s * (1 - alone), std::max(0.0, io.blocked_s - storage.hold_s));
    demands->operators[curve.io].blocked_s -= less_s;
    demands->stage_s[stage] -= less_s;
  }
  demands->resources.push_back(storage);
}

void PipelineModel::EstimateCounted(const ResourceModel& counted, Demands* demands) const {
  // It cannot be less than what passed: the phase may be faster than the run, which is what the
  // counters are of.
  const double counted_s = *counted.counted_s;
  demands->resources.emplace_back().hold_s =
      demands->rate > 0 ? std::min(counted_s, counted.servers / demands->rate) : counted_s;
  LeaveOutWaitsAtFullStore(counted, demands);
}

void PipelineModel::LeaveOutWaitsAtFullStore(const ResourceModel& store, Demands* demands) const {
  if (!store.enough_threads || store.users.empty()) return;
  const size_t op = store.users[0].first, stage = operators_[op].stage;
  if (stage == kNoStage || current_.parallelism[stage] <= *store.enough_threads) return;
  const double less_s =
      demands->operators[op].blocked_s * (1 - *store.enough_threads / current_.parallelism[stage]);
  demands->operators[op].blocked_s -= less_s;
  demands->stage_s[stage] -= less_s;
}

void PipelineModel::EstimateAccounted(const ResourceModel& accounted, const WindowRow& sum,
                                      Demands* demands) const {
  const ResourceCounters& counters = sum.resources[*accounted.account];
  const double steps = StepsOf(sum);
  Demands::Resource resource;
  resource.hold_s = Seconds(counters.hold_ns) / steps;
  resource.wait_s = Seconds(counters.wait_ns) / steps;
  resource.bytes = static_cast<double>(counters.moved_bytes) / steps;
  double users_s = 0, busy_s = 0;
  for (const auto& [index, share] : accounted.users) {
    const Demands::Operator& user = demands->operators[index];
    users_s += user.cpu_s + user.blocked_s;
    busy_s += user.busy_s;
  }
  // A rate limiter may book the time for its tokens as waiting. Then hold time says little, but
  // users that queue for it most of their time show that it delivers what it can.
  if (accounted.kind == "device" && resource.wait_s > kLimiterWaits * resource.hold_s &&
      busy_s > 0 && resource.wait_s > kQueuesForDevice * busy_s && demands->rate > 0) {
    resource.limiter_s = accounted.servers / demands->rate;
  }
  // The holder of a lock that is preempted holds it longer than it needs to: the demand is at
  // most what its users do. A device also works while its users do something else.
  if (users_s > 0 && splits_cpu_ && accounted.kind == "lock") {
    resource.hold_s = std::min(resource.hold_s, users_s);
  }
  demands->resources.push_back(resource);
}

}  // namespace headrace::analysis
