#include "reader/fetch/read_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace headrace::reader {
namespace {

using Ranges = std::vector<ByteRange>;

TEST(ReadPlan, JoinsNeighboursWithinTheLimits) {
  const Ranges wanted = {{100, 10}, {0, 10}, {10, 5}, {20, 10}, {200, 50}, {220, 100}, {5, 0}};
  const struct {
    const char* name;
    uint64_t gap, max;
    Ranges reads;
  } cases[] = {
      {"touching only", 0, 1000, {{0, 15}, {20, 10}, {100, 10}, {200, 120}}},
      {"a hole as long as the gap", 5, 1000, {{0, 30}, {100, 10}, {200, 120}}},
      {"all", 1000, 1000, {{0, 320}}},
      {"all but the longest", 1000, 120, {{0, 110}, {200, 120}}},
      {"each alone; overlapping ones share",
       0,
       1,
       {{0, 10}, {10, 5}, {20, 10}, {100, 10}, {200, 120}}},
      {"no limit", UINT64_MAX, UINT64_MAX, {{0, 320}}},
  };
  for (const auto& c : cases) {
    const ReadPlan plan = PlanReads(wanted, {.max_gap_bytes = c.gap, .max_read_bytes = c.max});
    EXPECT_EQ(plan.reads, c.reads) << c.name;
    EXPECT_EQ(plan.wanted_bytes, 155u) << c.name;  // 30 bytes are of two ranges
    uint64_t read = 0;
    for (const ByteRange& range : c.reads) read += range.length;
    EXPECT_EQ(plan.over_read_bytes(), read - 155) << c.name;
  }
  EXPECT_TRUE(PlanReads({}).reads.empty());
}

// Joining from the left would read [0, 700) and [710, 100): 100 bytes of holes; the same number of
// reads does with 10.
TEST(ReadPlan, TheMaximumCutsWhereTheHoleIsLong) {
  const ReadPlan plan =
      PlanReads({{0, 500}, {600, 100}, {710, 100}}, {.max_gap_bytes = 200, .max_read_bytes = 700});
  EXPECT_EQ(plan.reads, (Ranges{{0, 500}, {600, 210}}));
  EXPECT_EQ(plan.over_read_bytes(), 10u);
}

TEST(ReadPlan, AlignedReadsEndWithTheSource) {
  const ReadPlan plan = PlanReads(
      {{100, 10}, {5000, 10}, {20000, 300}},
      {.max_gap_bytes = 0, .max_read_bytes = 1 << 20, .alignment = 4096, .source_bytes = 20321});
  EXPECT_EQ(plan.reads, (Ranges{{0, 8192}, {16384, 20321 - 16384}}));
  EXPECT_EQ(plan.over_read_bytes(), 8192 + 20321 - 16384 - 320u);
  // A wider maximum than one block: two blocks that touch are two reads, not one longer.
  EXPECT_EQ(PlanReads({{100, 10}, {5000, 10}}, {.max_read_bytes = 4096, .alignment = 4096}).reads,
            (Ranges{{0, 4096}, {4096, 4096}}));
}

uint64_t Cost(const Ranges& reads, uint64_t gap) {
  uint64_t cost = 0;
  for (const ByteRange& read : reads) cost += gap + read.length;
  return cost;
}

// What joining from the left gives.
Ranges Greedy(Ranges wanted, uint64_t gap, uint64_t max) {
  Ranges reads;
  for (const ByteRange& range : wanted) {
    if (!reads.empty()) {
      ByteRange& last = reads.back();
      const uint64_t last_end = last.offset + last.length, end = range.offset + range.length;
      if (range.offset < last_end || (range.offset - last_end <= gap && end - last.offset <= max)) {
        last.length = std::max(last_end, end) - last.offset;
        continue;
      }
    }
    reads.push_back(range);
  }
  return reads;
}

// The least cost over all 2^(n-1) ways to cut disjoint ranges into reads no longer than the
// maximum.
uint64_t LeastCost(const Ranges& wanted, uint64_t gap, uint64_t max) {
  uint64_t least = UINT64_MAX;
  for (uint32_t cuts = 0; cuts < 1u << (wanted.size() - 1); ++cuts) {
    Ranges reads = {wanted[0]};
    bool allowed = true;
    for (size_t i = 1; i < wanted.size(); ++i) {
      if (cuts >> (i - 1) & 1) {
        reads.push_back(wanted[i]);
      } else {
        reads.back().length = wanted[i].offset + wanted[i].length - reads.back().offset;
        allowed = allowed && reads.back().length <= max;
      }
    }
    if (allowed) least = std::min(least, Cost(reads, gap));
  }
  return least;
}

TEST(ReadPlan, CoversEveryRangeAtTheLeastCostAndCountsEveryByte) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Ranges wanted;
    uint64_t at = random() % 100;
    const bool overlapping = seed % 3 == 0;
    for (size_t n = 1 + random() % 9; wanted.size() < n;) {
      wanted.push_back({at, 1 + random() % 300});
      at += overlapping ? random() % 400 : wanted.back().length + random() % 200;
    }
    const uint64_t gap = random() % 3 == 0 ? 0 : random() % 200, max = 1 + random() % 1500;
    const uint64_t alignment = seed % 2 == 0 ? 1 : uint64_t{1} << random() % 10;
    const uint64_t end = wanted.back().offset + 300 + random() % 5;
    Ranges shuffled = wanted;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    const ReadPlan plan = PlanReads(shuffled, {gap, max, alignment, end});

    std::vector<uint8_t> is_wanted(end), is_read(end);
    for (const ByteRange& range : wanted)
      std::fill_n(is_wanted.begin() + static_cast<long>(range.offset), range.length, 1);
    uint64_t previous_end = 0;
    for (const ByteRange& read : plan.reads) {
      EXPECT_GE(read.offset, previous_end);
      EXPECT_EQ(read.offset % alignment, 0u);
      previous_end = read.offset + read.length;
      EXPECT_LE(previous_end, end);
      EXPECT_TRUE(previous_end % alignment == 0 || previous_end == end);
      std::fill_n(is_read.begin() + static_cast<long>(read.offset), read.length, 1);
    }
    uint64_t wanted_bytes = 0, over_read = 0;
    for (uint64_t i = 0; i < end; ++i) {
      EXPECT_GE(is_read[i], is_wanted[i]) << "byte " << i;
      wanted_bytes += is_wanted[i];
      over_read += is_read[i] > is_wanted[i];
    }
    EXPECT_EQ(plan.wanted_bytes, wanted_bytes);
    EXPECT_EQ(plan.over_read_bytes(), over_read);
    for (const ByteRange& range : wanted) {
      EXPECT_TRUE(std::any_of(plan.reads.begin(), plan.reads.end(), [&](const ByteRange& read) {
        return read.offset <= range.offset &&
               range.offset + range.length <= read.offset + read.length;
      })) << "a range is split over reads";
    }
    if (alignment > 1) continue;
    // With overlapping ranges joining from the left makes reads longer than the maximum.
    if (!overlapping) {
      EXPECT_LE(Cost(plan.reads, gap), Cost(Greedy(wanted, gap, max), gap));
    }
    const bool fits = std::all_of(wanted.begin(), wanted.end(),
                                  [&](const ByteRange& range) { return range.length <= max; });
    if (!overlapping && fits) {
      EXPECT_EQ(Cost(plan.reads, gap), LeastCost(wanted, gap, max));
    }
  }
}

}  // namespace
}  // namespace headrace::reader
