// Workers that are one too many are not started again and again.
#include "reader/service/local_workers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/clock.h"

namespace headrace::reader::service {
namespace {

// What it says until it runs at most so many.
std::vector<std::string> SaidUntilMost(LocalWorkers* workers, uint32_t most) {
  std::vector<std::string> said;
  const int64_t deadline = MonotonicNs() + 60'000'000'000;
  while (workers->most() > most && MonotonicNs() < deadline) {
    for (std::string& line : workers->Turn(MonotonicNs())) said.push_back(std::move(line));
    usleep(5'000);
  }
  return said;
}

TEST(LocalWorkers, ThoseForWhomThereIsNoRoomAreWantedNoLonger) {
  LocalWorkers workers({"/bin/sh", "-c", "exit 7"});
  workers.ScaleTo(3);
  const std::vector<std::string> said = SaidUntilMost(&workers, 1);
  EXPECT_EQ(workers.most(), 1u);
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said.back().find("runs 1 worker from now on"), std::string::npos) << said.back();
  // One is, whatever becomes of it.
  workers.ScaleTo(3);
  int failures = 0;
  for (int turn = 0; turn < 20; ++turn) {
    for (const std::string& line : workers.Turn(MonotonicNs())) {
      EXPECT_NE(line.find("ended with exit code 7"), std::string::npos) << line;
      ++failures;
    }
    usleep(5'000);
  }
  EXPECT_LE(failures, 2);
  EXPECT_EQ(workers.most(), 1u);
}

TEST(LocalWorkers, OthersThatFailAreStartedAgain) {
  LocalWorkers workers({"/bin/sh", "-c", "exit 1"});
  workers.ScaleTo(1);
  int failures = 0;
  for (const int64_t deadline = MonotonicNs() + 60'000'000'000;
       failures < 2 && MonotonicNs() < deadline; usleep(5'000))
    failures += static_cast<int>(workers.Turn(MonotonicNs()).size());
  EXPECT_EQ(failures, 2);
  EXPECT_EQ(workers.most(), UINT32_MAX);
}

// What it says of one that ended this way.
std::string SaidOf(const std::string& ending) {
  LocalWorkers workers({"/bin/sh", "-c", ending});
  workers.ScaleTo(1);
  for (const int64_t deadline = MonotonicNs() + 60'000'000'000; MonotonicNs() < deadline;
       usleep(5'000)) {
    const std::vector<std::string> said = workers.Turn(MonotonicNs());
    if (!said.empty()) return said.front();
  }
  return "";
}

TEST(LocalWorkers, AnEndingThatWillRepeatIsSaidToDoSo) {
  for (const char* ending : {"exit 2", "exit 5", "exit 6"})
    EXPECT_NE(SaidOf(ending).find("will end like it until what it said is put right"),
              std::string::npos)
        << SaidOf(ending);
  for (const char* ending : {"exit 1", "kill -9 $$"})
    EXPECT_NE(SaidOf(ending).find("; another takes its place"), std::string::npos)
        << SaidOf(ending);
}

// One that was asked to end takes its time, is not replaced, and what it ends with is no failure.
TEST(LocalWorkers, ThoseThatWereStartedLastAreAskedToEnd) {
  LocalWorkers workers({"/bin/sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.01; done"});
  workers.ScaleTo(3);
  const auto turn_until = [&](auto holds) {
    std::vector<std::string> said;
    for (const int64_t deadline = MonotonicNs() + 60'000'000'000;
         !holds() && MonotonicNs() < deadline; usleep(5'000))
      for (std::string& line : workers.Turn(MonotonicNs())) said.push_back(std::move(line));
    EXPECT_TRUE(holds());
    return said;
  };
  turn_until([&] { return workers.running() == 3; });
  usleep(200'000);  // their traps
  workers.DrainTo(1, INT64_MAX);
  EXPECT_EQ(workers.working(), 1u);
  workers.ScaleTo(2);
  EXPECT_TRUE(turn_until([&] { return workers.running() == 2 && workers.working() == 2; }).empty());
  workers.DrainTo(5, INT64_MAX);
  EXPECT_EQ(workers.working(), 2u);
}

TEST(LocalWorkers, OneThatDoesNotEndInItsTimeIsKilled) {
  LocalWorkers workers({"/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"});
  workers.ScaleTo(1);
  workers.Turn(MonotonicNs());
  usleep(200'000);  // its trap
  workers.DrainTo(0, MonotonicNs() + 200'000'000);
  workers.ScaleTo(0);
  workers.Turn(MonotonicNs());
  EXPECT_EQ(workers.running(), 1u);
  for (const int64_t deadline = MonotonicNs() + 60'000'000'000;
       workers.running() > 0 && MonotonicNs() < deadline; usleep(5'000))
    EXPECT_TRUE(workers.Turn(MonotonicNs()).empty());
  EXPECT_EQ(workers.running(), 0u);
}

}  // namespace
}  // namespace headrace::reader::service
