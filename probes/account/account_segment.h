// AccountSegment: reads another process's operator accounts. The segment is untrusted: it is read
// with pread, never mapped, every index and text is checked, every counter is limited, so that a
// damaged, hostile or shrinking file gives odd figures or an Error, never a crash.
//
// A snapshot is consistent per thread and covers everything up to the instant it is taken,
// including the time of what a thread is doing now. It can still be taken after the process died.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "probes/account/account.h"

namespace headrace::account {

// On-CPU and run-queue time of a thread of the process since it began; absent if unreadable.
struct ThreadTime {
  int64_t on_cpu_ns = 0, runnable_ns = 0;
};
using ThreadTimeReader = std::function<std::optional<ThreadTime>(int64_t tid)>;

// All counters are sums since the segment was opened, over ended and live threads.
struct SegmentSnapshot {
  struct Stage {
    std::string name;  // "": the stage of threads that joined no stage
    uint32_t parallelism = 0, max_parallelism = 0;
    int64_t parallelism_ns = 0;  // integral of the parallelism since the stage was registered
    int64_t observed_ns = 0;     // time since then
    int64_t threads = 0, live_threads = 0;
    int64_t lifetime_ns = 0, unattributed_ns = 0;
    std::optional<int64_t> on_cpu_ns, runnable_ns;
  };
  struct Operator {
    std::string name, kind;
    uint32_t stage = 0;  // index into stages
    int64_t enters = 0, completions = 0, rows = 0, in_bytes = 0, out_bytes = 0;
    int64_t busy_ns = 0;  // waits for resources included, other waits not
    int64_t lock_wait_ns = 0, wait_in_ns = 0, wait_out_ns = 0;
    std::optional<int64_t> on_cpu_ns;  // level 2: an estimate ...
    // ... and its bounds, where the pipeline's account.h keeps them.
    std::optional<int64_t> on_cpu_low_ns, on_cpu_high_ns;
  };
  struct Queue {
    std::string name;
    std::optional<uint32_t> producer_stage, consumer_stage;
    uint32_t capacity = 0, occupancy = 0;
    int64_t observed_ns = 0, occupancy_ns = 0, capacity_ns = 0, full_ns = 0, empty_ns = 0;
    int64_t puts = 0, gets = 0;
  };
  struct Resource {
    std::string name;
    uint32_t kind = 0;  // HR_LOCK, HR_DEVICE, HR_MEMORY
    uint32_t servers = 1;
    int64_t acquisitions = 0, wait_ns = 0, hold_ns = 0, moved_bytes = 0;
  };
  struct Thread {
    uint32_t tid = 0, stage = 0;
    std::optional<uint32_t> current_operator;
    int doing = HR_BUSY;       // index of ticks
    int64_t in_flight_ns = 0;  // for how long it has been doing this
  };
  struct Step {
    uint64_t number = 0;  // from 0
    int64_t end_monotonic_ns = 0, wait_ns = 0, compute_ns = 0, rows = 0;
  };
  struct Loss {
    const char* what;
    int64_t count;
  };

  int64_t monotonic_ns = 0;   // when it was taken
  bool closed = false;        // the process closed its accounts, so it ended in order
  std::vector<Stage> stages;  // the last one is the "" stage
  std::vector<Operator> operators;
  std::vector<Queue> queues;
  std::vector<Resource> resources;
  std::vector<Thread> threads;  // live ones
  std::vector<Step> steps;      // those since the previous snapshot that are still in the ring
  int64_t steps_count = 0, step_rows = 0, step_wait_ns = 0, step_compute_ns = 0;  // all steps
  int64_t steps_overwritten = 0;  // sum over snapshots: details lost, totals are not
  std::vector<Loss> losses;       // what exceeded a limit of the segment
};

// A file with a name that a segment may have. Anybody may have made it, with any content.
struct SegmentFile {
  std::string path;
  int64_t pid = 0;  // in its name
};

class AccountSegment {
 public:
  // The folder of segments: $HEADRACE_ACCOUNT_DIR, else /dev/shm.
  static std::string Folder();
  // Where the segment of `pid` usually is, if it has one.
  static std::string PathOf(int64_t pid);
  // Files in `folder` that are named like segments, ordered by pid.
  static std::vector<SegmentFile> List(const std::string& folder);
  // Attaches to the segment at `path`; absent when there is none (yet). Takes 5 ms to calibrate the
  // clock. Throws Error: kPrivilege when it may not be read, kBadData when it is not a segment of a
  // version this program reads. Which process it belongs to is found by
  // collectors/segment_search.h.
  static std::optional<AccountSegment> AttachAt(const std::string& path);
  static std::optional<AccountSegment> Attach(int64_t pid) { return AttachAt(PathOf(pid)); }
  static AccountSegment OpenFile(const std::string& path);

  AccountSegment(AccountSegment&& other) noexcept;
  AccountSegment& operator=(AccountSegment&&) = delete;
  ~AccountSegment();

  const std::string& program() const { return program_; }
  const std::string& path() const { return path_; }
  int descriptor() const { return fd_; }
  int64_t pid() const { return pid_; }
  int level() const { return level_; }
  int64_t opened_monotonic_ns() const { return opened_ns_; }  // when the process made it
  bool uses_tsc() const { return clock_kind_ == HR_CLOCK_TSC; }

  // Throws Error kBadData when the file shrank below a segment. `alive`: whether the process lives;
  // the current activity of a dead process gets no further time. `thread_time` may be empty.
  SegmentSnapshot Read(bool alive, const ThreadTimeReader& thread_time);

 private:
  AccountSegment() = default;
  void ReadAt(uint64_t offset, void* out, size_t size) const;
  int64_t Ns(uint64_t ticks) const;
  void ReadTables(const hr_header& header, uint64_t now, SegmentSnapshot* out) const;
  void ReadStages(const hr_header& header, uint64_t now, SegmentSnapshot* out) const;
  void ReadOperators(const hr_header& header, SegmentSnapshot* out) const;
  void ReadQueues(const hr_header& header, uint64_t now, SegmentSnapshot* out) const;
  void ReadResources(const hr_header& header, SegmentSnapshot* out) const;
  bool ReadSlots(const hr_header& header, bool alive, const ThreadTimeReader& thread_time,
                 SegmentSnapshot* out) const;
  void ReadSlot(uint32_t index, size_t size, hr_slot* slot) const;
  void AddOperators(const hr_slot& slot, uint32_t num_blocks, SegmentSnapshot* out) const;
  void AddStageTime(const hr_slot& slot, uint64_t now, const std::optional<ThreadTime>& time,
                    SegmentSnapshot::Stage* stage) const;
  void AddResources(const hr_slot& slot, uint64_t now, uint64_t in_flight,
                    SegmentSnapshot* out) const;
  void AddCpu(const hr_slot& slot, uint32_t num_blocks, uint64_t now,
              std::optional<int64_t> thread_cpu_ns, SegmentSnapshot* out) const;
  void ReadSteps(const hr_header& header, SegmentSnapshot* out);

  std::string path_, program_;
  int fd_ = -1;
  int64_t pid_ = 0;
  int64_t opened_ns_ = 0;
  int level_ = 1;
  bool has_bounds_ = false;
  uint32_t clock_kind_ = 0;
  double ns_per_tick_ = 1;
  uint64_t pair_ticks_ = 0;  // one instant, read on both clocks
  int64_t pair_ns_ = 0;
  uint64_t next_step_ = 0;
  int64_t steps_overwritten_ = 0;
};

}  // namespace headrace::account
