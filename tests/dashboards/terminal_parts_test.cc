// The parts of the screen of headrace top, and its keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <random>

#include "dashboards/terminal/bars.h"
#include "dashboards/terminal/keys.h"
#include "dashboards/terminal/text_columns.h"
#include "dashboards/terminal/time_course.h"
#include "dashboards/terminal/top_table.h"
#include "tests/dashboards/top_runs.h"
#include "tests/seed.h"

namespace headrace::dashboards {
namespace {

using testing::HasSubstr;

// ---------------------------------------------------------------- parts

TEST(TopParts, Bars) {
  struct Case {
    std::optional<double> ratio;
    const char *blocks, *ascii;
  };
  for (const Case& c :
       {Case{0.0, "░░░░", "...."}, Case{1.0, "████", "####"}, Case{0.5, "██░░", "##.."},
        Case{0.001, "▏░░░", "#..."}, Case{7.0, "████", "####"}, Case{-1.0, "░░░░", "...."},
        Case{std::nullopt, "    ", "    "}, Case{NAN, "    ", "    "}}) {
    EXPECT_EQ(Bar(c.ratio, 4, false), c.blocks);
    EXPECT_EQ(Bar(c.ratio, 4, true), c.ascii);
  }
}

TEST(TopParts, SparksKeepGaps) {
  EXPECT_EQ(Spark({0.0, 0.5, 1.0}, 5, 1, true), "  _=#");
  EXPECT_EQ(Spark({1.0, std::nullopt, 1.0}, 3, 1, true), "# #");
  EXPECT_EQ(Spark({1.0, 1.0, std::nullopt, std::nullopt, 0.0, 0.0}, 3, 1, true), "# _");
  EXPECT_EQ(Spark({0.0, 2.0}, 2, 0, false), "▁█");  // the largest is full
  EXPECT_EQ(Spark({}, 3, 1, false), "   ");
}

TEST(TopParts, CoursesSpreadIntervalsOfAnyLength) {
  CourseMaker course(0, 120);
  course.Add(60, 30, 15, 30);      // half of it, in values 60 to 89
  course.Add(90, 1, 1, 1);         // all of it
  course.Add(100, 0, 1, 1);        // no time
  course.Add(119, 1000, 0, 1000);  // reaches beyond the end
  const TimeCourse values = course.Finish();
  ASSERT_EQ(values.size(), 60u) << "before the first known value there is nothing";
  EXPECT_NEAR(*values[0], 0.5, 1e-9);
  EXPECT_NEAR(*values[29], 0.5, 1e-9);
  EXPECT_NEAR(*values[30], 1, 1e-9);
  EXPECT_FALSE(values[31]) << "a gap is a gap";
  EXPECT_NEAR(*LastOf(values), 0, 1e-9);
  EXPECT_TRUE(CourseMaker(5, 5).Finish().empty());
}

TEST(TopParts, PercentCells) {
  EXPECT_EQ(PercentCell(0.0), "  0 %");
  EXPECT_EQ(PercentCell(0.004), " <1 %");
  EXPECT_EQ(PercentCell(0.97), " 97 %");
  EXPECT_EQ(PercentCell(1.2), "100 %");
  EXPECT_EQ(PercentCell(std::nullopt), "    -");
}

TEST(TopParts, NamesAreCutInTheMiddleAndNumbersNever) {
  EXPECT_EQ(FitName("decode", 8), "decode  ");
  EXPECT_EQ(FitName("storage_latency_of_all", 12), "storage..all");
  EXPECT_EQ(TextColumns(FitName("取得取得取得取得", 9)), 9u);
  EXPECT_EQ(FitName("abcdef", 3), "...");
  EXPECT_EQ(RightAlign("123456789", 4), "123456789");
  EXPECT_EQ(TextColumns("e\u0301"), 1u);
  EXPECT_EQ(InAscii("▶取é a"), "???? a");
  EXPECT_THAT(WrapColumns("one two three", 8), testing::ElementsAre("one two", "three"));
  EXPECT_THAT(WrapColumns("abcdefghij kl", 4), testing::ElementsAre("abcd", "efgh", "ij", "kl"));
}

TEST(TopKeys, DoWhatTheHelpSays) {
  using Kind = Key::Kind;
  const auto press = [](const std::vector<Key>& keys, TopState state = {}) {
    for (const Key& key : keys) Press(key, 3, &state);
    return state;
  };
  const auto c = [](const char* text) { return Key{Kind::kCharacter, text}; };
  EXPECT_TRUE(press({c("q")}).quit);
  EXPECT_TRUE(press({c("p")}).frozen);
  EXPECT_FALSE(press({c("p"), c("p")}).frozen);
  EXPECT_EQ(press({c("s")}).sort, TopSort::kBusy);
  EXPECT_EQ(press({c("s"), c("s"), c("s"), c("s")}).sort, TopSort::kPipeline);
  EXPECT_EQ(press({c("/"), c("d"), c("q"), {Kind::kEnter}}).filter, "dq");
  EXPECT_FALSE(press({c("/"), c("q")}).quit);
  EXPECT_EQ(press({c("/"), c("é"), {Kind::kBackspace}}).filter, "");
  EXPECT_EQ(press({c("/"), c("d"), {Kind::kEscape}}).filter, "");
  EXPECT_EQ(press({c("/"), c("\x1b")}).filter, "");
  EXPECT_EQ(press({c("+")}).interval_ns, 2 * kSecondNs);
  EXPECT_EQ(press({c("-"), c("-"), c("-"), c("-")}).interval_ns, kLeastIntervalNs);
  EXPECT_TRUE(press({c("m")}).mark);
  EXPECT_TRUE(press({c("w")}).address);
  EXPECT_FALSE(press({c("w"), c("w")}).address);
  EXPECT_FALSE(press({c("/"), c("m"), c("w")}).mark) << "letters of a filter";
  EXPECT_TRUE(press({c("?")}).help);
  EXPECT_FALSE(press({c("?"), {Kind::kEscape}}).help);
  // The first press shows where the selection is; it stays within the stages.
  EXPECT_EQ(press({{Kind::kDown}}).selected, 0u);
  EXPECT_EQ(press({{Kind::kDown}, {Kind::kDown}}).selected, 1u);
  EXPECT_EQ(press({{Kind::kEnd}, {Kind::kDown}, {Kind::kDown}}).selected, 2u);
  EXPECT_EQ(press({{Kind::kUp}, {Kind::kUp}}).selected, 0u);
  EXPECT_TRUE(press({{Kind::kEnter}}).operators);
  EXPECT_FALSE(press({{Kind::kEnter}, {Kind::kEnter}}).operators);
  EXPECT_TRUE(press({{Kind::kClosed}}).quit);
  EXPECT_FALSE(press({{Kind::kResize}, c("x"), c("\x01")}).quit);
}

TEST(TopKeys, ACommandThatRunsIsAskedAbout) {
  using Kind = Key::Kind;
  const auto press = [](const std::vector<const char*>& keys) {
    TopState state;
    state.asks = true;
    for (const char* key : keys) Press({Kind::kCharacter, key}, 1, &state);
    return state;
  };
  EXPECT_FALSE(press({"q"}).quit);
  EXPECT_TRUE(press({"q", "e"}).quit);
  EXPECT_TRUE(press({"q", "e"}).end_command);
  EXPECT_TRUE(press({"q", "l"}).quit);
  EXPECT_FALSE(press({"q", "l"}).end_command);
  EXPECT_FALSE(press({"q", "x"}).quit);
  EXPECT_FALSE(press({"q", "x"}).asking);
}

TEST(TopKeys, FilterAndSort) {
  const TopModel model = ModelOf(RecordedForTop(DecodeLimits()));
  TopState state;
  EXPECT_THAT(ShownStages(model, state), testing::ElementsAre(0, 1, 2));
  state.filter = "DECOMP";  // an operator of decode
  EXPECT_THAT(ShownStages(model, state), testing::ElementsAre(1));
  state.filter = "nothing";
  EXPECT_TRUE(ShownStages(model, state).empty());
  EXPECT_THAT(ScreenText(model, 80, 24, false, state), HasSubstr("no stage or operator"));
  state.filter = "";
  state.sort = TopSort::kAllows;
  EXPECT_EQ(ShownStages(model, state)[0], 1u);
  state.sort = TopSort::kName;
  EXPECT_THAT(ShownStages(model, state), testing::ElementsAre(2, 1, 0));
}

}  // namespace
}  // namespace headrace::dashboards
