#include "base/block_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace headrace {
namespace {

thread_local int64_t thread_net = 0, thread_peak = 0;

constexpr size_t kPage = 4096;

size_t RoundUp(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

// Sizes come in eight steps a doubling, so that arrays of about the same length share blocks.
size_t BlockBytes(size_t bytes) {
  if (bytes < BlockPool::kMinPooledBytes)
    return RoundUp(std::max<size_t>(bytes, 1), BlockPool::kAlignment);
  return RoundUp(bytes, std::max(kPage, std::bit_floor(bytes) / 8));
}

void* Map(size_t bytes, bool huge_pages) {
  const bool aligned = bytes >= BlockPool::kHugePageBytes;
  const size_t slack = aligned ? BlockPool::kHugePageBytes : 0;
  void* mapped =
      mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (!aligned) return mapped;
  auto* const begin = static_cast<uint8_t*>(mapped);
  auto* const block = reinterpret_cast<uint8_t*>(
      RoundUp(reinterpret_cast<uintptr_t>(mapped), BlockPool::kHugePageBytes));
  if (block > begin) munmap(begin, static_cast<size_t>(block - begin));
  if (uint8_t* const end = begin + bytes + slack; end > block + bytes)
    munmap(block + bytes, static_cast<size_t>(end - (block + bytes)));
  // Where the kernel has no huge pages to give, the block has ordinary ones.
  madvise(block, bytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return block;
}

void Free(void* data, size_t bytes) {
  if (bytes >= BlockPool::kMappedBytes) {
    munmap(data, bytes);
  } else {
    std::free(data);
  }
}

}  // namespace

BlockPool& BlockPool::Get() {
  static auto* pool = new BlockPool();
  return *pool;
}

BlockPool::ThreadPeak::ThreadPeak() : net_(thread_net), peak_(thread_peak) {
  thread_net = thread_peak = 0;
}

BlockPool::ThreadPeak::~ThreadPeak() {
  peak_ = std::max(peak_, net_ + thread_peak);
  thread_net += net_;
  thread_peak = peak_;
}

int64_t BlockPool::ThreadPeak::net() const { return thread_net; }

uint64_t BlockPool::ThreadPeak::bytes() const { return static_cast<uint64_t>(thread_peak); }

void BlockPool::Count(int64_t bytes) {
  live_.fetch_add(static_cast<size_t>(bytes), std::memory_order_relaxed);
  thread_net += bytes;
  thread_peak = std::max(thread_peak, thread_net);
}

Block BlockPool::TakeIdle(size_t bytes) {
  std::lock_guard lock(mutex_);
  const auto place = idle_.lower_bound(bytes);
  // Under a limit what a step of work takes must be about the same every time.
  const size_t most = limit_.load(std::memory_order_relaxed) == 0 ? 2 * bytes : bytes + bytes / 8;
  if (place == idle_.end() || place->first > most) return {};
  const Block block{place->second, place->first};
  idle_.erase(place);
  idle_bytes_.fetch_sub(block.bytes, std::memory_order_relaxed);
  Count(static_cast<int64_t>(block.bytes));
  return block;
}

void BlockPool::CountFresh(size_t bytes) {
  const size_t limit = limit_.load(std::memory_order_relaxed);
  if (limit == 0) return Count(static_cast<int64_t>(bytes));
  std::vector<Block> freed;
  {
    // Counted at once, so that no other thread takes the same room.
    std::lock_guard lock(mutex_);
    const size_t live = live_bytes();
    if (live + bytes > limit) {
      throw Error(
          ExitCode::kResources,
          fmt::format("{} bytes more would pass the memory limit of {} bytes", bytes, limit));
    }
    freed = Detach(limit - live - bytes);
    Count(static_cast<int64_t>(bytes));
  }
  for (const Block& block : freed) Free(block.data, block.bytes);
}

Block BlockPool::TakeFresh(size_t bytes) {
  CountFresh(bytes);
  void* const data = bytes >= kMappedBytes
                         ? Map(bytes, huge_pages())
                         : std::aligned_alloc(kAlignment, RoundUp(bytes, kAlignment));
  if (data == nullptr) {
    Count(-static_cast<int64_t>(bytes));
    throw Error(ExitCode::kResources, fmt::format("no memory for an array of {} bytes", bytes));
  }
  return {data, bytes};
}

Block BlockPool::Take(size_t bytes) {
  if (bytes > SIZE_MAX / 4)
    throw Error(ExitCode::kResources, fmt::format("no memory for an array of {} bytes", bytes));
  const size_t wanted = BlockBytes(bytes);
  Block block;
  if (wanted >= kMinPooledBytes) block = TakeIdle(wanted);
  if (block.data == nullptr) block = TakeFresh(wanted);
  return block;
}

void BlockPool::Give(Block block) {
  if (block.data == nullptr) return;
  if (block.bytes >= kMinPooledBytes) {
    std::lock_guard lock(mutex_);
    if (idle_bytes() + block.bytes <= idle_limit_) {
      idle_.emplace(block.bytes, block.data);
      idle_bytes_.fetch_add(block.bytes, std::memory_order_relaxed);
      Count(-static_cast<int64_t>(block.bytes));
      return;
    }
  }
  Free(block.data, block.bytes);
  Count(-static_cast<int64_t>(block.bytes));
}

void BlockPool::SetIdleLimit(size_t bytes) {
  {
    std::lock_guard lock(mutex_);
    idle_limit_ = bytes;
  }
  Trim(bytes);
}

size_t BlockPool::held_bytes() const {
  std::lock_guard lock(mutex_);
  return live_bytes() + idle_bytes();
}

std::vector<Block> BlockPool::Detach(size_t keep) {
  std::vector<Block> blocks;
  while (idle_bytes() > keep) {
    const auto largest = std::prev(idle_.end());
    blocks.push_back({largest->second, largest->first});
    idle_bytes_.fetch_sub(largest->first, std::memory_order_relaxed);
    idle_.erase(largest);
  }
  return blocks;
}

void BlockPool::Trim(size_t keep) {
  std::vector<Block> freed;  // outside the lock: giving pages back takes its time
  {
    std::lock_guard lock(mutex_);
    freed = Detach(keep);
  }
  for (const Block& block : freed) Free(block.data, block.bytes);
}

}  // namespace headrace
