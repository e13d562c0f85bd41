#include "dashboards/report/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace headrace::dashboards {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Losses, EachSaysWhatItAffects) {
  EXPECT_THAT(AffectedBy("offcpu: wakeups"), HasSubstr("who feeds whom"));
  EXPECT_THAT(AffectedBy("offcpu: off cpu periods"), HasSubstr("where each operator's time goes"));
  EXPECT_THAT(AffectedBy("offcpu: runs of on_switch"), HasSubstr("c too high"));
  EXPECT_THAT(AffectedBy("fault: threads"), HasSubstr("page faults by operator"));
  EXPECT_THAT(AffectedBy("step details"), HasSubstr("percentiles of step times"));
  EXPECT_THAT(AffectedBy("something new"), HasSubstr("figures made of them"));
}

// A program that counts a new kind of loss says here what it makes wrong.
TEST(Losses, EveryCountOfTheKernelProgramsHasItsEffect) {
  const std::filesystem::path folder = std::string(HEADRACE_SOURCE_DIR) + "/probes/bpf";
  const std::string before = "__u64 lost_", after = "_count";
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename();
    if (!file.ends_with(".bpf.c")) continue;
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    const std::string code = text.str(), object = file.substr(0, file.size() - 6);
    for (size_t at = code.find(before); at != std::string::npos; at = code.find(before, at)) {
      at += before.size();
      std::string what = code.substr(at, code.find(after, at) - at);
      std::replace(what.begin(), what.end(), '_', ' ');
      EXPECT_NE(AffectedBy(object + ": " + what), AffectedBy("something new")) << object << what;
      ++found;
    }
    EXPECT_NE(AffectedBy(object + ": threads"), AffectedBy("something new")) << object;
    EXPECT_NE(AffectedBy(object + ": runs of f"), AffectedBy("something new")) << object;
  }
  EXPECT_GT(found, 15);
}

TEST(Losses, OneLineForWhatIsAffectedTheLargestFirst) {
  EXPECT_THAT(LossLines({{"fault: faults", 0, std::nullopt}}), IsEmpty());
  EXPECT_THAT(
      LossLines({{"fault: faults", 7, std::nullopt},
                 {"step details", 100, 1000},
                 {"fault: threads", 2, std::nullopt}}),
      ElementsAre("percentiles of step times: from the steps kept (lost: 100 step details of 1000 "
                  "(10.0 %))",
                  "page faults by operator: too low (lost: 7 faults, 2 threads)"));
}

// A total that the losses exceed is one of something else.
TEST(Losses, OnlyATotalOfTheSameKindIsShown) {
  EXPECT_THAT(LossLines({{"step details", 66273, 6}}),
              ElementsAre("percentiles of step times: from the steps kept (lost: 66273 step "
                          "details)"));
  EXPECT_TRUE(IsTotal({"step details", 6, 6}));
  EXPECT_FALSE(IsTotal({"step details", 6, std::nullopt}));
  EXPECT_FALSE(IsTotal({"step details", 0, 0}));
}

}  // namespace
}  // namespace headrace::dashboards
