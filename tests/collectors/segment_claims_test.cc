// Which files named like segments are believed: those that the process they name stands behind.
#include "collectors/segment_claims.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "collectors/segment_search.h"
#include "probes/account/account.h"
#include "probes/process_identity.h"

namespace headrace::collectors {
namespace {

constexpr uint32_t kNobody = 65534;

class SegmentClaims : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/dev/shm/headrace-claims-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    ASSERT_EQ(chmod(folder, 0777), 0);
    setenv("HEADRACE_ACCOUNT_DIR", folder, 1);
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
    unsetenv("HEADRACE_ACCOUNT_DIR");
  }
  // A process of a user (0: ours), with accounts or without; 0 if it could not be had.
  pid_t Start(bool with_accounts, uint32_t user = 0) {
    int fds[2];
    EXPECT_EQ(pipe(fds), 0);
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const bool is_user = user == 0 || (setgid(user) == 0 && setuid(user) == 0);
      const bool ready = is_user && (!with_accounts || hr_account_open("claims") == 0);
      [[maybe_unused]] const ssize_t n = write(fds[1], ready ? "x" : "-", 1);
      pause();
      _exit(0);
    }
    children_.push_back(child);
    close(fds[1]);
    char x = '-';
    const bool ready = read(fds[0], &x, 1) == 1 && x == 'x';
    close(fds[0]);
    return ready ? child : 0;
  }
  std::string Path(int64_t pid) const { return fmt::format("{}/headrace.{}", folder_, pid); }
  // A whole segment that says it is of `pid`.
  void Plant(int64_t pid, uint32_t user = 0, mode_t mode = 0600) {
    hr_header header = {};
    header.magic = HR_ACCOUNT_MAGIC;
    header.abi_version = HR_ACCOUNT_ABI;
    header.segment_size = sizeof(hr_segment);
    header.state = HR_STATE_OPEN;
    header.pid = static_cast<uint32_t>(pid);
    header.pid_namespace = hr_pid_namespace_();
    header.level = 1;
    header.base_monotonic_ns = static_cast<uint64_t>(MonotonicNs());
    const int fd = open(Path(pid).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    ASSERT_EQ(write(fd, &header, sizeof header), static_cast<ssize_t>(sizeof header));
    ASSERT_EQ(ftruncate(fd, sizeof(hr_segment)), 0);
    ASSERT_EQ(fchmod(fd, mode), 0);
    ASSERT_TRUE(user == 0 || fchown(fd, user, user) == 0);
    close(fd);
  }
  // Why the only file is refused, or "believed"; "" when it is left out.
  std::string Verdict() {
    const auto claims = ReadSegmentClaims();
    for (const SegmentClaim& claim : claims) {
      if (claim.path.rfind(folder_, 0) != 0) continue;
      EXPECT_EQ(claim.pid == 0, !claim.refusal.empty());
      return claim.pid == 0 ? claim.refusal : "believed";
    }
    return "";
  }
  std::string folder_;
  std::vector<pid_t> children_;
};

TEST_F(SegmentClaims, AProcessesOwnSegmentIsBelieved) {
  const pid_t child = Start(true);
  ASSERT_GT(child, 0);
  const auto claims = ReadSegmentClaims();
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].refusal, "");
  EXPECT_EQ(claims[0].pid, child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  children_.clear();
  EXPECT_TRUE(ReadSegmentClaims().empty()) << "of a dead process";
}

TEST_F(SegmentClaims, WhatIsNoSegmentOfTheProcessItNamesIsRefused) {
  const pid_t child = Start(false);
  ASSERT_GT(child, 0);
  Plant(child);
  EXPECT_EQ(Verdict(), fmt::format("process {} does not have it open", child));
  Plant(child, 0, 0622);
  EXPECT_EQ(Verdict(), "others than its owner may write it");
  Plant(child);
  std::filesystem::rename(Path(child), Path(child + 1));
  EXPECT_EQ(Verdict(), fmt::format("its name says process {}, its content {}", child + 1, child));
  std::filesystem::remove(Path(child + 1));
  std::filesystem::create_symlink("/etc/passwd", Path(child));
  EXPECT_EQ(Verdict(), "a symbolic link");
  std::filesystem::remove(Path(child));
  std::filesystem::create_directory(Path(child));
  EXPECT_EQ(Verdict(), "not a regular file");
  std::filesystem::remove(Path(child));
  ASSERT_EQ(mkfifo(Path(child).c_str(), 0600), 0);
  EXPECT_EQ(Verdict(), "not a regular file") << "and nobody waits for its writer";
  std::filesystem::remove(Path(child));
  Plant(child);
  ASSERT_EQ(truncate(Path(child).c_str(), 8192), 0);
  EXPECT_EQ(Verdict(), "of another version (1), or cut");
  ASSERT_EQ(truncate(Path(child).c_str(), 0), 0);
  EXPECT_EQ(Verdict(), "") << "it may be being made";
}

TEST_F(SegmentClaims, AnotherUsersWordForAProcessIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  Plant(1, kNobody);
  EXPECT_EQ(Verdict(), "written by user 65534, process 1 is user 0's");
  std::filesystem::remove(Path(1));
  const pid_t theirs = Start(true, kNobody);
  ASSERT_GT(theirs, 0);
  EXPECT_EQ(Verdict(), "believed") << "another user's own";
}

// What RecordsARun and profile use: names are where to look, contents decide.
TEST_F(SegmentClaims, ASearchFindsASegmentByItsContent) {
  const pid_t child = Start(true);
  ASSERT_GT(child, 0);
  EXPECT_EQ(SegmentSearch(child).Find(), Path(child));
  const std::string second = fmt::format("{}.{}", Path(child), hr_pid_namespace_());
  std::filesystem::rename(Path(child), second);
  EXPECT_EQ(SegmentSearch(child).Find(), second);
  // The usual name is another container's now.
  hr_header header = {};
  const int fd = open(second.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(pread(fd, &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  close(fd);
  header.pid_namespace++;
  const int usual = open(Path(child).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(write(usual, &header, sizeof header), static_cast<ssize_t>(sizeof header));
  close(usual);
  EXPECT_EQ(SegmentSearch(child).Find(), second);
  std::filesystem::remove(second);
  EXPECT_EQ(SegmentSearch(child).Find(), "");
}

TEST_F(SegmentClaims, WhatKeepsAProcessFromHavingAccountsIsSaid) {
  const pid_t child = Start(false);
  ASSERT_GT(child, 0);
  EXPECT_EQ(SegmentSearch(child).FindObstacle().reason, "");
  setenv("HEADRACE_ACCOUNT_DIR", "/nonexistent", 1);
  EXPECT_EQ(SegmentSearch(child).FindObstacle().reason, "it has no /nonexistent");
  setenv("HEADRACE_ACCOUNT_DIR", folder_.c_str(), 1);
  std::filesystem::create_directory(Path(child));
  EXPECT_EQ(SegmentSearch(child).FindObstacle().reason, "") << "the second name is free";
  std::filesystem::create_directory(fmt::format("{}.{}", Path(child), hr_pid_namespace_()));
  EXPECT_THAT(SegmentSearch(child).FindObstacle().reason, testing::HasSubstr("files of others"));
  if (geteuid() != 0) GTEST_SKIP() << "the rest needs root, to be another user";
  const pid_t theirs = Start(false, kNobody);
  ASSERT_GT(theirs, 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  EXPECT_EQ(SegmentSearch(theirs).FindObstacle().reason,
            fmt::format("its user 65534 may not write {}", folder_));
}

TEST(ProcessIdentity, SaysWhoAProcessIs) {
  const auto ids = probes::ReadProcessIds(getpid());
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->real_uid, getuid());
  EXPECT_EQ(ids->effective_uid, geteuid());
  EXPECT_EQ(ids->own_pid, getpid());
  EXPECT_EQ(probes::ReadNamespace(getpid(), "pid"), hr_pid_namespace_());
  EXPECT_EQ(probes::ReadOwnTids(getpid()).at(getpid()), getpid());
  EXPECT_FALSE(probes::ReadProcessIds(4'194'303));
  EXPECT_FALSE(probes::ReadNamespace(4'194'303, "pid"));
  EXPECT_EQ(probes::ReadMappedAt(getpid(), 0x7fffffffffff), 0u);
  EXPECT_FALSE(probes::ReadMappedAt(4'194'303, 1));
  const auto before = signal(SIGHUP, SIG_IGN);
  EXPECT_TRUE(probes::IgnoresSignal(getpid(), SIGHUP));
  signal(SIGHUP, before);
  EXPECT_FALSE(probes::IgnoresSignal(getpid(), SIGKILL));
  EXPECT_THAT(probes::ListProcesses(), testing::Contains(getpid()));
}

}  // namespace
}  // namespace headrace::collectors
