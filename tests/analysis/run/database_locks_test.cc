#include "analysis/run/database_locks.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace::analysis {
namespace {

StackRow Sleep(const std::string& op, const std::string& frames, int64_t samples_count) {
  StackRow row;
  row.kind = "off_cpu";
  row.operator_name = op;
  row.folded = "pt_data_worker;[sleep];" + frames;
  row.samples_count = samples_count;
  row.time_ns = samples_count * 10'000'000;
  return row;
}

TEST(DatabaseLocks, SleepsInSqliteAreAPartOfAnOperatorsSleeps) {
  OperatorRow op;
  op.name = "next";
  op.stage = "workers";
  RunView run;
  EXPECT_EQ(SqliteSleepRatio(run, op), 0);
  const std::string query = "execute;sqlite3_step;sqlite3VdbeExec;";
  run.stacks = {Sleep("next", query + "usleep;clock_nanosleep", 30),
                Sleep("next", "time_sleep;clock_nanosleep", 8),
                Sleep("next", query + "callback;_PyEval_EvalFrameDefault;clock_nanosleep", 2),
                Sleep("next", "[truncated];clock_nanosleep", 500),
                Sleep("getitem", "time_sleep;clock_nanosleep", 500)};
  EXPECT_DOUBLE_EQ(SqliteSleepRatio(run, op), 0.75);
  run.stacks[0].samples_count = 3;
  run.stacks[1].samples_count = 3;
  EXPECT_EQ(SqliteSleepRatio(run, op), 0) << "too few";
}

}  // namespace
}  // namespace headrace::analysis
