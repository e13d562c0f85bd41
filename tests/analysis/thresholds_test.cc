// The thresholds: each says what it is and where it comes from, and can be off where it says so.
#include "analysis/thresholds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace headrace::analysis {
namespace {

TEST(Thresholds, EachSaysWhatItIsAndWhereItComesFrom) {
  std::set<std::string> names;
  for (const Threshold& threshold : Thresholds()) {
    EXPECT_TRUE(names.insert(threshold.name).second) << threshold.name;
    EXPECT_TRUE(std::isfinite(threshold.value)) << threshold.name;
    EXPECT_NE(threshold.value, threshold.off) << threshold.name;
    for (const char* text : {threshold.unit, threshold.what, threshold.source}) {
      EXPECT_GT(std::string(text).size(), 3u) << threshold.name;
    }
  }
  EXPECT_GT(names.size(), 30u);
}

TEST(Thresholds, ARuleIsOffForAsLongAsItSays) {
  EXPECT_EQ(kWorthwhileGain, 0.03);
  for (const Threshold& threshold : Thresholds()) {
    if (std::string(threshold.name) != "kWorthwhileGain") continue;
    {
      const RuleOff off(threshold);
      EXPECT_EQ(kWorthwhileGain, threshold.off);
    }
    EXPECT_EQ(kWorthwhileGain, 0.03);
  }
}

TEST(ThresholdsDeathTest, ADefinitionIsNeverOff) {
  for (const Threshold& threshold : Thresholds()) {
    if (threshold.can_be_off()) continue;
    EXPECT_DEATH(RuleOff{threshold}, "a rule that can be off") << threshold.name;
  }
}

}  // namespace
}  // namespace headrace::analysis
