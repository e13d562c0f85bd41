#include "analysis/model/simulate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <utility>

#include "analysis/model/simulated_cost.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// What a thread does next with the element it holds.
enum class WorkPhase : uint8_t {
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
  WorkPhase phase = WorkPhase::kTake;
  bool gathering = false;  // within the takes of one firing
  bool waiting = false;    // for an element or for room
  std::vector<int> needs;  // elements still to take, by input
  int emits = 0;           // elements still to put
  uint64_t firing = 0;     // its number in the stage
  double since_s = 0;      // start of the present wait or segment
  double segment_s = 0;    // CPU demand of the present segment
  double scale = 1;        // the present operator's draw of its cost
};

// What a firing that is not due has put in, and whether that is all.
struct Early {
  int elements = 0;
  bool finished = false;
};

// Elements that are there but not due yet are counted in `size` alone.
struct Queue {
  int capacity = 1, size = 0, level = 0;
  bool ordered = false;
  uint64_t window = 0, due = 0;
  std::deque<Early> early;  // of the firing that is due, the next, and so on
  double since_s = 0;
  std::deque<size_t> putters, takers;  // waiting threads, first come first served
};

// Amounts that are fractions of an element: what is left over adds up.
class Credit {
 public:
  explicit Credit(double each = 1) : each_(each) {}
  int Next() {
    left_ += each_;
    const double whole = std::floor(left_ + 1e-9);
    left_ -= whole;
    return static_cast<int>(whole);
  }

 private:
  double each_, left_ = 0;
};

struct Input {
  size_t queue;
  Credit take;
};

struct Resource {
  int free = 1;
  std::deque<size_t> waiters;
};

// `kCounts`: with counters and with costs by chance; else only the time of the steps is told, and
// each firing has its cost.
template <bool kCounts>
class Simulation {
 public:
  Simulation(const SimulatedPipeline& pipeline, uint64_t seed)
      : pipeline_(pipeline), random_(seed), step_cost_(pipeline.consumer_cv, 0, seed) {
    const size_t n = pipeline.stages.size();
    for (size_t s = 0; s < n; ++s) {
      const SimulatedStage& stage = pipeline.stages[s];
      counters_.operators.emplace_back(stage.operators.size());
      std::vector<SimulatedCost>& costs = costs_.emplace_back();
      for (const SimulatedOperator& op : stage.operators) {
        costs.emplace_back(op.cv, op.slow, seed + 1000 * (s + 1) + costs.size() + 1);
      }
      Queue& queue = queues_.emplace_back();
      queue.capacity = std::max(1, stage.queue_capacity);
      queue.ordered = stage.ordered;
      queue.window = static_cast<uint64_t>(std::max(0, stage.window));
      emits_.emplace_back(stage.emit);
      std::vector<Input>& inputs = inputs_.emplace_back();
      if (stage.inputs) {
        for (const SimulatedInput& input : *stage.inputs) {
          inputs.push_back({input.stage, Credit(input.take)});
        }
      } else if (s > 0) {
        inputs.push_back({s - 1, Credit()});
      }
      for (int i = 0; i < std::max(1, stage.parallelism); ++i) threads_.emplace_back().stage = s;
    }
    threads_.emplace_back().stage = n;
    inputs_.emplace_back();
    if (n > 0) inputs_[n].push_back({n - 1, Credit(pipeline.consumer_take)});
    firings_.assign(n + 1, 0);
    counters_.queues.resize(n);
    counters_.resources.resize(pipeline.resources.size());
    for (const SimulatedResource& resource : pipeline.resources) {
      resources_.emplace_back().free = std::max(1, resource.servers);
    }
  }

  SimulatedCounters Run(double duration_s, int64_t max_steps, double period_s,
                        const std::function<void(const SimulatedCounters&)>& snapshot) {
    for (size_t i = 0; i < threads_.size() && MayMove(); ++i) Resume(i);
    double next_snapshot_s = period_s > 0 ? period_s : kNever;
    while ((max_steps == 0 || counters_.steps < max_steps) && MayMove()) {
      const double timer_s = timers_.empty() ? kNever : timers_.top().first;
      const double rate = Rate();
      const double cpu_s = cpu_.empty() ? kNever : now_ + (cpu_.top().first - virtual_) / rate;
      const double next_s = std::max(now_, std::min(timer_s, cpu_s));
      while (period_s > 0 && next_snapshot_s <= std::min(next_s, duration_s)) {
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
      Resume(thread);
    }
    Settle();
    return counters_;
  }

  // Ends when so many moves were made; they are counted there.
  void Limit(int64_t* moves) { moves_ = moves; }
  // When that step ended; negative before it did.
  void Mark(int64_t step) { mark_ = step; }
  double marked_s() const { return marked_s_; }

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
    if constexpr (!kCounts) return;
    Queue& queue = queues_[i];
    const double elapsed = now_ - queue.since_s;
    SimulatedCounters::QueueTimes& times = counters_.queues[i];
    times.occupancy_s += elapsed * queue.size;
    if (queue.size >= queue.capacity) times.full_s += elapsed;
    if (queue.size == 0) times.empty_s += elapsed;
    queue.since_s = now_;
  }

  // The present segment of `thread` is over: books it.
  void Finish(size_t index) {
    Thread& thread = threads_[index];
    const double elapsed = now_ - thread.since_s;
    if (IsConsumer(thread)) {
      counters_.step_compute_s += elapsed;
      if (thread.phase == WorkPhase::kCpu) {
        thread.phase = WorkPhase::kBlocked;
        return;
      }
      if (++counters_.steps == mark_) marked_s_ = now_;
      thread.phase = WorkPhase::kTake;
      return;
    }
    if constexpr (kCounts) CountSegment(thread, elapsed);
    thread.phase = static_cast<WorkPhase>(static_cast<int>(thread.phase) + 1);
  }

  void CountSegment(const Thread& thread, double elapsed) {
    SimulatedCounters::OperatorTimes& times = Times(thread);
    switch (thread.phase) {
      case WorkPhase::kCpu:
      case WorkPhase::kHeldCpu:
        times.cpu_s += thread.segment_s;
        times.runnable_s += std::max(0.0, elapsed - thread.segment_s);
        break;
      default:
        times.blocked_s += elapsed;
    }
    if (thread.phase == WorkPhase::kHeldCpu || thread.phase == WorkPhase::kHeldBlocked) {
      counters_.resources[static_cast<size_t>(Current(thread).resource)].hold_s += elapsed;
    }
  }

  // Takes `thread`, and all that it sets free, through their programs until they must wait or work.
  void Resume(size_t index) {
    pending_.push_back(index);
    while (!pending_.empty()) {
      const size_t next = pending_.front();
      pending_.pop_front();
      while (MayMove() && Step(next)) {
      }
    }
  }

  // Whether the limit allows one more move, which is then counted.
  bool MayMove() { return moves_ == nullptr || (*moves_)-- > 0; }

  bool StartCpu(size_t index, double demand_s) {
    Thread& thread = threads_[index];
    if (demand_s <= 0) {
      thread.phase = static_cast<WorkPhase>(static_cast<int>(thread.phase) + 1);
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
      thread.phase = static_cast<WorkPhase>(static_cast<int>(thread.phase) + 1);
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
      if (thread.phase == WorkPhase::kTake) {
        if (!Take(index)) return false;
        thread.scale = kCounts ? step_cost_.Draw(&random_)
                               : step_cost_.Draw(static_cast<uint64_t>(counters_.steps));
        thread.phase = WorkPhase::kCpu;
      }
      if (thread.phase == WorkPhase::kCpu && !StartCpu(index, pipeline_.consumer_cpu_s))
        return false;
      return StartTimer(index, pipeline_.consumer_s * thread.scale);
    }
    switch (thread.phase) {
      case WorkPhase::kTake:
        if (!Take(index)) return false;
        thread.operator_index = 0;
        thread.scale = DrawOf(thread);
        thread.phase = WorkPhase::kCpu;
        return true;
      case WorkPhase::kCpu:
        return StartCpu(index, Current(thread).cpu_s * thread.scale);
      case WorkPhase::kBlocked:
        return StartTimer(index, Current(thread).blocked_s * thread.scale);
      case WorkPhase::kAcquire:
        if (Current(thread).resource >= 0) return Acquire(index);
        thread.phase = WorkPhase::kRelease;
        return true;
      case WorkPhase::kHeldCpu:
        return StartCpu(index, Current(thread).held_cpu_s * thread.scale);
      case WorkPhase::kHeldBlocked:
        return StartTimer(index, Current(thread).held_blocked_s * thread.scale);
      case WorkPhase::kRelease:
        Release(thread);
        ++Times(thread).completions;
        if (thread.operator_index + 1 < pipeline_.stages[thread.stage].operators.size()) {
          ++thread.operator_index;
          thread.scale = DrawOf(thread);
          thread.phase = WorkPhase::kCpu;
        } else {
          thread.emits = emits_[thread.stage].Next();
          thread.phase = WorkPhase::kPut;
        }
        return true;
      case WorkPhase::kPut:
        if (!Put(index)) return false;
        thread.phase = WorkPhase::kTake;
        return true;
    }
    return false;
  }

  double DrawOf(const Thread& thread) {
    const SimulatedCost& cost = costs_[thread.stage][thread.operator_index];
    return kCounts ? cost.Draw(&random_) : cost.Draw(thread.firing);
  }

  void BeginWait(Thread* thread) {
    if (!thread->waiting) thread->since_s = now_;
    thread->waiting = true;
  }

  // All that one firing takes; false when it must wait for some of it.
  bool Take(size_t index) {
    Thread& thread = threads_[index];
    std::vector<Input>& inputs = inputs_[thread.stage];
    if (!thread.gathering) {
      thread.gathering = true;
      thread.needs.clear();
      for (Input& input : inputs) thread.needs.push_back(input.take.Next());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (; thread.needs[i] > 0; --thread.needs[i]) {
        Queue& queue = queues_[inputs[i].queue];
        if (queue.level == 0) {
          BeginWait(&thread);
          queue.takers.push_back(index);
          return false;
        }
        TakeOne(inputs[i].queue);
      }
    }
    if (thread.waiting) {
      thread.waiting = false;
      const double waited = now_ - thread.since_s;
      if (IsConsumer(thread)) {
        counters_.step_wait_s += waited;
      } else {
        thread.operator_index = 0;
        Times(thread).wait_in_s += waited;
      }
    }
    thread.gathering = false;
    // Numbered by what was taken, not by who began to wait: another may have been quicker.
    thread.firing = firings_[thread.stage]++;
    return true;
  }

  void TakeOne(size_t number) {
    Queue& queue = queues_[number];
    Settle(number);
    --queue.level;
    --queue.size;
    ++counters_.queues[number].gets;
    WakePutters(&queue);
  }

  // An ordered queue may have room for any of those who wait.
  void WakePutters(Queue* queue) {
    for (bool more = true; more && !queue->putters.empty(); more = queue->ordered) {
      pending_.push_back(queue->putters.front());
      queue->putters.pop_front();
    }
  }
  void WakeTakers(Queue* queue, int elements) {
    for (; elements > 0 && !queue->takers.empty(); --elements) {
      pending_.push_back(queue->takers.front());
      queue->takers.pop_front();
    }
  }

  // All that one firing emits; false when some of it must wait for room.
  bool Put(size_t index) {
    Thread& thread = threads_[index];
    Queue& queue = queues_[thread.stage];
    for (; thread.emits > 0; --thread.emits) {
      const bool due = !queue.ordered || thread.firing == queue.due;
      const bool room = queue.size < queue.capacity && (!queue.ordered || queue.window == 0 ||
                                                        thread.firing - queue.due < queue.window);
      // Those that came too early must not keep out the one that all wait for.
      if (!room && !(queue.ordered && due && queue.level == 0)) {
        BeginWait(&thread);
        queue.putters.push_back(index);
        return false;
      }
      Settle(thread.stage);
      ++queue.size;
      ++counters_.queues[thread.stage].puts;
      if (due) {
        ++queue.level;
        WakeTakers(&queue, 1);
      } else {
        ++EarlyOf(&queue, thread.firing)->elements;
      }
    }
    if (thread.waiting) {
      thread.waiting = false;
      Times(thread).wait_out_s += now_ - thread.since_s;
    }
    if (queue.ordered) FinishFiring(&queue, thread.firing);
    return true;
  }

  static Early* EarlyOf(Queue* queue, uint64_t firing) {
    const size_t ahead = static_cast<size_t>(firing - queue->due);
    if (queue->early.size() <= ahead) queue->early.resize(ahead + 1);
    return &queue->early[ahead];
  }

  void FinishFiring(Queue* queue, uint64_t firing) {
    EarlyOf(queue, firing)->finished = true;
    if (firing != queue->due) return;
    while (!queue->early.empty() && queue->early.front().finished) {
      ++queue->due;
      queue->early.pop_front();
      if (queue->early.empty()) break;
      Early& next = queue->early.front();
      queue->level += next.elements;
      WakeTakers(queue, next.elements);
      next.elements = 0;
    }
    WakePutters(queue);
  }

  bool Acquire(size_t index) {
    Thread& thread = threads_[index];
    const size_t number = static_cast<size_t>(Current(thread).resource);
    if (resources_[number].free == 0) {
      thread.since_s = now_;
      resources_[number].waiters.push_back(index);
      return false;
    }
    --resources_[number].free;
    ++counters_.resources[number].acquisitions;
    thread.phase = WorkPhase::kHeldCpu;
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
    next.phase = WorkPhase::kHeldCpu;
    pending_.push_back(waiting);
  }

  const SimulatedPipeline& pipeline_;
  Random random_;
  SimulatedCost step_cost_;
  std::vector<std::vector<SimulatedCost>> costs_;  // by stage, by operator
  double now_ = 0, virtual_ = 0;
  Heap timers_, cpu_;
  std::vector<Thread> threads_;
  std::vector<Queue> queues_;
  std::vector<Resource> resources_;
  std::vector<std::vector<Input>> inputs_;  // by stage; the consumer's last
  std::vector<Credit> emits_;
  std::vector<uint64_t> firings_;  // begun, by stage
  std::deque<size_t> pending_;     // threads that may go on
  int64_t mark_ = 0;
  double marked_s_ = -1;
  int64_t* moves_ = nullptr;
  SimulatedCounters counters_;
};

// The same work in fewer operators: what a firing does one after another without a shared resource
// is one operator, whose cost varies as their sum does.
SimulatedPipeline Fused(const SimulatedPipeline& pipeline) {
  SimulatedPipeline fused = pipeline;
  for (SimulatedStage& stage : fused.stages) {
    std::vector<SimulatedOperator> operators;
    for (const SimulatedOperator& op : stage.operators) {
      const bool fuses = !operators.empty() && operators.back().resource < 0 && op.resource < 0;
      if (!fuses) {
        operators.push_back(op);
        continue;
      }
      SimulatedOperator& last = operators.back();
      const double before_s = last.cpu_s + last.blocked_s, added_s = op.cpu_s + op.blocked_s;
      const double sum_s = before_s + added_s;
      if (sum_s > 0) last.cv = std::hypot(last.cv * before_s, op.cv * added_s) / sum_s;
      last.cpu_s += op.cpu_s;
      last.blocked_s += op.blocked_s;
      last.slow = std::max(last.slow, op.slow);
    }
    stage.operators = std::move(operators);
  }
  return fused;
}

}  // namespace

SimulatedCounters Simulate(const SimulatedPipeline& pipeline, double duration_s, int64_t max_steps,
                           uint64_t seed, double period_s,
                           const std::function<void(const SimulatedCounters&)>& snapshot) {
  return Simulation<true>(pipeline, seed).Run(duration_s, max_steps, period_s, snapshot);
}

std::optional<double> SimulatedRate(const SimulatedPipeline& pipeline, int64_t steps, uint64_t seed,
                                    int64_t* moves, int64_t most) {
  // Work that takes no time at all would never let the clock move.
  double work_s = pipeline.consumer_s + pipeline.consumer_cpu_s;
  for (const SimulatedStage& stage : pipeline.stages) {
    for (const SimulatedOperator& op : stage.operators) {
      work_s += op.cpu_s + op.blocked_s + op.held_cpu_s + op.held_blocked_s;
    }
  }
  if (work_s <= 0) return kNever;
  const double limit_s = work_s * static_cast<double>(steps) * 50;
  const int64_t first = std::max<int64_t>(1, steps / 5);
  const SimulatedPipeline fused = Fused(pipeline);
  Simulation<false> simulation(fused, seed);
  simulation.Mark(first);
  const int64_t given = moves != nullptr ? std::min(*moves, most) : most;
  int64_t left = given;
  simulation.Limit(&left);
  const SimulatedCounters end = simulation.Run(limit_s, steps, 0, {});
  if (moves != nullptr) *moves -= given - std::max<int64_t>(0, left);
  if (end.steps <= first || end.time_s <= simulation.marked_s()) return std::nullopt;
  return static_cast<double>(end.steps - first) / (end.time_s - simulation.marked_s());
}

}  // namespace headrace::analysis
