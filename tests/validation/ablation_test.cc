// The table of what rules are worth: lines are read as they were written, and small changes are not
// shown.
#include "tests/validation/ablation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"

namespace headrace::validation {
namespace {

using testing::HasSubstr;

TEST(Ablation, IsReadAsItWasWritten) {
  const Ablation written = {"kQueueLoss", {{"median error", 0.0125, 0}, {"covered", 0.9, 50}}};
  std::vector<Ablation> read;
  std::istringstream lines(Lines(written));
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(Parse(line, &read)) << line;
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].rule, "kQueueLoss");
  ASSERT_EQ(read[0].figures.size(), 2u);
  EXPECT_DOUBLE_EQ(read[0].figures[0].value, 0.0125);
  EXPECT_EQ(read[0].figures[1].cases, 50u);
  EXPECT_FALSE(Parse("predict\t1\t2\t3\t4", &read));
}

TEST(Ablation, ShowsWhatIsMoreThanChance) {
  const Ablation whole = {"", {{"median error", 0.01, 0}, {"covered", 0.9, 50}}};
  const Ablation off = {"kQueueLoss", {{"median error", 0.014, 0}, {"covered", 0.86, 50}}};
  EXPECT_THAT(RenderAblations({whole, off}), HasSubstr("judgement | | |\n"));
  const Ablation worse = {"kQueueLoss", {{"median error", 0.02, 0}, {"covered", 0.8, 50}}};
  EXPECT_THAT(RenderAblations({whole, worse}), HasSubstr("judgement | +1.0 | -10.0 |\n"));
  EXPECT_EQ(RenderAblations({}), "");
}

TEST(Ablation, ARuleThatIsOffChangesFigures) {
  const Ablation whole = Ablate("", 2), off = Ablate("kModelError", 2);
  ASSERT_EQ(whole.figures.size(), off.figures.size());
  double change = 0;
  for (size_t i = 0; i < whole.figures.size(); ++i) {
    change += whole.figures[i].value != off.figures[i].value;
  }
  EXPECT_GT(change, 0);
  EXPECT_THROW(Ablate("kSmallStall", 1), Error) << "a definition";
  EXPECT_THROW(Ablate("kNoSuchRule", 1), Error);
}

}  // namespace
}  // namespace headrace::validation
