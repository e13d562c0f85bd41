// The rules that can speak of a program seen from outside: each firing and not firing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/recommendations/outside.h"
#include "analysis/advice/statements.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

RunView WithReads(OutsideRun run, double requests, double bytes) {
  const auto add = [&](const char* metric, double value) {
    MeasurementRow row;
    row.metric = metric;
    row.cause = "read";
    row.value = value;
    run.view.measurements.push_back(row);
  };
  add("block_requests_count", requests);
  add("block_bytes", bytes);
  return run.view;
}

RunView WithMeasured(OutsideRun run, const char* metric, const char* cause, double value) {
  MeasurementRow row;
  row.metric = metric;
  row.cause = cause;
  row.value = value;
  run.view.measurements.push_back(row);
  return run.view;
}

const Recommendation& Of(const std::vector<Recommendation>& all, const std::string& id) {
  for (const Recommendation& one : all) {
    if (one.id == id) return one;
  }
  ADD_FAILURE() << id;
  return all.at(0);
}

TEST(OutsideRecommendations, EachRuleFiresAndDoesNot) {
  // Loader's shares are, for the trainer: on CPU, stalled; for each worker: on CPU, on storage,
  // waiting for requests.
  const RunView computing = Loader(2, 0.3, 0.65, 0.95, 0, 0.02, 2.2).view;
  OutsideRun crowded = Loader(4, 0.15, 0.6, 0.5, 0, 0.03, 3.95);
  for (int w = 0; w < 4; ++w) crowded.Runnable(200 + w, "pt_data_worker (main)", 0.45);
  const RunView full = crowded.view;
  const RunView keeps_up = Loader(4, 0.95, 0.02, 0.2, 0, 0.75, 1.8).view;
  const OutsideRun stored = Loader(2, 0.3, 0.65, 0.1, 0.85, 0.02, 0.8);
  const OutsideRun plain = Loader(2, 0.3, 0.65, 0.95, 0, 0.02, 2.2);
  const struct {
    const char* id;
    const char* name;
    RunView run;
    Advice advice;
    const char* why;
  } cases[] = {
      {"R1", "cores are free", computing, Advice::kFires, "cores are free"},
      {"R1", "no core is left", full, Advice::kDoesNotFire, "no core is left"},
      {"R1", "the consumer limits", keeps_up, Advice::kDoesNotFire, "would wait too"},
      {"R3", "workers have nothing to spare", computing, Advice::kDoesNotFire, "waiting for the"},
      {"R3", "in turn", Loader(2, 0.5, 0.45, 0.5, 0, 0.48, 1.8).view, Advice::kFires, "in turn"},
      {"R5", "small reads", WithReads(stored, 1000, 4e6), Advice::kFires, "3.91 KiB long"},
      {"R5", "large reads", WithReads(stored, 10, 1e7), Advice::kDoesNotFire, "gains little"},
      {"R5", "reads not counted", stored.view, Advice::kCannotSay, "not counted"},
      {"R5", "computing", computing, Advice::kDoesNotFire, "not the limit"},
      {"R10", "memory pressed", WithMeasured(plain, "pressure_ns", "memory some", 2e9),
       Advice::kFires, "20.0 % of the time"},
      {"R10", "memory free", WithMeasured(plain, "pressure_ns", "memory some", 1e6),
       Advice::kDoesNotFire, "of the time"},
      {"R10", "not recorded", computing, Advice::kCannotSay, "not recorded"},
      {"R12", "storage", stored.view, Advice::kCannotSay, "how often"},
      {"R12", "computing", computing, Advice::kDoesNotFire, "not the limit"},
      {"R17", "cores", full, Advice::kFires, "CPU cores are the limit"},
      {"R17", "computing", computing, Advice::kDoesNotFire, "not the limit"},
      {"R21", "cores", full, Advice::kFires, "CPU cores are the limit"},
      {"R21", "storage", stored.view, Advice::kFires, "storage limits"},
      {"R21", "throttled", WithMeasured(plain, "cgroup_throttled_ns", "", 2e9), Advice::kFires,
       "CPU quota"},
      {"R21", "out of memory", WithMeasured(plain, "pressure_ns", "memory full", 2e9),
       Advice::kFires, "waited for memory"},
      {"R21", "producers", computing, Advice::kDoesNotFire, "is not hardware"},
      {"R22", "may be loading", keeps_up, Advice::kCannotSay, "samples and unpacks"},
      {"R22", "keeps up", WithStacks(Loader(4, 0.93, 0.03, 0.1, 0, 0.88), 9, 0.1, 0.1),
       Advice::kFires, "keeps up"},
      {"R22", "computing", computing, Advice::kDoesNotFire, "waits 6"},
      {"R23", "idle workers", keeps_up, Advice::kFires, "would do"},
      {"R23", "computing", computing, Advice::kDoesNotFire, "none can be removed"},
      {"R4", "from outside", computing, Advice::kCannotSay, "not known from outside"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(c.id) + " " + c.name);
    const Statements statements = MakeStatements(c.run);
    ASSERT_TRUE(statements.outside.has_value());
    ASSERT_TRUE(statements.outside->decided) << statements.outside->measure;
    const std::vector<Recommendation> all = RecommendFromOutside(c.run, *statements.outside);
    ASSERT_EQ(all.size(), Registry<RecommendationRule>::Global().entries().size());
    const Recommendation& one = Of(all, c.id);
    EXPECT_STREQ(AdviceName(one.advice), AdviceName(c.advice)) << one.why;
    EXPECT_THAT(one.why, testing::HasSubstr(c.why));
    EXPECT_EQ(one.act.empty(), one.advice != Advice::kFires);
    EXPECT_EQ(one.record.empty(), one.advice != Advice::kCannotSay);
    // These all train: no rule calls who does that the consumer.
    for (const Recommendation& each : all) {
      EXPECT_THAT(each.why + each.act + each.record, testing::Not(testing::HasSubstr("consumer")))
          << each.id;
    }
  }
}

// What was not measured is not called 0, nor are cores free that others may be on.
TEST(OutsideRecommendations, WhatOthersUseOfSomeCoresIsNotKnown) {
  RunView view = Loader(2, 0.3, 0.65, 0.95, 0, 0.02, 2.2).view;
  for (HostRow& row : view.hosts) {
    if (row.metric == "host_cores") row.mean_value = 64;
  }
  Statements statements = MakeStatements(view);
  ASSERT_TRUE(statements.outside.has_value());
  EXPECT_FALSE(statements.outside->cores_free.has_value());
  const Recommendation workers = Of(RecommendFromOutside(view, *statements.outside), "R1");
  EXPECT_EQ(workers.advice, Advice::kCannotSay) << workers.why;
  OutsideRun crowded = Loader(4, 0.15, 0.6, 0.5, 0, 0.03, 3.95);
  for (int w = 0; w < 4; ++w) crowded.Runnable(200 + w, "pt_data_worker (main)", 0.45);
  statements = MakeStatements(crowded.view);
  ASSERT_EQ(statements.outside->findings.at(0).limit, OutsideLimit::kCores);
  Outside unknown = *statements.outside;
  unknown.cores_free.reset();
  unknown.cores_others.reset();
  const std::vector<Recommendation> all = RecommendFromOutside(crowded.view, unknown);
  EXPECT_THAT(Of(all, "R1").why, testing::HasSubstr("not known"));
  EXPECT_THAT(Of(all, "R17").why, testing::HasSubstr("an unknown part by other programs"));
}

TEST(OutsideRecommendations, WithoutAVerdictThereAreNone) {
  OutsideRun run(1);
  run.Process(100, 1, "x");
  const Statements statements = MakeStatements(run.view);
  ASSERT_TRUE(statements.outside.has_value());
  ASSERT_NE(statements.outside->withheld, "");
  EXPECT_TRUE(RecommendFromOutside(run.view, *statements.outside).empty());
}

}  // namespace
}  // namespace headrace::analysis
