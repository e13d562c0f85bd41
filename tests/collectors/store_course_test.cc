// What the store keeps of a run over time, and where sampled stacks waited.
#include <gtest/gtest.h>

#include "collectors/store/store.h"
#include "tests/collectors/store_fixture.h"

namespace headrace::collectors {
namespace {

// The course of a stage is the sum of its operators', in runs of this version and of earlier ones.
TEST_F(Store, AStagesCourseIsThatOfItsOperators) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  IntervalSample third = Interval(500 * kMs, 250 * kMs, 2);
  third.operators[1].on_cpu_ns.reset();  // not separated
  IntervalSample idle = Interval(750 * kMs, 250 * kMs, 2);
  idle.operators[1].busy_ns = 0;
  idle.operators[1].on_cpu_ns.reset();
  store.Append(run, {Interval(0, 250 * kMs), Interval(250 * kMs, 250 * kMs, 2), third, idle});
  const std::string course =
      "SELECT start_ns / 1000000, busy_ns / 1000000, operators_on_cpu_ns / 1000000, "
      "operators_blocked_ns / 1000000, operators_runnable_ns / 1000000, wait_in_ns / 1000000, "
      "wait_out_ns / 1000000 FROM stage_interval ORDER BY start_ns";
  EXPECT_EQ(Row(course),
            "0|150|100|43|7|30|20\n250|300|200|86|14|60|40\n500|300|||14|60|40\n"
            "750|150|100|43|7|60|40");
  store.database().Execute("UPDATE stage_intervals SET busy_ns = NULL, wait_in_ns = NULL");
  EXPECT_EQ(Row("SELECT SUM(busy_ns) / 1000000, SUM(wait_in_ns) / 1000000 FROM stage_interval"),
            "900|210")
      << "of an earlier version";
}

TEST_F(Store, StacksSayWhereTheirThreadWaited) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  MeasurementBatch batch;
  batch.stacks = {{0, "cpu", 0, {}, "decode", "decode;main", 1, 10},
                  {1, "off_cpu", 0, {}, "decode", "decode;[lock];main", 1, 20},
                  {2, "off_cpu", 0, {}, "decode", "decode;[waits for input];main", 1, 30},
                  {3, "off_cpu", 0, {}, "decode", "decode;[waits for room];main", 1, 40},
                  {4, "off_cpu", {}, {}, "timer", "timer;[sleep];main", 1, 50}};
  store.Append(run, {Interval(0, kSecond)}, batch);
  EXPECT_EQ(Row("SELECT kind, class, time_ns FROM stack_summary ORDER BY time_ns"),
            "cpu||10\noff_cpu|inside|20\noff_cpu|queue|30\noff_cpu|queue|40\noff_cpu|outside|50");
}

TEST_F(Store, TimesOfStepsHaveACourse) {
  RunStore store(path_);
  const int64_t run = store.BeginRun(Info("r"));
  store.Append(run, {Interval(0, 250 * kMs), Interval(250 * kMs, 250 * kMs)});
  EXPECT_EQ(Row("SELECT start_ns, steps_count, step_ns > 37000000 AND step_ns < 43000000 OR "
                "step_ns > 56000000 AND step_ns < 64000000, below_ratio FROM step_time_interval "
                "ORDER BY start_ns, step_ns"),
            "0|1|1|0.5\n0|1|1|1\n250000000|1|1|0.5\n250000000|1|1|1");
  EXPECT_EQ(Row("SELECT SUM(steps_count) FROM step_time_histogram"), "4");
  for (int64_t i = 2; i < 40; ++i) store.Append(run, {Interval(i * 250 * kMs, 250 * kMs)});
  store.Rollup(run, 2000 * kSecond);
  EXPECT_EQ(Row("SELECT SUM(steps_count), COUNT(DISTINCT start_ns) < 10 FROM step_time_interval"),
            "80|1")
      << "older ones become fewer and longer";
}

// Ages at which intervals become longer are shorter the more operators there are.
TEST_F(Store, ManyOperatorsAreMergedSooner) {
  for (const auto& [operators, merged_s] : {std::pair(100, 0), std::pair(1000, 40)}) {
    SCOPED_TRACE(operators);
    const std::string path = fmt::format("{}/{}.db", folder_, operators);
    RunStore store(path);
    const int64_t run = store.BeginRun(Info("r"));
    std::vector<IntervalSample> course;
    for (int64_t i = 0; i < 100; ++i) course.push_back(Interval(i * kSecond, kSecond, operators));
    store.Append(run, course);
    store.Rollup(run, 100 * kSecond);
    Database& database = store.database();
    EXPECT_EQ(database.Integer("SELECT COALESCE(MAX(start_ns + duration_ns), 0) FROM intervals "
                               "WHERE duration_ns = 2000000000"),
              merged_s * kSecond);
    EXPECT_EQ(database.Integer("SELECT COUNT(*) FROM operator_intervals"),
              (100 - merged_s / 2) * operators);
    EXPECT_EQ(database.Integer("SELECT SUM(busy_ns) FROM operator_intervals"),
              database.Integer("SELECT SUM(busy_ns) FROM operators"));
  }
}

}  // namespace
}  // namespace headrace::collectors
