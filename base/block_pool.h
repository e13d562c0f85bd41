// BlockPool: the memory of the process's large arrays and buffers, which it reuses once it is free.
// A fresh block costs a page fault for every 4 KiB touched, about as much as decoding into it; a
// used one costs nothing. Every byte handed out is counted, which is what a memory budget
// (reader/pipeline/memory_ledger.h) goes by. Thread-safe.
//
// Blocks from kMappedBytes up are mappings of their own, given back to the system when freed;
// smaller ones are the allocator's. From kHugePageBytes up they are aligned to 2 MiB and, if
// switched on, ask for huge pages: one fault and one TLB entry for 2 MiB instead of 512.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace headrace {

struct Block {
  void* data = nullptr;
  size_t bytes = 0;
};

class BlockPool {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kMinPooledBytes = size_t{16} << 10;  // smaller: never kept idle
  static constexpr size_t kMappedBytes = size_t{256} << 10;
  static constexpr size_t kHugePageBytes = size_t{2} << 20;
  static constexpr size_t kDefaultIdleBytes = size_t{768} << 20;

  // The process's only one; never destroyed, as arrays of detached threads may outlive main.
  static BlockPool& Get();

  // A block of at least `bytes` (block.bytes says how many), aligned to kAlignment, contents
  // unspecified. It is the smallest idle block that fits, if that is at most twice as large (under
  // a limit: at most an eighth larger), else a fresh one. Throws Error kResources when there is no
  // memory, or it would exceed the limit.
  Block Take(size_t bytes);
  void Give(Block block);

  // Sets how many bytes of idle blocks are kept in all.
  void SetIdleLimit(size_t bytes);
  // Frees idle blocks, the largest first, until at most `keep` bytes of them are left.
  void Trim(size_t keep = 0);
  // Applies to fresh blocks from then on.
  void SetHugePages(bool on) { huge_pages_.store(on, std::memory_order_relaxed); }
  bool huge_pages() const { return huge_pages_.load(std::memory_order_relaxed); }
  // Idle blocks are freed before live and idle bytes together pass `bytes`; a Take that does not
  // fit even then throws. 0: no limit.
  void SetLimit(size_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

  size_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  size_t idle_bytes() const { return idle_bytes_.load(std::memory_order_relaxed); }
  size_t held_bytes() const;  // both at one instant

  // Measures the memory that one step of work needs: the most that the calling thread held since
  // this was made, above what it held then.
  class ThreadPeak {
   public:
    ThreadPeak();
    ~ThreadPeak();
    ThreadPeak(const ThreadPeak&) = delete;
    uint64_t bytes() const;
    int64_t net() const;  // what the thread holds now above what it held then

   private:
    int64_t net_, peak_;  // of the enclosing measurement
  };

 private:
  BlockPool() = default;
  Block TakeIdle(size_t bytes);
  Block TakeFresh(size_t bytes);
  // Makes room for `bytes` under the limit, and counts them as live.
  void CountFresh(size_t bytes);
  void Count(int64_t bytes);
  // Under the mutex: takes idle blocks out, the largest first, until `keep` bytes of them are left.
  std::vector<Block> Detach(size_t keep);

  mutable std::mutex mutex_;
  std::multimap<size_t, void*> idle_;  // by size
  std::atomic<size_t> live_{0}, idle_bytes_{0}, limit_{0};
  size_t idle_limit_ = kDefaultIdleBytes;
  std::atomic<bool> huge_pages_{false};
};

}  // namespace headrace
