// Which files named like segments are believed: those that the process they name stands behind.
#include "collectors/segment_claims.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "collectors/account_tree.h"
#include "collectors/segment_search.h"
#include "probes/account/account.h"
#include "probes/process_identity.h"
#include "tests/collectors/account_folder.h"
#include "tests/collectors/planted_segment.h"

namespace headrace::collectors {
namespace {

class SegmentClaims : public AccountFolder {
 protected:
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
  void Plant(int64_t pid, const Planted& planted = {}) { PlantSegment(Path(pid), pid, planted); }
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
  Plant(child, {.mode = 0622});
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
  Plant(1, {.user = kNobody});
  EXPECT_EQ(Verdict(), "written by user 65534, process 1 is user 0's");
  std::filesystem::remove(Path(1));
  const pid_t theirs = Start(true, kNobody);
  ASSERT_GT(theirs, 0);
  EXPECT_EQ(Verdict(), "believed") << "another user's own";
}

// A collector that was told of a process believes no more than one that looks for processes.
TEST_F(SegmentClaims, ARecordingAttachesToTheProcessesOwnWordOnly) {
  const pid_t child = Start(false);
  ASSERT_GT(child, 0);
  Plant(child);
  AccountTree accounts(0, false);
  const auto refusal = [&]() -> std::string {
    try {
      return accounts.TryAttach(child, true, 0) ? "attached" : "none yet";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(refusal(), testing::HasSubstr(fmt::format("{} does not have it open", child)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  children_.clear();
  EXPECT_FALSE(accounts.Overlooked(child, {})) << "what it disowned as it lived";
  Plant(child, {.state = HR_STATE_CLOSED});
  EXPECT_FALSE(accounts.Overlooked(child, {})) << "it had ended in order";
  std::filesystem::remove(Path(child));
  Plant(child);
  const auto overlooked = accounts.Overlooked(child, {});
  ASSERT_TRUE(overlooked) << "another file, of its user";
  if (geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  ASSERT_EQ(chown(Path(child).c_str(), kNobody, kNobody), 0);
  EXPECT_FALSE(accounts.Overlooked(child, {})) << "of another user";
}

TEST_F(SegmentClaims, ALookTakesSoManyFilesAndHalfOfThemOfOneUser) {
  const auto make = [&](int64_t first, size_t count, uint32_t user) {
    for (size_t i = 0; i < count; i++) {
      const std::string path = Path(first + static_cast<int64_t>(i));
      const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      ASSERT_TRUE(write(fd, "x", 1) == 1 && fchown(fd, user, user) == 0);
      close(fd);
    }
  };
  size_t left_out = 1;
  ReadSegmentClaims(&left_out);
  EXPECT_EQ(left_out, 0u);
  if (geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  make(10'000'000, kMostClaims / 2 + 10, kNobody);
  ReadSegmentClaims(&left_out);
  EXPECT_EQ(left_out, 10u) << "of one user";
  make(20'000'000, kMostClaims / 2 + 5, 0);
  ReadSegmentClaims(&left_out);
  EXPECT_EQ(left_out, 15u) << "of all";
}

// Whose a file is, its own descriptor tells: the name may be gone, or another's.
TEST_F(SegmentClaims, TheOwnerIsThatOfTheFileThatIsRead) {
  if (geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  Plant(1, {.user = kNobody});
  const int fd = open(Path(1).c_str(), O_RDONLY | O_CLOEXEC);
  std::filesystem::remove(Path(1));
  EXPECT_EQ(WhyNotItsWord(fd, 1), "written by user 65534, process 1 is user 0's");
  close(fd);
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
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  EXPECT_GT(probes::ReadMappedAt(getpid(), fd), 0u);
  EXPECT_FALSE(probes::ReadMappedAt(4'194'303, fd));
  close(fd);
  const auto before = signal(SIGHUP, SIG_IGN);
  EXPECT_TRUE(probes::IgnoresSignal(getpid(), SIGHUP));
  signal(SIGHUP, before);
  EXPECT_FALSE(probes::IgnoresSignal(getpid(), SIGKILL));
  EXPECT_THAT(probes::ListProcesses(), testing::Contains(getpid()));
}

// Inodes are numbers of one file system.
TEST(ProcessIdentity, AFileOfTheSameInodeElsewhereIsNotMapped) {
  const pid_t child = fork();  // whose mounts are its own
  if (child == 0) {
    int fds[2];
    uint64_t inodes[2];
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0)
      _exit(2);
    for (int i = 0; i < 2; i++) {
      if (mount("none", "/mnt", "tmpfs", 0, nullptr) != 0) _exit(2);
      fds[i] = open("/mnt/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
      struct stat info = {};
      if (ftruncate(fds[i], 4096) != 0 || fstat(fds[i], &info) != 0) _exit(2);
      inodes[i] = info.st_ino;
    }
    if (inodes[0] != inodes[1]) _exit(2);
    if (mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fds[0], 0) == MAP_FAILED) _exit(2);
    const bool told = probes::ReadMappedAt(getpid(), fds[0]).value_or(0) != 0 &&
                      probes::ReadMappedAt(getpid(), fds[1]) == uint64_t{0};
    _exit(told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no file systems can be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace headrace::collectors
