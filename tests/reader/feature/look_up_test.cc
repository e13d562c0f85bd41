// Dictionary indices to values, by every kernel.
#include "reader/dwrf/decode/look_up.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/seed.h"

namespace headrace::reader::dwrf {
namespace {

std::vector<InstructionSet> LookUpSets() {
  std::vector<InstructionSet> sets{InstructionSet::kScalar};
  if (BestInstructionSet() != InstructionSet::kScalar) sets.push_back(BestInstructionSet());
  return sets;
}

TEST(LookUp, AnExampleByHand) {
  const std::vector<int64_t> entries = {10, 11, 12};
  const uint64_t inside = 0b1011;
  for (const InstructionSet set : LookUpSets()) {
    std::vector<int64_t> values = {2, 0, 0xffff, 0};
    ASSERT_TRUE(LookUpIndices(entries, &inside, 48, values.data(), values.size(), set));
    EXPECT_EQ(values, (std::vector<int64_t>{12, 10, -1, 10}));
  }
}

TEST(LookUp, KernelsGiveWhatALoopGives) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 500; ++round) {
    std::vector<int64_t> entries(random() % 40);
    for (int64_t& entry : entries) entry = static_cast<int64_t>(random());
    const size_t count = random() % 200;
    const bool has_literals = entries.empty() || random() % 2 == 0;
    const int unused = static_cast<int>(random() % 3) * 16;
    std::vector<int64_t> values(count), expected(count);
    std::vector<uint64_t> inside((count + 63) / 64 + 1);
    for (size_t i = 0; i < count; ++i) {
      const bool is_index = !has_literals || (!entries.empty() && random() % 3 > 0);
      if (is_index) {
        values[i] = static_cast<int64_t>(random() % entries.size());
        expected[i] = entries[static_cast<size_t>(values[i])];
        inside[i / 64] |= uint64_t{1} << (i % 64);
      } else {
        values[i] = static_cast<int64_t>(random());
        expected[i] = static_cast<int64_t>(static_cast<uint64_t>(values[i]) << unused) >> unused;
      }
    }
    const uint64_t* const bits = has_literals ? inside.data() : nullptr;
    for (const InstructionSet set : LookUpSets()) {
      std::vector<int64_t> out = values;
      ASSERT_TRUE(LookUpIndices(entries, bits, unused, out.data(), count, set)) << round;
      ASSERT_EQ(out, expected) << round;
      // One wrong index, wherever it is, is seen.
      if (count == 0 || (has_literals && entries.empty())) continue;
      const size_t bad = random() % count;
      if (has_literals && (inside[bad / 64] >> (bad % 64) & 1) == 0) continue;
      for (const int64_t wrong : {static_cast<int64_t>(entries.size()), int64_t{-1}, INT64_MIN}) {
        out = values;
        out[bad] = wrong;
        ASSERT_FALSE(LookUpIndices(entries, bits, unused, out.data(), count, set)) << round;
      }
    }
  }
}

TEST(LookUp, WithoutEntriesAnIndexIsDamage) {
  for (const InstructionSet set : LookUpSets()) {
    std::vector<int64_t> values = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    const uint64_t inside = 1 << 8;
    EXPECT_FALSE(LookUpIndices({}, nullptr, 0, values.data(), values.size(), set));
    EXPECT_FALSE(LookUpIndices({}, &inside, 0, values.data(), values.size(), set));
    EXPECT_TRUE(LookUpIndices({}, &inside, 0, values.data(), 8, set));
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf
