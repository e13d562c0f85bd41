// Dictionary indices to values, by every kernel.
#include "reader/dwrf/decode/look_up.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/buffer.h"
#include "reader/dwrf/decode/rle_simd.h"
#include "reader/dwrf/encode/run_length.h"
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

// A cursor may stop anywhere, within runs and literals, and pass values over.
TEST(RleCursor, PortionsAreThePartsOfTheWhole) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> values(1 + random() % 2000);
    for (size_t i = 0; i < values.size();) {
      const size_t end = std::min(values.size(), i + 1 + random() % 300);
      const bool run = random() % 2 == 0;
      for (int64_t next = static_cast<int64_t>(random() >> (random() % 64)); i < end; ++i) {
        values[i] = run ? next : static_cast<int64_t>(random() >> (1 + random() % 63));
        next += 3;
      }
    }
    const uint32_t width = random() % 4 == 0 ? 8 : 0;
    ByteSink sink;
    std::vector<Mark> marks;
    EncodeIntegerRuns(values, {false, width}, {}, &sink, &marks);
    Buffer bytes;  // with room for what kernels read past the end
    bytes.Resize(sink.size());
    std::memcpy(bytes.data(), sink.data(), sink.size());
    const uint8_t* const end = bytes.data() + bytes.size();
    const IntegerFormat format{false, static_cast<uint8_t>(width)};
    for (const InstructionSet set : LookUpSets()) {
      RleCursor cursor{bytes.data(), 0, false, 0, 0};
      std::vector<int64_t> out(values.size() + 16);
      for (size_t at = 0; at < values.size();) {
        const size_t count = 1 + random() % std::min<size_t>(values.size() - at, 400);
        const bool skip = random() % 3 == 0;
        ASSERT_TRUE(DecodeRle(&cursor, end, count, format, skip ? nullptr : out.data(), set));
        for (size_t i = 0; i < count && !skip; ++i) ASSERT_EQ(out[i], values[at + i]) << at + i;
        at += count;
      }
      EXPECT_EQ(cursor.at, end);
      EXPECT_FALSE(DecodeRle(&cursor, end, 1, format, nullptr, set));
      cursor = {bytes.data(), 0, false, 0, 0};
      EXPECT_FALSE(DecodeRle(&cursor, end, values.size() + 1, format, nullptr, set));
    }
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf
