// BlockPool: the memory of the large arrays and buffers of the process, handed out again once it is
// free. A fresh block costs a page fault for every 4 KiB touched, about as much as decoding into
// it; a used one costs nothing. Every byte handed out is counted, which is what a memory budget
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

  // At least `bytes` (block.bytes says how many), aligned to kAlignment, contents unspecified: of
  // the idle blocks the smallest that fits and is not more than twice as large, under a limit not
  // more than an eighth larger. Throws Error kResources when memory cannot be had, or would pass
  // the limit.
  Block Take(size_t bytes);
  void Give(Block block);

  // Idle blocks are kept up to this many bytes together.
  void SetIdleLimit(size_t bytes);
  // Frees idle blocks, the largest first, until at most `keep` bytes of them are left.
  void Trim(size_t keep = 0);
  // Concerns blocks taken fresh from then on.
  void SetHugePages(bool on) { huge_pages_.store(on, std::memory_order_relaxed); }
  bool huge_pages() const { return huge_pages_.load(std::memory_order_relaxed); }
  // Idle blocks are freed before live and idle bytes together pass `bytes`; a Take that does not
  // fit even then throws. 0: no limit.
  void SetLimit(size_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

  size_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  size_t idle_bytes() const { return idle_bytes_.load(std::memory_order_relaxed); }
  size_t held_bytes() const;  // both at one instant

  // What the calling thread took and gave back since this was made: the most it held above what it
  // began with. Measures what one step of work needs.
  class ThreadPeak {
   public:
    ThreadPeak();
    ~ThreadPeak();
    ThreadPeak(const ThreadPeak&) = delete;
    uint64_t bytes() const;
    int64_t net() const;  // what it holds now above what it began with

   private:
    int64_t net_, peak_;  // of the enclosing measurement
  };

 private:
  BlockPool() = default;
  Block TakeIdle(size_t bytes);
  Block TakeFresh(size_t bytes);
  // Makes room for so many bytes under the limit, and counts them as live.
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
