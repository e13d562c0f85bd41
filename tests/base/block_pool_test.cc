#include "base/block_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"

namespace headrace {
namespace {

TEST(BlockPool, GivesAlignedBlocksOfAtLeastTheSize) {
  BlockPool& pool = BlockPool::Get();
  const size_t live = pool.live_bytes();
  std::vector<Block> blocks;
  size_t bytes = 0;
  for (const size_t wanted : {1ul, 63ul, 16383ul, 16384ul, 300'000ul, 2'097'152ul, 5'000'001ul}) {
    const Block block = pool.Take(wanted);
    EXPECT_GE(block.bytes, wanted);
    EXPECT_LE(block.bytes, wanted + wanted / 4 + 64);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % BlockPool::kAlignment, 0u);
    if (wanted >= BlockPool::kHugePageBytes) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % BlockPool::kHugePageBytes, 0u);
    }
    std::memset(block.data, 0x5a, block.bytes);
    bytes += block.bytes;
    blocks.push_back(block);
  }
  EXPECT_EQ(pool.live_bytes(), live + bytes);
  for (const Block& block : blocks) pool.Give(block);
  EXPECT_EQ(pool.live_bytes(), live);
}

TEST(BlockPool, TrimFreesWhatIsIdle) {
  BlockPool& pool = BlockPool::Get();
  pool.Give(pool.Take(1 << 20));
  pool.Give(pool.Take(3 << 20));
  EXPECT_GE(pool.idle_bytes(), size_t{4} << 20);
  pool.Trim(1 << 20);
  EXPECT_LE(pool.idle_bytes(), size_t{1} << 20);
  pool.Trim();
  EXPECT_EQ(pool.idle_bytes(), 0u);
}

TEST(BlockPool, NothingPassesTheLimit) {
  BlockPool& pool = BlockPool::Get();
  pool.Trim();
  pool.SetLimit(pool.live_bytes() + (size_t{8} << 20));
  const Block first = pool.Take(5 << 20);
  EXPECT_THROW(pool.Take(4 << 20), Error);
  pool.Give(first);  // idle now; it goes when something else needs the room
  const Block large = pool.Take(7 << 20);
  EXPECT_EQ(pool.idle_bytes(), 0u);
  pool.Give(large);
  pool.SetLimit(0);
}

TEST(BlockPool, MeasuresWhatOneThreadNeeds) {
  BlockPool& pool = BlockPool::Get();
  BlockPool::ThreadPeak outer;
  const Block kept = pool.Take(1 << 20);
  uint64_t inner_bytes = 0;
  {
    BlockPool::ThreadPeak inner;
    const Block a = pool.Take(1 << 20), b = pool.Take(1 << 20);
    pool.Give(a);
    pool.Give(b);
    std::thread([&] { pool.Give(pool.Take(8 << 20)); }).join();
    inner_bytes = inner.bytes();
  }
  EXPECT_EQ(inner_bytes, uint64_t{2} << 20);
  EXPECT_EQ(outer.bytes(), uint64_t{3} << 20);
  pool.Give(kept);
}

}  // namespace
}  // namespace headrace
