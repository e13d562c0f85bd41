// Segments of killed processes go, those of living ones stay, wherever they live.
#include "collectors/left_behind.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "probes/account/account.h"

namespace headrace::collectors {
namespace {

class LeftBehind : public testing::Test {
 protected:
  void SetUp() override {
    // Where segments usually are: whether a file is open for writing is asked of its file system.
    char folder[] = "/dev/shm/headrace-left-behind-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    setenv("HEADRACE_ACCOUNT_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    unsetenv("HEADRACE_ACCOUNT_DIR");
  }
  // A process that has opened accounts; killed if not to live. 0 if it could not open them.
  pid_t Start(bool lives) {
    int fds[2];
    EXPECT_EQ(pipe(fds), 0);
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const bool opened = hr_account_open("left behind") == 0;
      [[maybe_unused]] const ssize_t n = write(fds[1], opened ? "x" : "-", 1);
      pause();
      _exit(0);
    }
    close(fds[1]);
    char x = '-';
    const bool opened = read(fds[0], &x, 1) == 1 && x == 'x';
    close(fds[0]);
    if (!lives || !opened) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    return opened ? child : 0;
  }
  void Kill(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  std::string Path(int64_t pid) const { return fmt::format("{}/headrace.{}", folder_, pid); }
  bool Exists(int64_t pid) const { return std::filesystem::exists(Path(pid)); }
  // A number that no process has.
  int64_t DeadPid() {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    return child;
  }

  std::string folder_;
};

TEST_F(LeftBehind, AKilledProcessesSegmentGoes) {
  const pid_t dead = Start(false);
  ASSERT_GT(dead, 0);
  ASSERT_TRUE(Exists(dead));
  EXPECT_EQ(RemoveLeftBehind(3'600'000'000'000), 0) << "too young";
  EXPECT_TRUE(Exists(dead));
  EXPECT_EQ(RemoveLeftBehind(0), 1);
  EXPECT_FALSE(Exists(dead));
}

// Killed between making the file and writing its header.
TEST_F(LeftBehind, WhatAProcessKilledWhileMakingItLeftGoes) {
  for (const off_t size : {off_t{0}, static_cast<off_t>(sizeof(hr_segment))}) {
    const int64_t dead = DeadPid();
    const int fd = open(Path(dead).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(ftruncate(fd, size), 0);
    EXPECT_EQ(RemoveLeftBehind(0), 0) << "somebody makes it";
    close(fd);
    EXPECT_EQ(RemoveLeftBehind(0), 1) << size;
    EXPECT_FALSE(Exists(dead));
  }
  const pid_t alive = Start(true);
  ASSERT_GT(alive, 0);
  EXPECT_EQ(truncate(Path(alive).c_str(), 0), 0);
  EXPECT_EQ(RemoveLeftBehind(0), 0) << "a living process's";
  Kill(alive);
}

// pid 1 of a container that is gone: here another process has the number.
TEST_F(LeftBehind, ADeadContainersSegmentGoesWhoeverHasItsNumberHere) {
  const pid_t dead = Start(false);
  ASSERT_GT(dead, 0);
  const int64_t number = getpid();
  std::filesystem::rename(Path(dead), Path(number) + ".17");
  const int fd = open((Path(number) + ".17").c_str(), O_RDWR | O_CLOEXEC);
  const uint32_t own = static_cast<uint32_t>(number), other_namespace = 17;
  ASSERT_EQ(pwrite(fd, &own, sizeof own, offsetof(hr_header, pid)), 4);
  EXPECT_EQ(RemoveLeftBehind(0), 0) << "the number lives";
  ASSERT_EQ(pwrite(fd, &other_namespace, 4, offsetof(hr_header, pid_namespace)), 4);
  close(fd);
  EXPECT_EQ(RemoveLeftBehind(0), 1);
}

TEST_F(LeftBehind, ALivingProcessesSegmentStays) {
  const pid_t alive = Start(true);
  ASSERT_GT(alive, 0);
  EXPECT_EQ(RemoveLeftBehind(0), 0);
  EXPECT_TRUE(Exists(alive));
  Kill(alive);
}

// A container shares the folder but not the numbers: here no process has this one.
TEST_F(LeftBehind, WhatSomebodyStillWritesStaysWhateverItsNumber) {
  const pid_t alive = Start(true);
  ASSERT_GT(alive, 0);
  const int64_t foreign = DeadPid();
  std::filesystem::rename(Path(alive), Path(foreign));
  const int fd = open(Path(foreign).c_str(), O_RDWR | O_CLOEXEC);
  const auto number = static_cast<uint32_t>(foreign);
  ASSERT_EQ(pwrite(fd, &number, sizeof number, offsetof(hr_header, pid)), 4);
  close(fd);
  EXPECT_EQ(RemoveLeftBehind(0), 0);
  EXPECT_TRUE(Exists(foreign));
  Kill(alive);
  EXPECT_EQ(RemoveLeftBehind(0), 1) << "nobody writes it any more";
}

TEST_F(LeftBehind, WhatIsRecordedOrNotOursStays) {
  const pid_t recorded = Start(false);
  ASSERT_GT(recorded, 0);
  const int mark = open(Path(recorded).c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(mark, LOCK_SH), 0);
  const int64_t dead = DeadPid();
  const auto put = [&](int64_t pid, const std::string& content) {
    const int fd = open(Path(pid).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    close(fd);
  };
  put(dead, std::string(8192, 'x'));
  EXPECT_EQ(RemoveLeftBehind(0), 0);
  hr_header header = {};
  header.magic = HR_ACCOUNT_MAGIC;
  header.pid = static_cast<uint32_t>(dead) + 1;
  put(dead, std::string(reinterpret_cast<const char*>(&header), sizeof header));
  EXPECT_EQ(RemoveLeftBehind(0), 0) << "another's number inside";
  std::filesystem::remove(Path(dead));
  std::filesystem::create_symlink(Path(recorded), Path(dead));
  std::filesystem::create_directory(Path(dead + 1));
  EXPECT_EQ(RemoveLeftBehind(0), 0);
  EXPECT_TRUE(Exists(recorded));
  close(mark);
  EXPECT_EQ(RemoveLeftBehind(0), 1) << "recorded no more";
}

TEST_F(LeftBehind, AFileThatHasTakenTheNameMeanwhileStays) {
  const pid_t child = Start(false);
  ASSERT_GT(child, 0);
  const int fd = open(Path(child).c_str(), O_RDONLY | O_CLOEXEC);
  const NamedFile file{Path(child), IdOf(fd)};
  std::filesystem::rename(Path(child), Path(child) + ".old");
  std::filesystem::copy_file(Path(child) + ".old", Path(child));
  EXPECT_FALSE(Remove(file));
  EXPECT_TRUE(Exists(child));
  std::filesystem::rename(Path(child) + ".old", Path(child));
  EXPECT_TRUE(Remove(file));
  EXPECT_FALSE(Exists(child));
  close(fd);
}

}  // namespace
}  // namespace headrace::collectors
