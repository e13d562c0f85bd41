#include "analysis/run/ranks.h"

#include <gtest/gtest.h>

#include "tests/analysis/process_figure.h"

namespace headrace::analysis {
namespace {

struct Given {
  double steps, wait_s, compute_s;
};

RunView RunOf(const std::vector<Given>& ranks) {
  RunView run;
  int64_t pid = 100;
  for (const Given& rank : ranks) {
    AddProcessFigure(&run, pid, "rank_steps_count", rank.steps);
    AddProcessFigure(&run, pid, "rank_wait_ns", rank.wait_s * 1e9);
    AddProcessFigure(&run, pid, "rank_compute_ns", rank.compute_s * 1e9);
    ++pid;
  }
  return run;
}

TEST(Ranks, AreThoseThatTookBatchesLongestWaitFirst) {
  const auto ranks = Ranks(RunOf({{100, 1, 9}, {0, 0, 0}, {100, 4, 6}}));
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].pid, 102);
  EXPECT_DOUBLE_EQ(ranks[0].wait_ratio(), 0.4);
  EXPECT_DOUBLE_EQ(ranks[0].steps_per_s(), 10);
  EXPECT_EQ(ranks[1].pid, 100);
  EXPECT_TRUE(Ranks(RunOf({{100, 1, 9}})).empty()) << "one process is no job of ranks";
  EXPECT_TRUE(Ranks(RunOf({})).empty());
}

TEST(Ranks, TheSlowestIsNamedWhereItIsClear) {
  struct Case {
    const char* name;
    std::vector<Given> ranks;
    int64_t pid;  // 0: none
    const char* words;
  };
  const Case cases[] = {
      {"one of four waits, all step together",
       {{500, 0.5, 9.5}, {500, 0.6, 9.4}, {499, 6, 4}, {500, 0.8, 9.2}},
       102,
       "the slowest of 4 ranks, pid 102 (python): it waits 60.0 % of each step, the others 8.0 % "
       "at "
       "most"},
      {"one of two",
       {{500, 5, 5}, {501, 1, 9}},
       100,
       "the slowest of 2 ranks, pid 100 (python): it waits 50.0 % of each step, the other 10.0 %"},
      {"all wait alike", {{500, 5, 5}, {500, 5.2, 4.8}, {500, 4.9, 5.1}}, 0, ""},
      {"two of three wait: the third is no help",
       {{500, 5, 5}, {500, 5.1, 4.9}, {500, 0, 10}},
       0,
       ""},
      {"each finds no batch ready, one is a little behind", {{500, 7.5, 2.5}, {500, 4, 6}}, 0, ""},
      {"each by itself, as training and its evaluation", {{500, 1, 9}, {300, 4, 6}}, 0, ""},
      {"too few batches", {{19, 5, 5}, {19, 1, 9}}, 0, ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto slow = SlowestRank(Ranks(RunOf(c.ranks)));
    EXPECT_EQ(slow ? slow->rank.pid : 0, c.pid);
    if (!slow) continue;
    EXPECT_EQ(Words(*slow), c.words);
  }
}

}  // namespace
}  // namespace headrace::analysis
