// What is known too little of gets no verdict from outside, or a less probable one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "analysis/outside/outside.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

// What is thought of a clear case of which `lost_count` of `what` were lost and `seen` of the
// metric counted.
Outside WithLoss(const std::string& what, int64_t lost_count, const std::string& metric,
                 double seen, Count total = {}) {
  RunView view = Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view;
  MeasurementRow row;
  row.metric = metric;
  row.pid = 100;
  row.value = seen;
  view.measurements.push_back(row);
  view.losses.push_back({what, lost_count, total});
  return LookFromOutside(view);
}

// The off-CPU program was given up while libraries were loaded.
TEST(Outside, APartThatWasWatchedDoesNotStandForTheRest) {
  OutsideRun run;
  run.Process(1, 0, "python", "python train.py").Process(2, 1, "pt_data_worker");
  run.view.course.push_back({0, "on_cpu_ns", 1, "python (main)", "", "", 0.99e9});
  run.view.course_seen_ns["on_cpu_ns"] = 1'000'000'000;
  EXPECT_EQ(LookFromOutside(run.view).withheld, "") << "it slept for the rest";
  run.view.probes.push_back({"off-CPU time", "degraded", "stopped while recording: too much", ""});
  EXPECT_THAT(LookFromOutside(run.view).withheld, HasSubstr("watched for 1.0 of 10.0 s"));
  for (int64_t slice = 0; slice < 10; ++slice) {
    run.view.course.push_back({slice, "thread_on_cpu_ns", 1, "python (main)", "", "", 0.1e9});
    run.view.course.push_back({slice, "thread_on_cpu_ns", 2, "pt_data_worker (main)", "", "", 1e9});
  }
  run.view.metrics.push_back("thread_on_cpu_ns");
  run.view.course_seen_ns["thread_on_cpu_ns"] = 10'000'000'000;
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.withheld, "");
  EXPECT_EQ(seen.knowledge, OutsideKnowledge::kCpu);
  EXPECT_NEAR(seen.groups[0].time.on_cpu_s, 1, 1e-6);
}

TEST(Outside, ThreadsWithoutACourseTakeFromTheProbability) {
  OutsideRun run = Loader(2, 0.15, 0.8, 0.95, 0, 0.03);
  double in_course = 0;
  for (const CourseRow& row : run.view.course) {
    if (row.metric == "on_cpu_ns") in_course += row.value;
  }
  const double whole = LookFromOutside(run.view).findings[0].probability;
  MeasurementRow& total = run.view.measurements.emplace_back();
  total.metric = "on_cpu_ns";
  total.process_id = 200;
  total.value = in_course / 0.8;
  const Outside seen = LookFromOutside(run.view);
  EXPECT_NEAR(seen.findings[0].probability, 0.8 * whole, 1e-3);
  EXPECT_THAT(seen.unknown, testing::Contains(HasSubstr("20 % of the threads' times")));
}

TEST(Outside, WithholdsWhatItCannotKnow) {
  EXPECT_THAT(LookFromOutside(RunView{}).withheld, HasSubstr("no thread was seen"));
  OutsideRun run(1);
  run.Process(1, 0, "x").OnCpu(1, "x (main)", 1);
  EXPECT_THAT(LookFromOutside(run.view).withheld, HasSubstr("too short"));
}

TEST(Outside, WhatWasLostTakesFromTheProbability) {
  const double whole =
      WithLoss("offcpu: threads", 0, "switches_count", 10000).findings[0].probability;
  ASSERT_GE(whole, 0.95);
  for (const auto& [what, lost, metric] :
       {std::tuple{"offcpu: threads", 5000, "switches_count"},  // each switch is out and in
        std::tuple{"offcpu: switches", 2500, "switches_count"},
        std::tuple{"offcpu: off cpu periods", 2500, "runnable_count"},
        std::tuple{"offcpu: wakeups", 2500, "wakeups_count"}}) {
    const Outside seen = WithLoss(what, lost, metric, 10000);
    EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers) << what;
    EXPECT_NEAR(seen.findings[0].probability, 0.8 * whole, 1e-6) << what;
    EXPECT_TRUE(seen.decided) << what;
    EXPECT_THAT(seen.unknown, testing::Contains(HasSubstr("20 % of"))) << what;
  }
  const Outside much = WithLoss("offcpu: wakeups", 4000, "wakeups_count", 6000);
  EXPECT_TRUE(much.withheld.empty());
  EXPECT_FALSE(much.decided);
  EXPECT_THAT(much.measure, HasSubstr("40 % of the wake-ups were lost"));
  for (const Outside& none : {WithLoss("offcpu: threads", 60000, "switches_count", 10000),
                              WithLoss("offcpu: threads", 1, "x", 1),
                              WithLoss("threads whose waits were not sampled", 9000, "x", 1, 13096),
                              WithLoss("follow: processes", 3, "on_cpu_ns", 1e9)}) {
    EXPECT_THAT(none.withheld, HasSubstr("were lost"));
  }
  for (const char* other : {"block_io: completions", "offcpu: run queue waits",
                            "cpu_stack: threads", "follow: threads", ""}) {
    const Outside seen = WithLoss(other, 1 << 20, "switches_count", 1);
    EXPECT_EQ(seen.findings[0].probability, whole) << other;
  }
  // Damaged rows.
  EXPECT_EQ(WithLoss("offcpu: threads", -5, "switches_count", 10).findings[0].probability, whole);
  EXPECT_EQ(WithLoss("threads whose waits were not sampled", -5, "x", 1, -7).withheld, "");
  EXPECT_THAT(WithLoss("threads whose waits were not sampled", 5, "x", 1, -7).withheld,
              HasSubstr("100 % of the threads"));
}

TEST(Outside, AStoppedProcessHasNoVerdictButAReason) {
  for (const double seconds : {10.0, 1.0}) {
    OutsideRun run(seconds);
    run.Process(42, 1, "python", "python train.py");
    run.Blocked(42, "python (main)", "stopped", 0.99).Blocked(42, "python", "stopped", 3.0);
    const Outside seen = LookFromOutside(run.view);
    EXPECT_EQ(seen.withheld,
              "the process is stopped (SIGSTOP, job control or a debugger); kill -CONT 42");
    EXPECT_EQ(WaitCauseOf("stopped"), WaitCause::kStopped);
  }
  // The trainer with its workers; their waits are nobody's work.
  OutsideRun tree = Loader(2, 0, 0, 0, 0, 0);
  for (CourseRow& row : tree.view.course) {
    if (row.metric == "off_cpu_ns") row.cause = "stopped";
    if (row.metric != "off_cpu_ns") row.value = 0;
  }
  tree.Blocked(100, "python (main)", "stopped", 1);
  EXPECT_THAT(LookFromOutside(tree.view).withheld, HasSubstr("kill -CONT 100 200 201"));
}

TEST(Outside, AStoppedProcessBesideIsNamedOnly) {
  OutsideRun run = Loader(2, 0.15, 0.8, 0.95, 0, 0.03);
  run.Process(300, 100, "editor").Blocked(300, "editor (main)", "stopped", 1);
  Outside seen = LookFromOutside(run.view);
  EXPECT_TRUE(seen.decided);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_THAT(seen.unknown, testing::Contains(HasSubstr("process editor is stopped")));

  // Workers that are stopped are what the trainer waits for.
  OutsideRun idle;
  idle.Process(100, 1, "python").Blocked(100, "python (main)", "poll", 0.99);
  idle.OnCpu(100, "python (main)", 0.01);
  idle.Process(200, 100, "pt_data_worker").Blocked(200, "pt_data_worker (main)", "stopped", 1);
  seen = LookFromOutside(idle.view);
  EXPECT_FALSE(seen.decided);
  EXPECT_THAT(seen.measure, HasSubstr("kill -CONT 200"));
}

// Rows that no probe would write must neither crash nor invent a process.
TEST(Outside, BearsDamagedRows) {
  OutsideRun run = Loader(2, 0.15, 0.8, 0.95, 0, 0.03);
  run.Add("wakeups_count", 100, "python (main)", "poll", 5, "");
  run.Add("wakeups_count", 100, "python (main)", "poll", 5, "/");
  run.Add("wakeups_count", 100, "python (main)", "poll", 5, "x/y");
  run.Add("wakeups_count", 100, "python (main)", "poll", 5, "99999999999999999999999/y");
  run.Add("wakeups_count", 100, "python (main)", "no such cause", 5, "200/pt_data_worker");
  run.Add("on_cpu_ns", 31337, "ghost", "", 1);
  run.view.processes.push_back(run.view.processes[0]);  // its own parent, twice
  run.view.processes.back().parent_pid = run.view.processes.back().pid;
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  for (const ThreadGroup& group : seen.groups) EXPECT_NE(group.thread, "ghost");
}

}  // namespace
}  // namespace headrace::analysis
