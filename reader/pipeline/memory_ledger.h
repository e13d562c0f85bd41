// MemoryLedger: keeps a pipeline within a number of bytes (`[pipeline] memory`). Memory is bounded
// where work comes in: a split is handed out only when the memory that it will need fits beside
// that of the splits in progress. That need is measured per row on finished splits: the most bytes
// of BlockPool that were alive at once for a split between source and consumer. The first two
// splits run alone: the slabs of the second one have the room that those of the first lacked.
// Splits that a cache holds are measured separately. Splits that do less work than others (without
// rows, partly delivered already, left out as damaged) are not measured.
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

// The work that is done for a split.
enum class SplitWork : uint8_t {
  kWhole,  // it is read and decoded
  kCached  // a cache holds its decoded batches
};

// The bytes that one split, or what was made of it, is charged with. The elements made of the split
// share it; it is given back with the last of them.
class MemoryCharge {
 public:
  // The charge for one split of `rows` rows.
  MemoryCharge(MemoryLedger* ledger, uint64_t bytes, uint64_t rows, SplitWork work)
      : ledger_(ledger), bytes_(bytes), rows_(rows), work_(work), is_split_(true) {}
  // The charge for rows joined from several splits.
  explicit MemoryCharge(MemoryLedger* ledger) : ledger_(ledger) {}
  ~MemoryCharge();
  MemoryCharge(const MemoryCharge&) = delete;

  // Call when a stage has worked on an element of it: at most `peak` bytes more than before were
  // alive at once, and `net` bytes more (below 0: fewer) are alive afterwards.
  void Worked(uint64_t peak, int64_t net);
  // Call when less is done for the split than for others of its kind, so that its need says nothing
  // about theirs.
  void DoesLess() { does_less_ = true; }
  // Call when a cache holds the split, which may not have been known when it was admitted.
  void FoundInCache() {
    if (work_ != SplitWork::kCached) DoesLess();
  }
  // For rows joined from several splits (Hold). Set: their bytes from now on, while they wait for
  // more rows. Leave: they no longer wait.
  void Set(uint64_t bytes);
  void Leave();

 private:
  friend class MemoryLedger;
  MemoryLedger* ledger_;
  uint64_t bytes_ = 0, rows_ = 0;
  SplitWork work_ = SplitWork::kWhole;
  bool is_split_ = false, is_alone_ = false;  // alone: it ran alone because its need was not known
  int64_t admitted_ns_ = 0, waited_ns_ = 0;
  std::atomic<bool> does_less_{false};
  std::atomic<int64_t> alive_{0}, peak_{0};
};

struct MemoryOptions {
  uint64_t budget_bytes = 0;     // of the process
  uint64_t set_aside_bytes = 0;  // for others that fill up later, such as [source.tier]
  // Memory outside BlockPool, which is not counted, grows with the number of slices and their
  // columns.
  uint64_t slice_rows = 0, slice_bytes = 0;
  // Operators, in all threads, that join rows (Hold), and how many rows each holds at most.
  uint64_t holders = 1, held_rows = 0;
};

class MemoryLedger {
 public:
  // Construct it while the process is at rest. Sets BlockPool's limit. Throws Error kUsage when the
  // budget does not even hold the process at rest.
  explicit MemoryLedger(const MemoryOptions& options);
  ~MemoryLedger();

  // The resource account of kind HR_MEMORY for splits: what each was charged with, how long it
  // waited for that and held it; those that run alone, as their need is not known, left out. Set it
  // before the first split.
  void set_account(uint32_t resource) { account_ = resource; }
  // Bytes that splits may be charged with at once.
  uint64_t room_bytes() const;

  // Waits until a split of `rows` rows fits; the wait goes to operator account `waiter` as w_out.
  // Null when stopped. To be called in the order of the splits. Throws Error kResources naming the
  // least budget that works when it can never fit.
  std::shared_ptr<MemoryCharge> Admit(uint64_t rows, StopSignal* stop, uint32_t waiter,
                                      SplitWork work = SplitWork::kWhole);
  // A charge for rows joined from several splits, of 0 bytes; never waits.
  std::shared_ptr<MemoryCharge> Hold();
  // Ends all waits.
  void Stop();
  // Number of splits that are waiting in Admit.
  uint64_t held_back() const;

  // A budget with which this pipeline would run, for error messages about memory.
  uint64_t LeastBudget() const;
  uint64_t budget_bytes() const { return options_.budget_bytes; }
  uint64_t limit_bytes() const { return limit_; }

 private:
  friend class MemoryCharge;
  // What finished splits with one kind of work needed.
  struct Need {
    double bytes_per_row = 0;  // the most; 0: none yet
    uint64_t measured = 0;     // finished splits that were measured
  };
  uint64_t NeedOf(uint64_t rows, SplitWork work) const;  // under the mutex
  void Release(const MemoryCharge& charge);
  void Change(uint64_t* bytes, uint64_t to);
  void Leave(MemoryCharge* charge);
  uint64_t Budget(uint64_t charged) const;  // the budget with which `charged` bytes may be charged

  const MemoryOptions options_;
  uint32_t account_ = UINT32_MAX;
  uint64_t base_ = 0, limit_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  uint64_t charged_ = 0, splits_ = 0;  // splits_: in progress
  uint64_t alone_ = 0;                 // splits in progress that must run alone
  uint64_t waiting_ = 0;               // the part of charged_ for rows that wait for more rows
  uint64_t most_waiting_ = 0;          // the most that one holder had waiting
  Need needs_[2];                      // by SplitWork
  uint64_t most_rows_ = 0;             // the most rows of a split so far
  uint64_t held_back_ = 0;
  bool stopped_ = false;
};

}  // namespace headrace::reader
