// Plan files: what is read of them, and that what is none is refused with the place.
#include "experiments/plan_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace headrace::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

constexpr const char* kWhole = R"({"schema": "headrace.plan/1", "run": 7, "pipeline": "/p.toml",
  "cores": 2, "settings": {"a.parallelism": 4, "b.kind": "x", "c.on": true, "d.share": 0.5},
  "predicted": {"batches_per_second": 10, "low": 9, "high": null}, "then_limited_by": "cores"})";

std::string Replaced(const std::string& before, const std::string& after) {
  std::string text = kWhole;
  const size_t at = text.find(before);
  EXPECT_NE(at, text.npos) << before;
  return text.replace(at, before.size(), after);
}

TEST(PlanFile, SettingsAndPrediction) {
  const PlanFile plan = ParsePlan(kWhole, "plan.json", 2);
  EXPECT_THAT(plan.settings, ElementsAre(Pair("a.parallelism", "4"), Pair("b.kind", "x"),
                                         Pair("c.on", "true"), Pair("d.share", "0.5")));
  EXPECT_EQ(plan.pipeline, "/p.toml");
  ASSERT_TRUE(plan.prediction);
  EXPECT_EQ(plan.prediction->from_run_id, 7);
  EXPECT_EQ(plan.prediction->batches_per_second, 10);
  EXPECT_EQ(plan.prediction->low, 9);
  EXPECT_FALSE(plan.prediction->high);
  EXPECT_EQ(plan.prediction->limited_by, "cores");
}

TEST(PlanFile, WithoutAPredictionThatHoldsHereItHasNone) {
  EXPECT_FALSE(ParsePlan(kWhole, "p", 3).prediction) << "of other cores";
  EXPECT_TRUE(ParsePlan(Replaced("\"cores\": 2", "\"cores\": null"), "p", 3).prediction);
  for (const char* rate : {"0", "-1", "null", "\"10\"", "[]"}) {
    const std::string text =
        Replaced("\"batches_per_second\": 10", fmt::format("\"batches_per_second\": {}", rate));
    const PlanFile plan = ParsePlan(text, "p", 2);
    EXPECT_FALSE(plan.prediction) << rate;
    EXPECT_EQ(plan.settings.size(), 4u) << rate;
  }
}

TEST(PlanFile, ARunThatCanBeNoneIsNotKnown) {
  for (const char* run : {"-7", "18446744073709551615", "7.5", "null", "\"7\""}) {
    const PlanFile plan =
        ParsePlan(Replaced("\"run\": 7", fmt::format("\"run\": {}", run)), "p", 2);
    ASSERT_TRUE(plan.prediction) << run;
    EXPECT_FALSE(plan.prediction->from_run_id) << run;
  }
}

TEST(PlanFile, WhatIsNoneIsRefusedWithItsPlace) {
  const std::string deep = Replaced("\"cores\": 2", "\"cores\": " + std::string(5'000'000, '['));
  const std::string deep_at = fmt::format("plan.json: byte {}: ", deep.find('[') + 32);
  const struct {
    std::string text;
    const char *where, *what;
  } cases[] = {
      {"", "plan.json: byte 1: ", "is not a plan"},
      {"no", "plan.json: byte 2: ", "is not a plan"},
      {R"({"schema": "headrace.plan/1", })", "plan.json: byte 31: ", "is not a plan"},
      {"[]", "plan.json: ", "it is not an object"},
      {"{}", "plan.json: ", "the schema is another, or none"},
      {R"({"schema": [[1]]})", "plan.json: ", "the schema is another, or none"},
      {R"({"schema": "headrace.plan/1"})", "plan.json: ", "no settings"},
      {R"({"schema": "headrace.plan/1", "settings": []})", "plan.json: ", "no settings"},
      {Replaced("\"x\"", "[]"), "plan.json: ", "setting 'b.kind' has no value"},
      {Replaced("\"x\"", "\"\xff\""), "plan.json: byte ", "is not a plan"},
      {Replaced("\"x\"", "1e999"), "plan.json: byte ", "is not a plan"},
      // The object is one of them.
      {deep, deep_at.c_str(), "more than 32 levels deep"},
  };
  for (const auto& [text, where, what] : cases) {
    const std::string shown = text.substr(0, 200);
    try {
      ParsePlan(text, "plan.json", 2);
      ADD_FAILURE() << "was read: " << shown;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData) << shown;
      EXPECT_THAT(error.what(), StartsWith(where)) << shown;
      EXPECT_THAT(error.what(), HasSubstr(what)) << shown;
    }
  }
}

}  // namespace
}  // namespace headrace::experiments
