// MemoryLedger: keeps a pipeline within a number of bytes (`[pipeline] memory`). Memory is bounded
// where work comes in: a split is handed out only when what it will need fits beside what the
// splits on their way need. How much a split needs is measured, by rows, on those that are through:
// the most bytes (of BlockPool) alive at once for it between source and consumer. The first two
// go alone: slabs of the second have the room that those of the first were found to lack. Splits
// that a cache holds are measured for themselves; those that do less than others (without rows,
// with some already delivered, left out as damaged) tell nothing about the next.
//
//   budget 256 MiB = the process at rest (measured)  60 MiB
//                  + what is not counted: small objects, stacks, accounts   20 MiB
//                  + arrays and buffers: BlockPool's limit                  176 MiB, of these 85 %
//                                        handed out to splits, the rest for what a split needs more
//                                        than those before it
//
// Idle blocks of the pool are freed before the limit is passed. Thread-safe.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "reader/pipeline/stop_signal.h"

namespace headrace::reader {

class MemoryLedger;

// What is done for a split.
enum class SplitWork : uint8_t {
  kWhole,  // it is read and decoded
  kCached  // a cache holds what it became
};

// What one split, or what came of it, is charged with. Shared by the elements made of the split;
// given back with the last one.
class MemoryCharge {
 public:
  // Of a split of `rows` rows.
  MemoryCharge(MemoryLedger* ledger, uint64_t bytes, uint64_t rows, SplitWork work)
      : ledger_(ledger), bytes_(bytes), rows_(rows), work_(work), is_split_(true) {}
  // Of rows of several.
  explicit MemoryCharge(MemoryLedger* ledger) : ledger_(ledger) {}
  ~MemoryCharge();
  MemoryCharge(const MemoryCharge&) = delete;

  // One stage worked on an element of it: at most `peak` bytes more than before were alive at once,
  // and `net` bytes more (or, below 0, fewer) are since.
  void Worked(uint64_t peak, int64_t net);
  // Less is done for the split than for others of its kind: what it needs tells nothing about them.
  void DoesLess() { does_less_ = true; }
  // A cache held it, which may not have been known when it was admitted.
  void FoundInCache() {
    if (work_ != SplitWork::kCached) DoesLess();
  }
  // For rows joined from several splits (Hold): their bytes from now on, while they wait for more;
  // and that they wait no longer.
  void Set(uint64_t bytes);
  void Leave();

 private:
  friend class MemoryLedger;
  MemoryLedger* ledger_;
  uint64_t bytes_ = 0, rows_ = 0;
  SplitWork work_ = SplitWork::kWhole;
  bool is_split_ = false, is_alone_ = false;  // alone: what it needs was not known
  std::atomic<bool> does_less_{false};
  std::atomic<int64_t> alive_{0}, peak_{0};
};

struct MemoryOptions {
  uint64_t budget_bytes = 0;     // of the process
  uint64_t set_aside_bytes = 0;  // for others that fill up later: [source.tier]
  // What is not counted in BlockPool grows with the number of slices and their columns.
  uint64_t slice_rows = 0, slice_bytes = 0;
  // Operators, in all threads, that join rows (Hold), and how many rows each holds at most.
  uint64_t holders = 1, held_rows = 0;
};

class MemoryLedger {
 public:
  // The process is at rest now. Sets BlockPool's limit. Throws Error kUsage when the budget does
  // not even hold the process at rest.
  explicit MemoryLedger(const MemoryOptions& options);
  ~MemoryLedger();

  // Waits until a split of `rows` rows fits; the wait goes to operator account `waiter` as w_out.
  // Null when stopped. To be called in the order of the splits. Throws Error kResources naming the
  // least budget that works when it can never fit.
  std::shared_ptr<MemoryCharge> Admit(uint64_t rows, StopSignal* stop, uint32_t waiter,
                                      SplitWork work = SplitWork::kWhole);
  // A charge for rows joined from several splits, of 0 bytes; never waits.
  std::shared_ptr<MemoryCharge> Hold();
  // All waits end.
  void Stop();
  // Splits that wait in Admit.
  uint64_t held_back() const;

  // What an error about memory should say: a budget with which this pipeline runs.
  uint64_t LeastBudget() const;
  uint64_t budget_bytes() const { return options_.budget_bytes; }
  uint64_t limit_bytes() const { return limit_; }

 private:
  friend class MemoryCharge;
  // What splits that are through needed, of one kind of work.
  struct Need {
    double bytes_per_row = 0;  // the most; 0: none yet
    uint64_t measured = 0;     // splits that are through
  };
  uint64_t NeedOf(uint64_t rows, SplitWork work) const;  // under the mutex
  void Release(const MemoryCharge& charge);
  void Change(uint64_t* bytes, uint64_t to);
  void Leave(MemoryCharge* charge);
  uint64_t Budget(uint64_t charged) const;  // with which so much may be charged

  const MemoryOptions options_;
  uint64_t base_ = 0, limit_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  uint64_t charged_ = 0, splits_ = 0;  // splits: on their way
  uint64_t alone_ = 0;                 // of them, those beside which there is to be none
  uint64_t waiting_ = 0;               // of what is charged: rows that wait for more rows
  uint64_t most_waiting_ = 0;          // in one holder
  Need needs_[2];                      // by SplitWork
  uint64_t most_rows_ = 0;             // of a split seen
  uint64_t held_back_ = 0;
  bool stopped_ = false;
};

}  // namespace headrace::reader
