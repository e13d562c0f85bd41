// A reduced set of the tuner's gates, on simulated pipelines that are the same everywhere.
#include "tests/validation/tuning.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/validation/gate_values.h"

namespace headrace::validation {
namespace {

TEST(Tuning, ComesNearTheBestInFewDecisionsAndStaysWithinTheMemory) {
  Tunings tunings;
  for (uint64_t seed = 48000; seed < 48012; ++seed) {
    for (const TuneTrial& trial : TryTuning(seed)) tunings.tunes.push_back(trial);
  }
  const std::vector<Gate> gates = Judge(tunings);
  Print(gates);
  EXPECT_GE(ValueOf(gates, "tuned within 5 % of the best, in at most 10 decisions"), 0.75);
  EXPECT_EQ(ValueOf(gates, "settings tried over memory"), 0);
  EXPECT_EQ(ValueOf(gates, "tuned slower than it was (by over 3 %)"), 0);
  for (const Gate& gate : gates) {
    EXPECT_TRUE(gate.id != "G13" || gate.value <= gate.limit) << gate.what;
  }
}

TEST(Tuning, RecoversFromALastingChangeAndIsQuietWithoutOne) {
  Tunings tunings;
  for (uint64_t seed = 49000; seed < 49008; ++seed) {
    for (const DriftTrial& trial : TryDrift(seed)) tunings.drifts.push_back(trial);
  }
  ASSERT_FALSE(tunings.drifts.empty());
  const std::vector<Gate> gates = Judge(tunings);
  Print(gates);
  EXPECT_GE(ValueOf(gates, "recovered (95 % of the best) 20 windows after a lasting change"), 0.7);
  EXPECT_LE(ValueOf(gates, "knobs turned while nothing changed"), 0.2);
  EXPECT_EQ(ValueOf(gates, "a knob turned back more than once, converged"), 0);
}

TEST(Tuning, LinesAreReadAsTheyAreWritten) {
  Tunings tunings;
  const TuneTrial tune{7, "lock", "hill climb, measured", 10, 20, 25, 12, 140, true, "1,2/4,4"};
  const DriftTrial drift{8, "cpu", "rows twice the size", 1, 10, 20, 21, 22, 2, false};
  EXPECT_TRUE(Parse(Line(tune), &tunings));
  EXPECT_TRUE(Parse(Line(drift), &tunings));
  ASSERT_EQ(tunings.tunes.size() + tunings.drifts.size(), 2u);
  EXPECT_EQ(Line(tunings.tunes[0]), Line(tune));
  EXPECT_EQ(Line(tunings.drifts[0]), Line(drift));
  EXPECT_FALSE(Parse("tune\t1", &tunings));
  EXPECT_TRUE(Judge(Tunings{}).empty());
  EXPECT_TRUE(RenderTuning(Tunings{}).empty());
}

}  // namespace
}  // namespace headrace::validation
