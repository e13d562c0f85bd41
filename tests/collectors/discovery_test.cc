// Always-on recording: what is said of files that are nobody's, and who gets how many places.
#include "collectors/discovery.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "collectors/recorded_mark.h"
#include "probes/account/account_segment.h"
#include "tests/collectors/account_folder.h"
#include "tests/collectors/planted_segment.h"

namespace headrace::collectors {
namespace {

using testing::HasSubstr;

class Discovering : public AccountFolder {
 protected:
  void SetUp() override {
    AccountFolder::SetUp();
    options_.executable = HEADRACE_BINARY_DIR "/headrace";
    options_.database = folder_ + "/t.db";
    options_.arguments = {"--level", "1"};
    options_.poll_ns = options_.retain_ns = 20'000'000;
    options_.log = [this](const std::string& line) { log_.push_back(line); };
  }
  size_t Said(const std::string& what) const {
    return static_cast<size_t>(std::count_if(log_.begin(), log_.end(), [&](const auto& line) {
      return line.find(what) != std::string::npos;
    }));
  }
  void StartForNobody() {
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const bool ready =
          setgid(kNobody) == 0 && setuid(kNobody) == 0 && hr_account_open("discovered") == 0;
      [[maybe_unused]] const ssize_t n = write(fds[1], ready ? "x" : "-", 1);
      pause();
      _exit(0);
    }
    children_.push_back(child);
    char x = '-';
    ASSERT_EQ(read(fds[0], &x, 1), 1);
    ASSERT_EQ(x, 'x');
    close(fds[0]);
    close(fds[1]);
  }

  DiscoveryOptions options_;
  std::vector<std::string> log_;
};

TEST_F(Discovering, ForeignFilesAreSaidAgainWhenThereAreMoreAgain) {
  const auto plant = [&](int count) {
    for (int i = 0; i < 3; i++) {
      const std::string path = fmt::format("{}/headrace.{}", folder_, 10'000'000 + i);
      i < count ? void(std::ofstream(path) << std::string(8192, 'x'))
                : void(std::filesystem::remove(path));
    }
  };
  plant(3);
  // From what has been said to what is there next.
  int phase = 0;
  int64_t until_ns = 0;
  const int64_t end_ns = MonotonicNs() + 60'000'000'000;
  options_.stop = [&] {
    if (phase == 0 && Said("3 files named") == 1) {
      plant(0);
      until_ns = MonotonicNs() + 1'000'000'000;  // some looks
      phase = 1;
    }
    if (phase == 1 && MonotonicNs() > until_ns) {
      plant(2);
      phase = 2;
    }
    return Said("2 files named") > 0 || MonotonicNs() > end_ns;
  };
  Discover(options_);
  EXPECT_EQ(Said("3 files named"), 1u);
  EXPECT_EQ(Said("2 files named"), 1u);
}

TEST_F(Discovering, OneUserHasHalfOfThePlacesAndTheOthersAreSaid) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to start processes of another user";
  if (!std::filesystem::exists(options_.executable)) GTEST_SKIP() << "the executable is not built";
  for (int i = 0; i < 2; i++) ASSERT_NO_FATAL_FAILURE(StartForNobody());
  options_.most_pipelines = 2;
  const int64_t end_ns = MonotonicNs() + 120'000'000'000;
  int64_t until_ns = end_ns;
  options_.stop = [&] {
    if (Said("waits") > 0 && until_ns == end_ns) until_ns = MonotonicNs() + 1'000'000'000;
    return MonotonicNs() > until_ns;
  };
  Discover(options_);
  EXPECT_EQ(Said("recording process"), 1u);
  EXPECT_EQ(Said("1 pipelines are recorded, 1 of them of its user 65534"), 1u);
}

// A pipeline that has itself recorded opens its accounts, and they are marked a little later.
TEST_F(Discovering, WhatIsMarkedSoonAfterItAppearedIsLeftAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to start processes of another user";
  if (!std::filesystem::exists(options_.executable)) GTEST_SKIP() << "the executable is not built";
  ASSERT_NO_FATAL_FAILURE(StartForNobody());
  const std::string accounts = account::AccountSegment::PathOf(children_[0]);
  ASSERT_TRUE(std::filesystem::exists(accounts));
  options_.poll_ns = 2'000'000'000;
  const int64_t end_ns = MonotonicNs() + 3'000'000'000;
  int asked = 0;
  RecordedMark mark;
  options_.stop = [&] {
    // Asked before the first look, and after it.
    if (++asked == 2) mark = RecordedMark(accounts);
    return MonotonicNs() > end_ns;
  };
  Discover(options_);
  EXPECT_GT(asked, 2);
  EXPECT_EQ(Said("recording process"), 0u);
  EXPECT_EQ(Said("cannot be recorded"), 0u);
}

}  // namespace
}  // namespace headrace::collectors
