#include "analysis/run/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::analysis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Settings, InForceAreThoseOfTheStore) {
  RunRow run;
  run.settings = {{"source.epochs", "3"},
                  {"source.throttle.seek", "8ms"},
                  {"transform[0].op", "ngram"},
                  {"transform[1].op", "sampling"},
                  {"transform[3].op", "clamp"}};
  EXPECT_EQ(SettingOf(run, "source.throttle.seek"), "8ms");
  EXPECT_EQ(SettingOf(run, "source.direct"), std::nullopt);
  EXPECT_THAT(TransformsOf(run), ElementsAre("ngram", "sampling"));
  EXPECT_EQ(EpochsOf(run), 3);
}

TEST(Settings, WhatIsNotRecordedIsNotKnown) {
  const RunRow run;
  EXPECT_EQ(SettingOf(run, "source.epochs"), std::nullopt);
  EXPECT_EQ(EpochsOf(run), std::nullopt);
  EXPECT_THAT(TransformsOf(run), IsEmpty());
  EXPECT_THAT(RecordedSettings(run), IsEmpty());
  for (const char* odd : {"", "x", "-1", "99999999999"}) {
    RunRow wrong;
    wrong.settings["source.epochs"] = odd;
    EXPECT_EQ(EpochsOf(wrong), std::nullopt) << odd;
  }
}

TEST(Settings, SetOnTopAreQuotedForAShell) {
  RunRow run;
  run.pipeline_path = "my pipeline.toml";
  run.settings_text = "a.b=1\nname=it's";
  EXPECT_THAT(RecordedSettings(run), ElementsAre("a.b=1", "name=it's"));
  EXPECT_EQ(RecordedOptions(run), " --set a.b=1 --set 'name=it'\\''s'");
  EXPECT_EQ(PipelineArguments(run), "'my pipeline.toml' --set a.b=1 --set 'name=it'\\''s'");
}

}  // namespace
}  // namespace headrace::analysis
