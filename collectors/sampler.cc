#include "collectors/sampler.h"

#include <algorithm>

#include "base/clock.h"
#include "probes/process_identity.h"

namespace headrace::collectors {

using account::SegmentSnapshot;

Sampler::Sampler(int64_t pid, int64_t start_ns, account::AccountSegment segment, bool alive,
                 bool use_clock)
    : pid_(pid),
      start_ns_(start_ns),
      use_clock_(use_clock),
      segment_(std::move(segment)),
      task_times_(pid) {
  if (segment_.opened_monotonic_ns() >= start_ns_) return;
  IntervalSample before;
  SampleSegment(ReadSegment(alive), nullptr, &before);
  losses_.step_details = losses_.steps = 0;
}

int64_t Sampler::Delta(Field field, int64_t id, int64_t now) {
  std::vector<int64_t>& of_field = last_[field];
  const auto at = static_cast<size_t>(id);  // limits of the segment bound it
  if (of_field.size() <= at) of_field.resize(at + 1);
  int64_t& last = of_field[at];
  const int64_t delta = std::max<int64_t>(0, now - last);
  last = std::max(last, now);
  return delta;
}

std::optional<int64_t> Sampler::Delta(Field field, int64_t id, std::optional<int64_t> now) {
  if (!now) return std::nullopt;
  return Delta(field, id, *now);
}

int64_t Sampler::TidHere(int64_t own_tid) {
  if (segment_.pid() == pid_) return own_tid;
  const auto known = tids_.find(own_tid);
  if (known != tids_.end()) return known->second;
  constexpr int64_t kLookNs = 1'000'000'000;
  if (MonotonicNs() < next_tids_ns_) return 0;
  next_tids_ns_ = MonotonicNs() + kLookNs;
  tids_ = probes::ReadOwnTids(pid_);
  const auto found = tids_.find(own_tid);
  return found == tids_.end() ? 0 : found->second;
}

SegmentSnapshot Sampler::ReadSegment(bool alive) {
  return segment_.Read(alive, [this](int64_t tid) -> std::optional<account::ThreadTime> {
    const auto time = task_times_.Read(TidHere(tid));
    if (!time) return std::nullopt;
    schedstat_readable_ = true;
    return account::ThreadTime{time->on_cpu_ns, time->runnable_ns};
  });
}

IntervalSample Sampler::Take(bool alive, const KernelSplits* splits) {
  IntervalSample sample;
  SegmentSnapshot snapshot = ReadSegment(alive);
  closed_ = snapshot.closed;
  SampleSegment(snapshot, splits, &sample);
  waiting_ns_ = 0;
  for (const SegmentSnapshot::Thread& thread : snapshot.threads) {
    if (thread.doing == HR_WAITING_IN) waiting_ns_ = std::max(waiting_ns_, thread.in_flight_ns);
  }
  last_steps_ = std::move(snapshot.steps);
  last_queues_ = std::move(snapshot.queues);
  return sample;
}

namespace {

// The number of a stage in the store: the "" stage, the last one, keeps its number as others
// appear.
int64_t StageId(const SegmentSnapshot& snapshot, uint32_t index) {
  return index + 1 < snapshot.stages.size() ? int64_t{index} : int64_t{HR_MAX_STAGES};
}

const char* ResourceKind(const SegmentSnapshot::Resource& resource) {
  return resource.kind == HR_DEVICE ? "device" : resource.kind == HR_MEMORY ? "memory" : "lock";
}

}  // namespace

void Sampler::SampleSegment(const SegmentSnapshot& snapshot, const KernelSplits* splits,
                            IntervalSample* out) {
  SampleStages(snapshot, out);
  SampleOperators(snapshot, splits, out);
  SplitTimes(out);
  SampleQueues(snapshot, out);
  SampleResources(snapshot, out);
  SampleSteps(snapshot, out);
  for (const SegmentSnapshot::Loss& loss : snapshot.losses)
    losses_.over_limit[loss.what] = loss.count;
}

void Sampler::SampleStages(const SegmentSnapshot& snapshot, IntervalSample* out) {
  for (uint32_t i = 0; i < snapshot.stages.size(); i++) {
    const SegmentSnapshot::Stage& s = snapshot.stages[i];
    const int64_t id = StageId(snapshot, i);
    if (id == HR_MAX_STAGES && s.threads == 0) continue;
    StageSample sample;
    sample.id = sample.index = id;
    sample.name = s.name;
    sample.parallelism = s.parallelism;
    sample.max_parallelism = s.max_parallelism;
    sample.parallelism_ns = Delta(kStageParallelism, id, s.parallelism_ns);
    sample.observed_ns = Delta(kStageObserved, id, s.observed_ns);
    sample.lifetime_ns = Delta(kStageLifetime, id, s.lifetime_ns);
    sample.unattributed_ns = Delta(kStageUnattributed, id, s.unattributed_ns);
    sample.on_cpu_ns = Delta(kStageOnCpu, id, s.on_cpu_ns);
    sample.runnable_ns = Delta(kStageRunnable, id, s.runnable_ns);
    out->stages.push_back(std::move(sample));
  }
}

void Sampler::SampleOperators(const SegmentSnapshot& snapshot, const KernelSplits* splits,
                              IntervalSample* out) {
  // The kernel knows this process's operators from the first figure on; what it gives from then on
  // is exact, what was before stays as the clock has it.
  const bool split = splits && (split_begun_ || !splits->empty());
  const bool split_begins = split && !split_begun_;
  split_begun_ = split;
  const bool from_birth =
      split_begins && (watched_since_idle_ ||
                       (segment_.opened_monotonic_ns() >= start_ns_ && last_[kOpBusy].empty()));
  watched_since_idle_ =
      splits && std::all_of(snapshot.operators.begin(), snapshot.operators.end(),
                            [](const SegmentSnapshot::Operator& o) { return o.busy_ns == 0; });
  std::map<int64_t, int64_t> positions;
  for (size_t i = 0; i < snapshot.operators.size(); i++) {
    const SegmentSnapshot::Operator& o = snapshot.operators[i];
    OperatorSample sample = SampleOperator(static_cast<int64_t>(i), o);
    sample.stage_id = StageId(snapshot, o.stage);
    sample.position = positions[sample.stage_id]++;
    sample.time_source = sample.on_cpu_ns ? "thread_clock" : "account";
    // The kernel knows nothing of an operator that nobody enters: its times were told (hrx_worked).
    const bool told = o.enters == 0 && o.busy_ns > 0;
    if (split && !told) {
      const auto index = static_cast<uint32_t>(i);
      const auto seen = splits->find(index);
      const KernelSplit now = seen == splits->end() ? KernelSplit{} : seen->second;
      // An operator registered later counts from 0.
      const bool known = split_begins && !from_birth;
      SplitBase& base =
          split_base_
              .emplace(index, known ? SplitBase{o.busy_ns, now} : SplitBase{0, KernelSplit{}})
              .first->second;
      TakeKernelSplit(o.busy_ns, now, !known, &base, &sample);
    }
    out->operators.push_back(std::move(sample));
  }
}

void Sampler::TakeKernelSplit(int64_t busy_ns, const KernelSplit& now, bool exact, SplitBase* base,
                              OperatorSample* sample) {
  const int64_t blocked = now.blocked_ns - base->split.blocked_ns;
  const int64_t runnable = now.runnable_ns - base->split.runnable_ns;
  const int64_t busy = busy_ns - base->busy_ns;
  const int64_t on_cpu =
      Delta(kOpKernelOnCpu, sample->id, std::max<int64_t>(0, busy - blocked - runnable));
  const int64_t queued = Delta(kOpKernelRunnable, sample->id, std::max<int64_t>(0, runnable));
  if (!exact) return;
  sample->on_cpu_ns = on_cpu;
  sample->runnable_ns = queued;
  sample->time_source = "ebpf";
  if (sample->on_cpu_low_ns && sample->on_cpu_high_ns) {
    base->on_cpu_ns += on_cpu;
    base->clock_low_ns += *sample->on_cpu_low_ns;
    base->clock_high_ns += *sample->on_cpu_high_ns;
    const auto [low, high] = std::minmax(base->clock_low_ns, base->clock_high_ns);
    const int64_t residual = base->on_cpu_ns - std::clamp(base->on_cpu_ns, low, high);
    sample->residual_ns = residual - base->residual_ns;
    base->residual_ns = residual;
  }
  // What a hypervisor or an interrupt took from a thread is c to the kernel's programs and
  // not to the thread's clock; a switch they were not called for is the other way round.
  const int64_t excess = sample->residual_ns.value_or(0);
  sample->on_cpu_low_ns = on_cpu - std::clamp<int64_t>(excess, 0, on_cpu);
  sample->on_cpu_high_ns = on_cpu - std::min<int64_t>(excess, 0);
  sample->runnable_low_ns = queued + std::clamp<int64_t>(excess, -queued, 0);
  sample->runnable_high_ns = queued;
}

void Sampler::SampleQueues(const SegmentSnapshot& snapshot, IntervalSample* out) {
  for (size_t i = 0; i < snapshot.queues.size(); i++) {
    const SegmentSnapshot::Queue& q = snapshot.queues[i];
    QueueSample sample;
    const int64_t id = sample.id = static_cast<int64_t>(i);
    sample.name = q.name;
    if (q.producer_stage) sample.producer_stage_id = StageId(snapshot, *q.producer_stage);
    if (q.consumer_stage) sample.consumer_stage_id = StageId(snapshot, *q.consumer_stage);
    sample.capacity = q.capacity;
    sample.observed_ns = Delta(kQueueObserved, id, q.observed_ns);
    sample.occupancy_ns = Delta(kQueueOccupancy, id, q.occupancy_ns);
    sample.capacity_ns = Delta(kQueueCapacity, id, q.capacity_ns);
    sample.full_ns = Delta(kQueueFull, id, q.full_ns);
    sample.empty_ns = Delta(kQueueEmpty, id, q.empty_ns);
    sample.puts = Delta(kQueuePuts, id, q.puts);
    sample.gets = Delta(kQueueGets, id, q.gets);
    out->queues.push_back(std::move(sample));
  }
}

void Sampler::SampleResources(const SegmentSnapshot& snapshot, IntervalSample* out) {
  for (size_t i = 0; i < snapshot.resources.size(); i++) {
    const SegmentSnapshot::Resource& r = snapshot.resources[i];
    ResourceSample sample;
    const int64_t id = sample.id = static_cast<int64_t>(i);
    sample.name = r.name;
    sample.kind = ResourceKind(r);
    sample.servers = r.servers;
    sample.acquisitions = Delta(kResourceAcquisitions, id, r.acquisitions);
    sample.wait_ns = Delta(kResourceWait, id, r.wait_ns);
    sample.hold_ns = Delta(kResourceHold, id, r.hold_ns);
    sample.moved_bytes = Delta(kResourceBytes, id, r.moved_bytes);
    out->resources.push_back(std::move(sample));
  }
}

OperatorSample Sampler::SampleOperator(int64_t id, const SegmentSnapshot::Operator& o) {
  OperatorSample sample;
  sample.id = id;
  sample.name = o.name;
  sample.kind = o.kind;
  sample.completions = Delta(kOpCompletions, id, o.completions);
  sample.rows = Delta(kOpRows, id, o.rows);
  sample.enters = Delta(kOpEnters, id, o.enters);
  sample.in_bytes = Delta(kOpIn, id, o.in_bytes);
  sample.out_bytes = Delta(kOpOut, id, o.out_bytes);
  sample.busy_ns = Delta(kOpBusy, id, o.busy_ns);
  sample.lock_wait_ns = Delta(kOpLock, id, o.lock_wait_ns);
  sample.wait_in_ns = Delta(kOpWaitIn, id, o.wait_in_ns);
  sample.wait_out_ns = Delta(kOpWaitOut, id, o.wait_out_ns);
  if (!use_clock_) return sample;
  sample.on_cpu_ns = Delta(kOpOnCpu, id, o.on_cpu_ns);
  sample.on_cpu_low_ns = Delta(kOpOnCpuLow, id, o.on_cpu_low_ns);
  sample.on_cpu_high_ns = Delta(kOpOnCpuHigh, id, o.on_cpu_high_ns);
  return sample;
}

namespace {

// The threads of each stage; for a stage whose operators also run on threads of others, or none of
// its own, all threads.
std::map<int64_t, ThreadsTime> ThreadsByStage(const IntervalSample& sample) {
  // Share of the threads' lifetime, for reading them one after the other.
  constexpr double kSameTime = 0.02;
  constexpr int64_t kSameNs = 2'000'000;  // the same of short intervals
  struct Sum {
    ThreadsTime threads;
    int64_t accounted_ns = 0;
    bool known = false;
    void Add(const StageSample& s) {
      threads.lifetime_ns += s.lifetime_ns;
      threads.on_cpu_ns += s.on_cpu_ns.value_or(0);
      if (s.runnable_ns) threads.runnable_ns = threads.runnable_ns.value_or(0) + *s.runnable_ns;
      accounted_ns += s.unattributed_ns;
      known = s.on_cpu_ns.has_value();
    }
  };
  std::map<int64_t, Sum> sums;
  Sum all;
  for (const StageSample& s : sample.stages) {
    sums[s.id].Add(s);
    all.Add(s);
  }
  for (const OperatorSample& o : sample.operators) {
    sums[o.stage_id].accounted_ns += o.busy_ns + o.wait_in_ns + o.wait_out_ns;
  }
  std::map<int64_t, ThreadsTime> result;
  for (const auto& [id, sum] : sums) {
    const int64_t off = std::abs(sum.accounted_ns - sum.threads.lifetime_ns);
    const bool own =
        sum.known &&
        off <= kSameNs + static_cast<int64_t>(kSameTime * static_cast<double>(sum.accounted_ns));
    result[id] = own ? sum.threads : all.threads;
  }
  return result;
}

}  // namespace

// Gives every operator that the kernel's programs did not split what its c and q lie between. q is
// known per stage; as an estimate it is shared among operators in proportion to their time off the
// CPU, and is never more than that.
void Sampler::SplitTimes(IntervalSample* out) const {
  const std::map<int64_t, ThreadsTime> threads = ThreadsByStage(*out);
  std::map<int64_t, int64_t> off_cpu;  // inside operators, by stage
  const auto off = [](const OperatorSample& o) {
    return std::max<int64_t>(0, o.busy_ns - *o.on_cpu_ns);
  };
  for (const OperatorSample& o : out->operators) {
    if (o.time_source == "thread_clock") off_cpu[o.stage_id] += off(o);
  }
  for (OperatorSample& o : out->operators) {
    if (o.time_source == "ebpf") continue;
    const ThreadsTime& own = threads.at(o.stage_id);
    Bounds cpu = CpuBounds(own, o.busy_ns);
    if (o.on_cpu_low_ns && o.on_cpu_high_ns) cpu = {*o.on_cpu_low_ns, *o.on_cpu_high_ns};
    const Bounds runnable = RunnableBounds(own, o.busy_ns, cpu);
    o.on_cpu_low_ns = cpu.low_ns;
    o.on_cpu_high_ns = cpu.high_ns;
    o.runnable_low_ns = runnable.low_ns;
    o.runnable_high_ns = runnable.high_ns;
    const auto stage = std::find_if(out->stages.begin(), out->stages.end(),
                                    [&](const StageSample& s) { return s.id == o.stage_id; });
    if (!o.on_cpu_ns || stage == out->stages.end() || !stage->runnable_ns) continue;
    const int64_t total = off_cpu[o.stage_id];
    const double share = total > 0 ? static_cast<double>(off(o)) / static_cast<double>(total) : 0;
    const auto shared = static_cast<int64_t>(static_cast<double>(*stage->runnable_ns) * share);
    o.runnable_ns = std::clamp(std::min(off(o), shared), runnable.low_ns, runnable.high_ns);
  }
}

void Sampler::SampleSteps(const SegmentSnapshot& snapshot, IntervalSample* out) {
  StepSample& steps = out->steps;
  steps.steps = Delta(kSteps, 0, snapshot.steps_count);
  steps.rows = Delta(kStepsRows, 0, snapshot.step_rows);
  steps.wait_ns = Delta(kStepsWait, 0, snapshot.step_wait_ns);
  steps.compute_ns = Delta(kStepsCompute, 0, snapshot.step_compute_ns);
  losses_.steps += steps.steps;
  losses_.step_details += Delta(kStepsOverwritten, 0, snapshot.steps_overwritten);
  for (const SegmentSnapshot::Step& step : snapshot.steps) {
    const int64_t end = std::max<int64_t>(0, step.end_monotonic_ns - start_ns_);
    const int64_t begin = std::max<int64_t>(0, end - step.wait_ns - step.compute_ns);
    steps.first_ns = std::min(steps.first_ns.value_or(begin), begin);
    steps.last_ns = std::max(steps.last_ns.value_or(end), end);
    steps.durations_ns.push_back(step.wait_ns + step.compute_ns);
    steps.records.push_back({end, step.wait_ns, step.compute_ns, step.rows});
  }
}

}  // namespace headrace::collectors
