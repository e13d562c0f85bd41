#include "analysis/simulate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <utility>

#include "analysis/statistics.h"

namespace headrace::analysis {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// What a thread does next with the element it holds.
enum class Phase : uint8_t {
  kTake,
  kCpu,
  kBlocked,
  kAcquire,
  kHeldCpu,
  kHeldBlocked,
  kRelease,
  kPut
};

struct Thread {
  size_t stage = 0;  // stages.size() for the consumer
  size_t operator_index = 0;
  Phase phase = Phase::kTake;
  double since_s = 0;    // start of the present wait or segment
  double segment_s = 0;  // CPU demand of the present segment
  double scale = 1;      // the present operator's draw of its cost
  double step_wait_s = 0;
};

struct Queue {
  int capacity = 1, level = 0;
  double since_s = 0;
  std::deque<size_t> putters, takers;  // waiting threads, first come first served
};

struct Resource {
  int free = 1;
  std::deque<size_t> waiters;
};

class Simulation {
 public:
  Simulation(const SimulatedPipeline& pipeline, uint64_t seed)
      : pipeline_(pipeline), random_(seed) {
    const size_t n = pipeline.stages.size();
    for (size_t s = 0; s < n; ++s) {
      const SimulatedStage& stage = pipeline.stages[s];
      counters_.operators.emplace_back(stage.operators.size());
      queues_.emplace_back().capacity = std::max(1, stage.queue_capacity);
      for (int i = 0; i < std::max(1, stage.parallelism); ++i) threads_.emplace_back().stage = s;
    }
    threads_.emplace_back().stage = n;
    counters_.queues.resize(n);
    counters_.resources.resize(pipeline.resources.size());
    for (const SimulatedResource& resource : pipeline.resources) {
      resources_.emplace_back().free = std::max(1, resource.servers);
    }
  }

  SimulatedCounters Run(double duration_s, int64_t max_steps, double period_s,
                        const std::function<void(const SimulatedCounters&)>& snapshot) {
    for (size_t i = 0; i < threads_.size(); ++i) Advance(i);
    double next_snapshot_s = period_s > 0 ? period_s : kNever;
    while (max_steps == 0 || counters_.steps < max_steps) {
      const double timer_s = timers_.empty() ? kNever : timers_.top().first;
      const double rate = Rate();
      const double cpu_s = cpu_.empty() ? kNever : now_ + (cpu_.top().first - virtual_) / rate;
      const double next_s = std::max(now_, std::min(timer_s, cpu_s));
      while (next_snapshot_s <= std::min(next_s, duration_s)) {
        MoveTo(next_snapshot_s, rate);
        Settle();
        if (snapshot) snapshot(counters_);
        next_snapshot_s += period_s;
      }
      if (next_s == kNever || next_s > duration_s) {
        MoveTo(std::min(duration_s, next_s), rate);
        break;
      }
      MoveTo(next_s, rate);
      size_t thread;
      if (cpu_s <= timer_s) {
        virtual_ = cpu_.top().first;
        thread = cpu_.top().second;
        cpu_.pop();
      } else {
        thread = timers_.top().second;
        timers_.pop();
      }
      Finish(thread);
      Advance(thread);
    }
    Settle();
    return counters_;
  }

 private:
  using Event = std::pair<double, size_t>;
  using Heap = std::priority_queue<Event, std::vector<Event>, std::greater<>>;

  double Rate() const {
    return cpu_.empty() ? 1 : std::min(1.0, pipeline_.cores / static_cast<double>(cpu_.size()));
  }
  void MoveTo(double time_s, double rate) {
    virtual_ += (time_s - now_) * rate;
    now_ = time_s;
  }
  bool IsConsumer(const Thread& thread) const { return thread.stage == pipeline_.stages.size(); }
  const SimulatedOperator& Current(const Thread& thread) const {
    return pipeline_.stages[thread.stage].operators[thread.operator_index];
  }
  SimulatedCounters::OperatorTimes& Times(const Thread& thread) {
    return counters_.operators[thread.stage][thread.operator_index];
  }

  // Brings the queues' time integrals up to now.
  void Settle() {
    for (size_t i = 0; i < queues_.size(); ++i) Settle(i);
    counters_.time_s = now_;
  }
  void Settle(size_t i) {
    Queue& queue = queues_[i];
    const double elapsed = now_ - queue.since_s;
    SimulatedCounters::QueueTimes& times = counters_.queues[i];
    times.occupancy_s += elapsed * queue.level;
    if (queue.level >= queue.capacity) times.full_s += elapsed;
    if (queue.level == 0) times.empty_s += elapsed;
    queue.since_s = now_;
  }

  // The present segment of `thread` is over: books it.
  void Finish(size_t index) {
    Thread& thread = threads_[index];
    const double elapsed = now_ - thread.since_s;
    if (IsConsumer(thread)) {
      counters_.step_compute_s += elapsed;
      ++counters_.steps;
      thread.phase = Phase::kTake;
      return;
    }
    SimulatedCounters::OperatorTimes& times = Times(thread);
    switch (thread.phase) {
      case Phase::kCpu:
      case Phase::kHeldCpu:
        times.cpu_s += thread.segment_s;
        times.runnable_s += std::max(0.0, elapsed - thread.segment_s);
        break;
      default:
        times.blocked_s += elapsed;
    }
    if (thread.phase == Phase::kHeldCpu || thread.phase == Phase::kHeldBlocked) {
      counters_.resources[static_cast<size_t>(Current(thread).resource)].hold_s += elapsed;
    }
    thread.phase = static_cast<Phase>(static_cast<int>(thread.phase) + 1);
  }

  // Takes `thread` through its program until it must wait or work.
  void Advance(size_t index) {
    while (Step(index)) {
    }
  }

  bool StartCpu(size_t index, double demand_s) {
    Thread& thread = threads_[index];
    if (demand_s <= 0) {
      thread.phase = static_cast<Phase>(static_cast<int>(thread.phase) + 1);
      return true;
    }
    thread.segment_s = demand_s;
    thread.since_s = now_;
    cpu_.push({virtual_ + demand_s, index});
    return false;
  }
  bool StartTimer(size_t index, double delay_s) {
    Thread& thread = threads_[index];
    if (delay_s <= 0 && !IsConsumer(thread)) {
      thread.phase = static_cast<Phase>(static_cast<int>(thread.phase) + 1);
      return true;
    }
    thread.since_s = now_;
    timers_.push({now_ + delay_s, index});
    return false;
  }

  // One move; false when the thread now waits or works.
  bool Step(size_t index) {
    Thread& thread = threads_[index];
    if (IsConsumer(thread)) {
      if (!Take(index)) return false;
      thread.phase = Phase::kBlocked;
      return StartTimer(index, random_.LogNormal(pipeline_.consumer_s, pipeline_.consumer_cv));
    }
    switch (thread.phase) {
      case Phase::kTake:
        if (thread.stage > 0 && !Take(index)) return false;
        thread.operator_index = 0;
        thread.scale = random_.LogNormal(1, Current(thread).cv);
        thread.phase = Phase::kCpu;
        return true;
      case Phase::kCpu:
        return StartCpu(index, Current(thread).cpu_s * thread.scale);
      case Phase::kBlocked:
        return StartTimer(index, Current(thread).blocked_s * thread.scale);
      case Phase::kAcquire:
        return Acquire(index);
      case Phase::kHeldCpu:
        return StartCpu(index, Current(thread).held_cpu_s * thread.scale);
      case Phase::kHeldBlocked:
        return StartTimer(index, Current(thread).held_blocked_s * thread.scale);
      case Phase::kRelease:
        Release(thread);
        ++Times(thread).completions;
        if (thread.operator_index + 1 < pipeline_.stages[thread.stage].operators.size()) {
          ++thread.operator_index;
          thread.scale = random_.LogNormal(1, Current(thread).cv);
          thread.phase = Phase::kCpu;
        } else {
          thread.phase = Phase::kPut;
        }
        return true;
      case Phase::kPut:
        if (!Put(index)) return false;
        thread.phase = Phase::kTake;
        return true;
    }
    return false;
  }

  bool Take(size_t index) {
    Thread& thread = threads_[index];
    const size_t number = thread.stage - 1;
    Queue& queue = queues_[number];
    if (queue.level == 0) {
      thread.since_s = now_;
      queue.takers.push_back(index);
      return false;
    }
    Settle(number);
    --queue.level;
    ++counters_.queues[number].gets;
    if (!queue.putters.empty()) {
      const size_t waiting = queue.putters.front();
      queue.putters.pop_front();
      Thread& producer = threads_[waiting];
      Times(producer).wait_out_s += now_ - producer.since_s;
      ++queue.level;
      ++counters_.queues[number].puts;
      producer.phase = Phase::kTake;
      pending_.push_back(waiting);
      RunPending();
    }
    return true;
  }

  bool Put(size_t index) {
    Thread& thread = threads_[index];
    Queue& queue = queues_[thread.stage];
    if (queue.level >= queue.capacity) {
      thread.since_s = now_;
      queue.putters.push_back(index);
      return false;
    }
    Settle(thread.stage);
    ++queue.level;
    ++counters_.queues[thread.stage].puts;
    if (!queue.takers.empty()) {
      const size_t waiting = queue.takers.front();
      queue.takers.pop_front();
      Thread& taker = threads_[waiting];
      const double waited = now_ - taker.since_s;
      if (IsConsumer(taker)) {
        counters_.step_wait_s += waited;
      } else {
        taker.operator_index = 0;
        Times(taker).wait_in_s += waited;
      }
      pending_.push_back(waiting);
      RunPending();
    }
    return true;
  }

  bool Acquire(size_t index) {
    Thread& thread = threads_[index];
    if (Current(thread).resource < 0) {
      thread.phase = Phase::kRelease;
      return true;
    }
    const size_t number = static_cast<size_t>(Current(thread).resource);
    if (resources_[number].free == 0) {
      thread.since_s = now_;
      resources_[number].waiters.push_back(index);
      return false;
    }
    --resources_[number].free;
    ++counters_.resources[number].acquisitions;
    thread.phase = Phase::kHeldCpu;
    return true;
  }

  void Release(const Thread& thread) {
    if (Current(thread).resource < 0) return;
    const size_t number = static_cast<size_t>(Current(thread).resource);
    Resource& resource = resources_[number];
    ++resource.free;
    if (resource.waiters.empty()) return;
    const size_t waiting = resource.waiters.front();
    resource.waiters.pop_front();
    Thread& next = threads_[waiting];
    const double waited = now_ - next.since_s;
    Times(next).lock_wait_s += waited;
    Times(next).blocked_s += waited;
    counters_.resources[number].wait_s += waited;
    --resource.free;
    ++counters_.resources[number].acquisitions;
    next.phase = Phase::kHeldCpu;
    pending_.push_back(waiting);
    RunPending();
  }

  // Threads that can go on are advanced from a list, not by recursion through a long chain. A taker
  // that was woken finds its element still there: it is the first of the list at that queue.
  void RunPending() {
    if (running_pending_) return;
    running_pending_ = true;
    while (!pending_.empty()) {
      const size_t next = pending_.front();
      pending_.pop_front();
      Advance(next);
    }
    running_pending_ = false;
  }

  const SimulatedPipeline& pipeline_;
  Random random_;
  double now_ = 0, virtual_ = 0;
  Heap timers_, cpu_;
  std::vector<Thread> threads_;
  std::vector<Queue> queues_;
  std::vector<Resource> resources_;
  std::deque<size_t> pending_;
  bool running_pending_ = false;
  SimulatedCounters counters_;
};

}  // namespace

SimulatedCounters Simulate(const SimulatedPipeline& pipeline, double duration_s, int64_t max_steps,
                           uint64_t seed, double period_s,
                           const std::function<void(const SimulatedCounters&)>& snapshot) {
  return Simulation(pipeline, seed).Run(duration_s, max_steps, period_s, snapshot);
}

double SimulatedRate(const SimulatedPipeline& pipeline, int64_t steps, uint64_t seed) {
  // Work that takes no time at all would never let the clock move.
  double work_s = pipeline.consumer_s;
  for (const SimulatedStage& stage : pipeline.stages) {
    for (const SimulatedOperator& op : stage.operators) {
      work_s += op.cpu_s + op.blocked_s + op.held_cpu_s + op.held_blocked_s;
    }
  }
  if (work_s <= 0) return kNever;
  const double limit_s = work_s * static_cast<double>(steps) * 50;
  double warm_s = 0;
  int64_t warm_steps = 0;
  const int64_t first = std::max<int64_t>(1, steps / 5);
  const SimulatedCounters start = Simulate(pipeline, limit_s, first, seed);
  warm_s = start.time_s;
  warm_steps = start.steps;
  const SimulatedCounters end = Simulate(pipeline, limit_s, steps, seed);
  if (end.steps <= warm_steps || end.time_s <= warm_s) return 0;
  return static_cast<double>(end.steps - warm_steps) / (end.time_s - warm_s);
}

}  // namespace headrace::analysis
