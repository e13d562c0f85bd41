#include "collectors/process_tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/clock.h"
#include "collectors/child.h"
#include "tests/collectors/times.h"
#include "tests/sanitized.h"

namespace headrace::collectors {
namespace {

bool Contains(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// A child that has a child of its own; its pid comes through the pipe.
pid_t StartFamily(int64_t* grandchild) {
  int fds[2];
  EXPECT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t own = fork();
    if (own == 0) {
      pause();
      _exit(0);
    }
    const int64_t number = own;
    [[maybe_unused]] const ssize_t n = write(fds[1], &number, sizeof number);
    pause();
    _exit(0);
  }
  EXPECT_EQ(read(fds[0], grandchild, sizeof *grandchild), static_cast<ssize_t>(sizeof *grandchild));
  close(fds[0]);
  close(fds[1]);
  return child;
}

TEST(ProcessTree, ChildrenTooShortLivedToBeSeenAreToldByTheKernel) {
  int64_t grandchild = 0;
  const pid_t child = StartFamily(&grandchild);
  const int64_t begin = MonotonicNs();
  ProcessTree tree(child, begin);
  EXPECT_EQ(tree.TakeChanged().size(), 2u);
  constexpr int64_t kGone = 4'194'300, kGoneToo = 4'194'301;  // no process has these numbers
  tree.Saw({kGone, child, {}, begin + 10 * kMs});
  tree.Saw({kGoneToo, kGone, {}, begin + 11 * kMs});
  tree.Saw({kGone, 0, 3 << 8, begin + 12 * kMs});
  tree.Saw({4'194'299, 4'194'298, {}, begin + 13 * kMs});  // no child of ours
  tree.Saw({grandchild, child, {}, begin});                // known
  auto rows = tree.TakeChanged();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].pid, kGone);
  EXPECT_EQ(rows[0].parent_pid, child);
  EXPECT_EQ(rows[0].started_ns, 10 * kMs);
  EXPECT_EQ(rows[0].ended_ns, 12 * kMs);
  EXPECT_EQ(rows[0].exit_text, "exited 3");
  EXPECT_FALSE(rows[0].name.empty());
  EXPECT_EQ(rows[1].parent_pid, kGone);
  tree.Update(MonotonicNs());
  EXPECT_EQ(tree.live(), (std::vector<int64_t>{child, grandchild}));
  tree.Saw({kGone, child, {}, begin + 20 * kMs});  // the number given to another
  EXPECT_EQ(tree.TakeChanged().size(), 1u);
  kill(static_cast<pid_t>(grandchild), SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// A probe may see a process that is gone before anybody tells of its begin.
TEST(ProcessTree, WhereTheKernelTellsOfForksNobodyLooksForThem) {
  ProcessTree tree(getpid(), MonotonicNs());
  int64_t grandchild = 0;
  const pid_t child = StartFamily(&grandchild);
  tree.Update(MonotonicNs(), true);
  EXPECT_FALSE(Contains(tree.live(), child));
  tree.Update(MonotonicNs());
  EXPECT_TRUE(Contains(tree.live(), grandchild)) << "a full look finds what nobody told of";
  kill(static_cast<pid_t>(grandchild), SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  tree.Update(MonotonicNs(), true);
  EXPECT_FALSE(Contains(tree.live(), child)) << "ends are seen all the same";
}

TEST(ProcessTree, NoProcessEndsBeforeItStarted) {
  const int64_t begin = MonotonicNs();
  ProcessTree tree(getpid(), begin);
  constexpr int64_t kGone = 4'194'300, kTold = 4'194'301;
  SleepUntilNs(begin + 30 * kMs);
  tree.ProcessId(kGone);
  tree.ProcessId(kTold);
  tree.Saw({kGone, 0, 0, begin + 12 * kMs});
  tree.Saw({kTold, getpid(), {}, begin + 5 * kMs});
  tree.Saw({kTold, 0, 0, begin + 6 * kMs});
  EXPECT_EQ(tree.Find(kGone)->row.ended_ns, 12 * kMs);
  EXPECT_LE(tree.Find(kGone)->row.started_ns, 12 * kMs);
  EXPECT_EQ(tree.Find(kTold)->row.started_ns, 5 * kMs);
  EXPECT_EQ(tree.Find(kTold)->row.ended_ns, 6 * kMs);
  EXPECT_EQ(tree.Find(kTold)->row.parent_pid, getpid());
}

void Spin(int64_t ns) {
  const int64_t end = ThreadCpuNs() + ns;
  while (ThreadCpuNs() < end) {
  }
}

// A tree whose processes live for less than the time between two looks, against the kernel's own
// account of those that were waited for.
TEST(ProcessTree, CpuTimeHoldsThatOfChildrenNobodySaw) {
  int told[2], go[2];
  ASSERT_EQ(pipe(told), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t root = fork();
  if (root == 0) {
    char x;
    if (fork() == 0) {  // before the tree is looked at: that time is not counted
      Spin(200 * kMs);
      [[maybe_unused]] const ssize_t ready = write(told[1], "x", 1);
      [[maybe_unused]] const ssize_t n = read(go[0], &x, 1);
      Spin(50 * kMs);
      _exit(0);
    }
    wait(nullptr);
    for (int i = 0; i < 20; i++) {
      if (fork() == 0) {
        if (fork() == 0) {
          Spin(15 * kMs);
          _exit(0);
        }
        wait(nullptr);
        Spin(15 * kMs);
        _exit(0);
      }
      wait(nullptr);
    }
    [[maybe_unused]] const ssize_t n = write(told[1], "x", 1);
    pause();
  }
  char x;
  ASSERT_EQ(read(told[0], &x, 1), 1);
  SleepUntilNs(MonotonicNs() + 30 * kMs);  // beginnings are known to 10 ms
  ProcessTree tree(root, MonotonicNs());
  ASSERT_EQ(write(go[1], "x", 1), 1);
  ASSERT_EQ(read(told[0], &x, 1), 1);
  tree.Update(MonotonicNs());
  tree.ReadUsage();
  constexpr double kTruth = 50 * kMs + 20 * 30 * kMs;
  constexpr double kNear = 0.1 * kTruth + 20 * kMs;
  // Forking a process with a sanitizer's memory takes CPU time of its own.
  constexpr double kForks = kAddressSanitizer || kThreadSanitizer ? 0.5 * kTruth : 0;
  EXPECT_GE(static_cast<double>(tree.cpu_ns()), kTruth - kNear);
  EXPECT_LE(static_cast<double>(tree.cpu_ns()), kTruth + kNear + kForks);
  kill(root, SIGKILL);
  waitpid(root, nullptr, 0);
  for (const int fd : {told[0], told[1], go[0], go[1]}) close(fd);
}

// A child that its parent waited for between two looks at the tree is in the parent's sum already.
TEST(ProcessTree, AChildThatWasJustWaitedForCountsOnce) {
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t own = fork();
    char x = 0;
    [[maybe_unused]] ssize_t n = 0;
    if (own == 0) {
      while (clock() < CLOCKS_PER_SEC / 2) {
      }
      n = write(ready[1], "x", 1);
      n = read(go[0], &x, 1);
      _exit(0);
    }
    waitpid(own, nullptr, 0);
    n = write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char x;
  ASSERT_EQ(read(ready[0], &x, 1), 1);
  ProcessTree tree(parent, MonotonicNs() - 10 * kSecond);
  tree.ReadUsage();
  const int64_t before = tree.cpu_ns();
  ASSERT_EQ(write(go[1], "x", 1), 1);
  ASSERT_EQ(read(ready[0], &x, 1), 1);  // it has been waited for
  tree.ReadUsage();
  EXPECT_GE(tree.cpu_ns(), before);
  EXPECT_LT(tree.cpu_ns(), before + 200 * kMs);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
}

TEST(ProcessTree, FollowsChildrenAndNotesTheirEnd) {
  int64_t grandchild = 0;
  const pid_t child = StartFamily(&grandchild);
  const int64_t begin = MonotonicNs();
  ProcessTree tree(child, begin);
  EXPECT_EQ(tree.live().front(), child);
  EXPECT_TRUE(Contains(tree.live(), grandchild));
  EXPECT_EQ(tree.TakeChanged().size(), 2u);
  EXPECT_TRUE(tree.TakeChanged().empty());
  EXPECT_NE(tree.ProcessId(child), tree.ProcessId(grandchild));
  EXPECT_LE(tree.Find(child)->row.started_ns, 20 * kMs);
  EXPECT_EQ(tree.Find(child)->row.session_id, getsid(0));

  kill(static_cast<pid_t>(grandchild), SIGKILL);
  SleepUntilNs(MonotonicNs() + 20 * kMs);
  tree.Update(MonotonicNs());
  EXPECT_FALSE(Contains(tree.live(), grandchild));
  std::vector<ProcessRow> rows = tree.TakeChanged();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0].ended_ns.has_value());
  EXPECT_EQ(rows[0].exit_text, "killed by signal 9") << "a zombie tells, nobody has waited for it";

  kill(child, SIGKILL);
  SleepUntilNs(MonotonicNs() + 20 * kMs);
  tree.Update(MonotonicNs());
  EXPECT_TRUE(tree.live().empty());
  EXPECT_FALSE(tree.root_alive());
  waitpid(child, nullptr, 0);
}

TEST(ProcessTree, AnOrphanStaysInTheTree) {
  int64_t grandchild = 0;
  const pid_t child = StartFamily(&grandchild);
  const pid_t other = fork();
  if (other == 0) {
    pause();
    _exit(0);
  }
  ProcessTree tree(child, MonotonicNs());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  tree.Update(MonotonicNs());
  EXPECT_TRUE(Contains(tree.live(), grandchild));
  EXPECT_FALSE(Contains(tree.live(), other)) << "a stranger";
  kill(static_cast<pid_t>(grandchild), SIGKILL);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST(ProcessTree, TheObserverIsNotPartOfWhatItObserves) {
  const ProcessTree tree(getppid(), MonotonicNs());
  EXPECT_FALSE(Contains(tree.live(), getpid()));
}

TEST(ProcessTree, NoticesAnotherImage) {
  Child child = Child::Start({"sleep", "5"});
  ProcessTree tree(child.pid(), MonotonicNs());
  const int64_t before = tree.Find(child.pid())->images;
  child.Release();
  tree.Update(MonotonicNs());
  EXPECT_EQ(tree.Find(child.pid())->images, before + 1);
  EXPECT_EQ(tree.Find(child.pid())->row.name, "sleep");
  EXPECT_EQ(tree.Find(child.pid())->row.command, "sleep 5");
  child.Signal(SIGKILL);
  EXPECT_EQ(ShellStatus(child.Wait()), 137);
}

TEST(ProcessTree, AProcessThatWasNeverSeenGetsANumberAndNoFigures) {
  ProcessTree tree(getpid(), MonotonicNs());
  const int64_t id = tree.ProcessId(4'194'303);
  EXPECT_EQ(tree.ProcessId(4'194'303), id);
  EXPECT_FALSE(tree.Find(4'194'303)->alive);
  EXPECT_FALSE(tree.Find(4'194'303)->read_bytes.has_value());
}

// /proc is the kernel's, but a fixture may hold anything.
TEST(ProcessTree, DamagedProcFilesAreNoCrash) {
  char folder[] = "/tmp/headrace-tree-XXXXXX";
  const std::string root = mkdtemp(folder);
  std::mt19937_64 random(3);
  const std::string valid =
      "7 (x) S 1 7 7 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 1 0 100 1000 50 18446744073709551615\n";
  for (int i = 0; i < 60; i++) {
    std::filesystem::create_directories(root + "/7/task/7");
    std::string stat = valid, children = "8 9 99999999999999999999 -4 x";
    for (uint64_t n = random() % 6; n > 0; n--) {
      stat[random() % stat.size()] = static_cast<char>(random());
      children[random() % children.size()] = static_cast<char>(random());
    }
    if (i % 5 == 0) stat.resize(random() % stat.size());
    std::ofstream(root + "/7/stat") << stat;
    std::ofstream(root + "/7/task/7/children") << children;
    std::ofstream(root + "/7/io") << "rchar: " << random() << "\nread_bytes: -5\n";
    ProcessTree tree(7, 0, root);
    tree.Update(kMs);
    tree.ReadUsage();
    tree.TakeChanged();
  }
  std::filesystem::remove_all(root);
  ProcessTree tree(7, 0, root);  // an empty /proc
  EXPECT_FALSE(tree.root_alive());
  EXPECT_TRUE(tree.live().empty());
}

TEST(Child, WaitsForReleaseAndGivesItsOwnStatus) {
  Child child = Child::Start({"sh", "-c", "exit 5"});
  SleepUntilNs(MonotonicNs() + 30 * kMs);
  EXPECT_EQ(kill(child.pid(), 0), 0);
  child.Release();
  EXPECT_EQ(ShellStatus(child.Wait()), 5);
}

TEST(Child, UnreleasedItNeverRuns) {
  char folder[] = "/tmp/headrace-child-XXXXXX";
  const std::string file = std::string(mkdtemp(folder)) + "/ran";
  { Child child = Child::Start({"touch", file}); }
  EXPECT_FALSE(std::filesystem::exists(file));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headrace::collectors
