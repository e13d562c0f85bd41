// RowSet against a plain set of rows, and the bytes that it is written as.
#include "reader/pipeline/delivery/row_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "tests/seed.h"

namespace headrace::reader {
namespace {

std::vector<RowRange> RangesOf(const RowSet& set) {
  std::vector<RowRange> ranges;
  RowSet::Cursor cursor(set);
  for (RowRange range; cursor.Next(&range);) ranges.push_back(range);
  return ranges;
}

std::vector<RowRange> RangesOf(const std::set<uint64_t>& rows) {
  std::vector<RowRange> ranges;
  for (const uint64_t row : rows) {
    if (!ranges.empty() && ranges.back().end() == row) {
      ++ranges.back().count;
    } else {
      ranges.push_back({row, 1});
    }
  }
  return ranges;
}

TEST(RowSet, HasWhatAPlainSetHasWhateverIsInsertedAndErased) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 20; ++trial) {
    // Ranges far and near, in several blocks or in one.
    const uint64_t rows = trial % 2 == 0 ? 300 : 3000, stretch = trial % 3 == 0 ? 1000 : 1;
    const uint64_t longest = 1 + random() % 8;
    RowSet set;
    std::set<uint64_t> plain;
    for (int step = 0; step < 1500; ++step) {
      const uint64_t first = stretch * (random() % rows), count = 1 + random() % longest;
      uint64_t there = 0;
      for (uint64_t row = first; row < first + count; ++row) there += plain.contains(row);
      if (there == 0) {
        const RowRange whole = set.Insert({first, count});
        for (uint64_t row = first; row < first + count; ++row) plain.insert(row);
        for (uint64_t row = whole.first; row < whole.end(); ++row) ASSERT_TRUE(plain.contains(row));
        ASSERT_FALSE(plain.contains(whole.end()));
        ASSERT_TRUE(whole.first == 0 || !plain.contains(whole.first - 1));
      } else if (there == count && random() % 2 == 0) {
        set.Erase({first, count});
        for (uint64_t row = first; row < first + count; ++row) plain.erase(row);
      }
      if (step % 50 != 0) continue;
      ASSERT_EQ(RangesOf(set), RangesOf(plain));
      ASSERT_EQ(set.num_rows(), plain.size());
      std::vector<RowRange> within, expected;
      const RowRange looked = {stretch * (random() % rows), 1 + random() % 200};
      set.Each(looked, [&](const RowRange& range) { within.push_back(range); });
      std::set<uint64_t> some(plain.lower_bound(looked.first), plain.lower_bound(looked.end()));
      ASSERT_EQ(within, RangesOf(some));
    }
    // The same rows in another order are the same set, and the same bytes.
    RowSet again, appended;
    std::vector<RowRange> ranges = RangesOf(set);
    for (const RowRange& range : ranges) appended.Append(range);
    std::shuffle(ranges.begin(), ranges.end(), random);
    for (const RowRange& range : ranges) again.Insert(range);
    EXPECT_EQ(again, set);
    EXPECT_EQ(appended, set);
    EXPECT_EQ(again.Serialize(), set.Serialize());
    const auto parsed = RowSet::Parse(set.Serialize());
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, set);
    EXPECT_EQ(parsed->empty(), plain.empty());
  }
}

TEST(RowSet, RowsThatTouchAreOneRange) {
  RowSet set = {{10, 5}, {20, 5}};
  EXPECT_EQ(set.Insert({15, 5}), (RowRange{10, 15}));
  set.Append({25, 1});
  EXPECT_EQ(RangesOf(set), (std::vector<RowRange>{{10, 16}}));
  EXPECT_EQ(set.Serialize(), "\x0a\x10");
  set.Erase({10, 16});
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.Serialize(), "");
}

// A unit of a hundred rows in every split of a thousand, as a rank of several has them.
TEST(RowSet, ARangeTakesAFewBytes) {
  RowSet set;
  for (uint64_t split = 0; split < 10'000; ++split) set.Append({split * 1000, 100});
  EXPECT_EQ(set.Serialize().size(), 30'000u - 1);  // the first gap is none
}

TEST(RowSet, RefusesBytesThatItDoesNotWrite) {
  const auto refused = [](const std::string& bytes) { return !RowSet::Parse(bytes); };
  EXPECT_FALSE(refused(""));
  EXPECT_FALSE(refused({0, 1, 1, 1}));
  EXPECT_TRUE(refused({1}));                                       // without its length
  EXPECT_TRUE(refused({1, 0}));                                    // no rows
  EXPECT_TRUE(refused({1, 1, 0, 1}));                              // touching
  EXPECT_TRUE(refused({1, '\x81'}));                               // cut off
  EXPECT_TRUE(refused({1, '\x81', 0}));                            // longer than it needs
  EXPECT_TRUE(refused("\x01" + std::string(9, '\x80') + "\x01"));  // too large a number
  const std::string most = std::string(8, '\xff') + "\x7f";        // 2^63 - 1
  EXPECT_FALSE(refused(std::string("\x01", 1) + most));            // up to row 2^63
  EXPECT_TRUE(refused(std::string("\x02", 1) + most));             // beyond
  EXPECT_TRUE(refused(most + most));
}

}  // namespace
}  // namespace headrace::reader
