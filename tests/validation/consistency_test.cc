// No statement about a run contradicts another: over pipelines of the bench's generator.
#include "tests/analysis/consistency.h"

#include <gtest/gtest.h>

#include "tests/validation/generator.h"
#include "tests/validation/recorder.h"

namespace headrace::validation {
namespace {

TEST(Consistency, OfGeneratedWorlds) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Planted planted = Generate(seed);
    Recording how;
    how.seconds = 10;
    how.level = planted.level;
    const analysis::RunView run = Record(planted.world, how, seed);
    const analysis::Contradictions contradictions(run, seed % 6 == 0);
    EXPECT_TRUE(contradictions.found().empty()) << "seed " << seed << "\n" << contradictions.text();
  }
}

}  // namespace
}  // namespace headrace::validation
