// Sampler: turns cumulative readings of one process's accounts into deltas. Deltas never become
// negative: an estimate that turned out too high is paid back by the next intervals.
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

// What the kernel saw of an operator's threads since some begin (level 3).
struct KernelSplit {
  int64_t blocked_ns = 0, runnable_ns = 0;
};
using KernelSplits = std::map<uint32_t, KernelSplit>;  // by operator index

class Sampler {
 public:
  // `start_ns`: CLOCK_MONOTONIC instant of the run's start. Accounts that existed before are read
  // once, and only what comes later is counted. `use_clock`: false leaves out what the accounts
  // have from the thread CPU clock (level 1).
  Sampler(int64_t pid, int64_t start_ns, account::AccountSegment segment, bool alive,
          bool use_clock);

  const account::AccountSegment& segment() const { return segment_; }

  // What happened since the last call: entities numbered as in the segment, the stage of threads
  // that joined none being HR_MAX_STAGES. `splits` is null below level 3. Throws Error when the
  // segment is damaged.
  IntervalSample Take(bool alive, const KernelSplits* splits);
  // The steps of that call, one by one.
  const std::vector<account::SegmentSnapshot::Step>& last_steps() const { return last_steps_; }
  // Occupancy and capacity of the queues now.
  const std::vector<account::SegmentSnapshot::Queue>& last_queues() const { return last_queues_; }
  // The longest time for which a thread has now been waiting for an upstream element.
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
  // Cumulative figures; what each belongs to (operator, stage, ...) has a number.
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
  // Growth since the last time.
  int64_t Delta(Field field, int64_t id, int64_t now);
  std::optional<int64_t> Delta(Field field, int64_t id, std::optional<int64_t> now);
  account::SegmentSnapshot ReadSegment(bool alive);
  // A thread's number here; the accounts have the process's own, of its pid namespace.
  int64_t TidHere(int64_t own_tid);
  void SampleSegment(const account::SegmentSnapshot& snapshot, const KernelSplits* splits,
                     IntervalSample* out);
  OperatorSample SampleOperator(int64_t id, const account::SegmentSnapshot::Operator& o);
  void SplitTimes(IntervalSample* out) const;
  void SampleSteps(const account::SegmentSnapshot& snapshot, IntervalSample* out);

  struct SplitBase {
    int64_t busy_ns = 0;
    KernelSplit split;
    // Since then: c by the kernel, and what it lies between by the thread CPU clock.
    int64_t on_cpu_ns = 0, clock_low_ns = 0, clock_high_ns = 0;
    int64_t residual_ns = 0;  // given out so far
  };

  int64_t pid_, start_ns_;
  bool use_clock_;
  account::AccountSegment segment_;
  std::map<int64_t, int64_t> tids_;  // by the process's own numbers, where these are others
  int64_t next_tids_ns_ = 0;
  probes::TaskTimeReader task_times_;
  std::array<std::vector<int64_t>, kNumFields> last_;
  std::map<uint32_t, SplitBase> split_base_;
  bool split_begun_ = false;
  bool watched_since_idle_ = false;  // the kernel was asked when no operator had done anything yet
  std::vector<account::SegmentSnapshot::Step> last_steps_;
  std::vector<account::SegmentSnapshot::Queue> last_queues_;
  int64_t waiting_ns_ = 0;
  bool closed_ = false, schedstat_readable_ = false;
  Losses losses_;
};

}  // namespace headrace::collectors
