// Sampler: turns cumulative readings of one process's accounts into deltas. Deltas are never
// negative: if an estimate was too high, the next intervals get less.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectors/split_bounds.h"
#include "collectors/store/store.h"
#include "probes/account/account_segment.h"
#include "probes/process.h"

namespace headrace::collectors {

// What the kernel counted for an operator's threads since a fixed start (level 3).
struct KernelSplit {
  int64_t blocked_ns = 0, runnable_ns = 0;
};
using KernelSplits = std::map<uint32_t, KernelSplit>;  // by operator index

class Sampler {
 public:
  // `start_ns`: CLOCK_MONOTONIC instant of the run's start. Accounts that existed before the run
  // are read once, and only what comes later is counted. `use_clock`: false leaves out figures from
  // the thread CPU clock (level 1).
  Sampler(int64_t pid, int64_t start_ns, account::AccountSegment segment, bool alive,
          bool use_clock);

  const account::AccountSegment& segment() const { return segment_; }

  // What happened since the last call. Entities have the segment's numbers; threads that joined no
  // stage have stage HR_MAX_STAGES. `splits` is null below level 3. Throws Error when the segment
  // is damaged.
  IntervalSample Take(bool alive, const KernelSplits* splits);
  // The single steps that the last call of Take saw.
  const std::vector<account::SegmentSnapshot::Step>& last_steps() const { return last_steps_; }
  // Occupancy and capacity of the queues now.
  const std::vector<account::SegmentSnapshot::Queue>& last_queues() const { return last_queues_; }
  // How long the thread that waits longest has been waiting for an upstream element.
  int64_t waiting_ns() const { return waiting_ns_; }

  // True once the process has closed its accounts in order.
  bool closed() const { return closed_; }
  bool schedstat_readable() const { return schedstat_readable_; }

  struct Losses {
    std::map<std::string, int64_t>
        over_limit;  // registrations and threads the segment had no room for
    int64_t step_details = 0, steps = 0;
  };
  const Losses& losses() const { return losses_; }

 private:
  // Cumulative figures of entities; Delta gets the entity's id (operator, stage, ...).
  enum Field {
    kStageParallelism,
    kStageObserved,
    kStageLifetime,
    kStageUnattributed,
    kStageOnCpu,
    kStageRunnable,
    kOpCompletions,
    kOpRows,
    kOpEnters,
    kOpIn,
    kOpOut,
    kOpBusy,
    kOpLock,
    kOpWaitIn,
    kOpWaitOut,
    kOpOnCpu,
    kOpOnCpuLow,
    kOpOnCpuHigh,
    kOpKernelOnCpu,
    kOpKernelRunnable,
    kQueueObserved,
    kQueueOccupancy,
    kQueueCapacity,
    kQueueFull,
    kQueueEmpty,
    kQueuePuts,
    kQueueGets,
    kResourceAcquisitions,
    kResourceWait,
    kResourceHold,
    kResourceBytes,
    kSteps,
    kStepsRows,
    kStepsWait,
    kStepsCompute,
    kStepsOverwritten,
    kNumFields
  };
  // Growth of the figure since the previous call.
  int64_t Delta(Field field, int64_t id, int64_t now);
  std::optional<int64_t> Delta(Field field, int64_t id, std::optional<int64_t> now);
  account::SegmentSnapshot ReadSegment(bool alive);
  // The thread id in our pid namespace; the accounts have the id in the process's own namespace.
  int64_t TidHere(int64_t own_tid);
  struct SplitBase {
    int64_t busy_ns = 0;
    KernelSplit split;
    // Since then: c by the kernel's count, and its bounds by the thread CPU clock.
    int64_t on_cpu_ns = 0, clock_low_ns = 0, clock_high_ns = 0;
    int64_t residual_ns = 0;  // part of it already in samples
  };

  void SampleSegment(const account::SegmentSnapshot& snapshot, const KernelSplits* splits,
                     IntervalSample* out);
  void SampleStages(const account::SegmentSnapshot& snapshot, IntervalSample* out);
  void SampleOperators(const account::SegmentSnapshot& snapshot, const KernelSplits* splits,
                       IntervalSample* out);
  OperatorSample SampleOperator(int64_t id, const account::SegmentSnapshot::Operator& o);
  // Takes an operator's c and q from what the kernel counted since `base`. Not `exact`: part of its
  // work was before the kernel's counts begin; the sample then keeps what the clock gave.
  void TakeKernelSplit(int64_t busy_ns, const KernelSplit& now, bool exact, SplitBase* base,
                       OperatorSample* sample);
  void SplitTimes(IntervalSample* out) const;
  void SampleQueues(const account::SegmentSnapshot& snapshot, IntervalSample* out);
  void SampleResources(const account::SegmentSnapshot& snapshot, IntervalSample* out);
  void SampleSteps(const account::SegmentSnapshot& snapshot, IntervalSample* out);

  int64_t pid_, start_ns_;
  bool use_clock_;
  account::AccountSegment segment_;
  // By the process's own thread ids, where these differ from ours.
  std::map<int64_t, int64_t> tids_;
  int64_t next_tids_ns_ = 0;
  probes::TaskTimeReader task_times_;
  std::array<std::vector<int64_t>, kNumFields> last_;
  std::map<uint32_t, SplitBase> split_base_;
  bool split_begun_ = false;
  // The kernel's counts were read at a time when no operator had worked yet.
  bool watched_since_idle_ = false;
  std::vector<account::SegmentSnapshot::Step> last_steps_;
  std::vector<account::SegmentSnapshot::Queue> last_queues_;
  int64_t waiting_ns_ = 0;
  bool closed_ = false, schedstat_readable_ = false;
  Losses losses_;
};

}  // namespace headrace::collectors
