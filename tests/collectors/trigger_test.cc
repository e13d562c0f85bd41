#include "collectors/trigger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "tests/collectors/times.h"

namespace headrace::collectors {
namespace {

using testing::HasSubstr;
constexpr int64_t kTriggerTick = 100 * kMs;

Moment Steps(int64_t wait_ms, int64_t compute_ms) {
  Moment m;
  m.has_steps = true;
  m.steps = 1;
  m.longest_wait_ns = m.wait_ns = wait_ms * kMs;
  m.compute_ns = compute_ms * kMs;
  m.longest_step_ns = m.wait_ns + m.compute_ns;
  return m;
}

TEST(Trigger, StallAndStep) {
  const Trigger stall = Trigger::Parse(" stall>200ms ");
  EXPECT_FALSE(stall.Pulled(Steps(200, 500), kTriggerTick));
  EXPECT_EQ(stall.Pulled(Steps(312, 0), kTriggerTick), "stall 312 ms > 200 ms");
  EXPECT_FALSE(stall.Pulled(Moment(), kTriggerTick)) << "what is not known does not pull";
  EXPECT_TRUE(Trigger::Parse("stall >= 200ms").Pulled(Steps(200, 0), kTriggerTick));
  EXPECT_TRUE(Trigger::Parse("step > 0.5s").Pulled(Steps(300, 300), kTriggerTick));
  EXPECT_FALSE(Trigger::Parse("step < 0.5s").Pulled(Steps(300, 300), kTriggerTick));
}

TEST(Trigger, SharesRatesAndQueues) {
  EXPECT_TRUE(Trigger::Parse("stall_ratio > 50%").Pulled(Steps(60, 40), kTriggerTick));
  EXPECT_FALSE(Trigger::Parse("stall_ratio > 0.6").Pulled(Steps(60, 40), kTriggerTick));
  EXPECT_TRUE(Trigger::Parse("steps_per_s < 20").Pulled(Steps(1, 1), kTriggerTick));
  Moment m;
  m.queue_fill["ready"] = 0.05;
  const Trigger queue = Trigger::Parse("queue:ready < 10% or stall > 1s");
  EXPECT_THAT(*queue.Pulled(m, kTriggerTick), HasSubstr("queue:ready 5 % < 10 %"));
  EXPECT_TRUE(queue.Pulled(Steps(1001, 0), kTriggerTick)) << "either";
  EXPECT_FALSE(Trigger::Parse("queue:other < 10%").Pulled(m, kTriggerTick));
}

TEST(Trigger, MistakesSayWhatThereIs) {
  const std::pair<const char*, const char*> kMistakes[] = {
      {"", "empty"},
      {"   ", "empty"},
      {"stall", "compares nothing"},
      {"stall >", "lacks the value"},
      {"> 5", "nothing is called ''"},
      {"stal > 1s", "did you mean 'stall'"},
      {"rss > 1G", "nothing is called 'rss'"},
      {"stall > ten", "not a duration"},
      {"stall > -5s", "not a duration"},
      {"stall_ratio > 120%", "more than 100%"},
      {"stall_ratio > x", "not a share"},
      {"steps_per_s < ", "lacks the value"},
      {"steps_per_s < nan", "not a number"},
      {"queue: < 10%", "nothing is called 'queue:'"},
      {"stall > 1s or ", "not a duration"},
      {"stall > 1s or or", "compares nothing"},
      {"\x1b[31m > 1", "nothing is called"}};
  for (const auto& [text, expected] : kMistakes) {
    try {
      Trigger::Parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage) << text;
      EXPECT_THAT(error.what(), HasSubstr(expected)) << text;
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("\x1b"))) << text;
    }
  }
}

TEST(Trigger, GarbageIsRefusedNeverACrash) {
  std::mt19937_64 random(7);
  const std::string parts[] = {"stall", "step",  "queue:", ">",           "<",
                               "=",     " or ",  "10%",    "1s",          "\0",
                               "\xff",  "1e999", "%",      "stall_ratio", " "};
  for (int i = 0; i < 20000; i++) {
    std::string text;
    for (uint64_t n = random() % 8; n > 0; n--) text += parts[random() % std::size(parts)];
    try {
      Trigger::Parse(text).Pulled(Steps(1, 1), 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
    }
  }
}

}  // namespace
}  // namespace headrace::collectors
