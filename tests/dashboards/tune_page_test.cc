// The page of a tuning that is over, as people read it, and as a plan file.
#include "dashboards/tune_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/dashboards/golden.h"

namespace headrace::dashboards {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// One knob was turned from 1 to 4, which made the pipeline twice as fast.
TunePage Verified() {
  TunePage page;
  page.result.start = {{"load.parallelism", 1}, {"load.queue", 4}};
  page.result.end = {{"load.parallelism", 4}, {"load.queue", 4}};
  page.result.effect = 1;
  page.result.effect_interval = {0.9, 1.1};
  page.result.shown = true;
  page.result.pairs = 6;
  page.result.rate = 800;
  page.result.why = "the plan changes nothing any more";
  page.result.converged = true;
  page.result.applied = 1;
  page.decisions = {R"({"action": "apply", "verdict": "kept"})"};
  page.then_limited_by = "the consumer";
  page.pipeline = "/data/my pipeline.toml";
  page.name = "nightly";
  page.run_id = 7;
  page.rows_per_batch = 8;
  page.program = "headrace";
  page.database = "runs.db";
  page.database_option = " --db runs.db";
  page.file = "my pipeline.toml";
  return page;
}

TEST(TunePage, WhatWasVerifiedAndTheNextCommand) {
  TunePage page = Verified();
  ExpectGolden("tune.txt", TuneText(page));
  page.output = "plan.json";
  EXPECT_THAT(TuneText(page), HasSubstr("'my pipeline.toml' --db runs.db --plan plan.json\n"));
  page.start_settings = {{"cache.after", "extract"}};
  EXPECT_THAT(TuneText(page),
              HasSubstr("settings: --set load.parallelism=4 --set cache.after=extract\n"));
}

// Its knobs are turned by a command of its owner, so no run with options can be named.
TEST(TunePage, AProcessOfSomebodyElses) {
  TunePage page = Verified();
  page.foreign = true;
  EXPECT_THAT(TuneText(page), HasSubstr("settings: load.parallelism=4\n"));
  EXPECT_THAT(TuneText(page), Not(HasSubstr("headrace run")));
}

TEST(TunePage, WhatWasNotVerified) {
  TunePage page = Verified();
  page.result.effect.reset();
  page.result.effect_note = "nothing was turned";
  page.result.end = page.result.start;
  EXPECT_THAT(TuneText(page), HasSubstr("not verified: nothing was turned\n"));
  EXPECT_THAT(TuneText(page), HasSubstr("settings: as they were\n"));
  EXPECT_THAT(TuneText(page), Not(HasSubstr("headrace run")));
  const json out = json::parse(TuneJson(page));
  EXPECT_TRUE(out["effect_ratio"].is_null());
  EXPECT_TRUE(out["effect_interval"].is_null());
  const json plan = json::parse(TunedPlanJson(page));
  EXPECT_TRUE(plan["gain_interval"]["low"].is_null());
  EXPECT_TRUE(plan["predicted"]["low"].is_null());
  EXPECT_EQ(plan["now"]["batches_per_second"], 800.0);
}

TEST(TunePage, Json) {
  const json out = json::parse(TuneJson(Verified()));
  EXPECT_EQ(out["schema"], "headrace.tune/1");
  EXPECT_EQ(out["start"]["load.parallelism"], 1);
  EXPECT_EQ(out["end"]["load.parallelism"], 4);
  EXPECT_EQ(out["rate"]["rows_per_second"], 6400.0);
  EXPECT_EQ(out["effect_interval"]["level_ratio"], 0.95);
  EXPECT_EQ(out["decisions"][0]["verdict"], "kept");
  const json decisions = json::parse(TuneDecisionsJson(Verified().decisions));
  EXPECT_EQ(decisions["schema"], "headrace.tune_decisions/1");
  EXPECT_EQ(decisions["decisions"], out["decisions"]);
}

// What was verified stands where a plan has its prediction.
TEST(TunePage, ThePlanFile) {
  TunePage page = Verified();
  page.start_settings = {{"cache.after", "extract"}, {"decode.queue", "8"}};
  const json plan = json::parse(TunedPlanJson(page));
  EXPECT_EQ(plan["schema"], "headrace.plan/1");
  const json settings = {{"load.parallelism", 4}, {"cache.after", "extract"}, {"decode.queue", 8}};
  EXPECT_EQ(plan["settings"], settings);
  ASSERT_EQ(plan["changes"].size(), 1u);
  EXPECT_EQ(plan["changes"][0]["from"], 1);
  EXPECT_EQ(plan["now"]["batches_per_second"], 400.0);
  EXPECT_EQ(plan["predicted"]["batches_per_second"], 800.0);
  EXPECT_DOUBLE_EQ(plan["predicted"]["low"], 760.0);
  EXPECT_DOUBLE_EQ(plan["predicted"]["high"], 840.0);
  EXPECT_EQ(plan["then_limited_by"], "the consumer");
  EXPECT_EQ(plan["verified"]["pairs_count"], 6);
}

}  // namespace
}  // namespace headrace::dashboards
