#include "analysis/statistics/block_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace headrace::analysis {
namespace {

TEST(BlockComparison, SidesTakeTurnsInBlocksOfTwo) {
  for (const bool first : {false, true}) {
    BlockComparison blocks(first, 4, 0.01);
    std::string order;
    for (int i = 0; i < 8; ++i) {
      order += blocks.NextIsNew() ? 'n' : 'o';
      blocks.Add(100);
    }
    EXPECT_EQ(order, first ? "noonnoon" : "onnoonno")
        << "a change of settings for every two blocks";
  }
}

TEST(BlockComparison, ALargeEffectIsClearSoonAndASmallOneLater) {
  BlockComparison large(false, 8, 0.02);
  size_t pairs = 0;
  for (; !large.done(); ++pairs) large.Add(large.NextIsNew() ? 200 + double(pairs) : 100);
  EXPECT_EQ(large.effect().pairs, 3u);
  EXPECT_TRUE(large.effect().clear);
  EXPECT_NEAR(large.effect().ratio, 1, 0.05);
  EXPECT_GT(large.effect().interval.low, 0);

  BlockComparison none(false, 8, 0.02);
  for (int i = 0; !none.done(); ++i) none.Add(100 + i % 3);
  EXPECT_EQ(none.effect().pairs, 8u);
  EXPECT_FALSE(none.effect().clear);
  EXPECT_LT(none.effect().interval.low, 0);
  EXPECT_GT(none.effect().interval.high, 0);
}

TEST(BlockComparison, ADriftMeetsBothSidesAlike) {
  BlockComparison blocks(false, 8, 0.005);
  // Each block a twentieth slower than the one before; the settings make no difference.
  for (double rate = 100; !blocks.done(); rate *= 0.95) blocks.Add(rate);
  EXPECT_FALSE(blocks.effect().clear);
  EXPECT_NEAR(blocks.effect().ratio, 0, 0.02);
}

TEST(BlockComparison, NoPairIsSurerThanItsWindowsAre) {
  BlockComparison blocks(false, 3, 0.2);
  for (int i = 0; !blocks.done(); ++i) blocks.Add(blocks.NextIsNew() ? 110 : 100);  // no spread
  EXPECT_FALSE(blocks.effect().clear);
  EXPECT_LT(blocks.effect().interval.low, 0);
}

// The rate of false alarms over the whole sequence, with looking after each pair.
TEST(BlockComparison, RarelySeesWhatIsNotThere) {
  Random random(11);
  int alarms = 0;
  constexpr int kSequences = 1000;
  for (int i = 0; i < kSequences; ++i) {
    BlockComparison blocks(false, 8, 0.02);
    while (!blocks.done()) blocks.Add(100 * std::exp(0.02 * random.Normal()));
    alarms += blocks.effect().clear;
  }
  EXPECT_LE(alarms, 70) << "of " << kSequences;
}

TEST(CompareWindows, TellsFasterFromSlowerAndFromNeither) {
  Random random(3);
  const auto draw = [&](double mean, int n) {
    std::vector<double> rates;
    for (int i = 0; i < n; ++i) rates.push_back(mean * std::exp(0.03 * random.Normal()));
    return rates;
  };
  const std::vector<double> slow = draw(100, 12), fast = draw(130, 8), same = draw(100, 8);
  EXPECT_TRUE(CompareWindows(slow, fast).clear);
  EXPECT_GT(CompareWindows(slow, fast).interval.low, 0.15);
  EXPECT_TRUE(CompareWindows(fast, slow).clear);
  EXPECT_LT(CompareWindows(fast, slow).interval.high, 0);
  EXPECT_FALSE(CompareWindows(slow, same).clear);
}

}  // namespace
}  // namespace headrace::analysis
