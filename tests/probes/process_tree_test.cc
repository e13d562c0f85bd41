#include "probes/host/process_tree.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace headrace::probes {
namespace {

const std::string kFixture = std::string(HEADRACE_SOURCE_DIR) + "/tests/data/host/full";

TEST(ProcessTree, FixtureTreeByParents) {
  const Host host(kFixture);
  ProcessTree tree(host, 4242);
  const Availability availability = tree.Start();
  EXPECT_EQ(availability.state, Availability::State::kDegraded);
  EXPECT_NE(availability.reason.find("can be missed"), std::string::npos) << availability.reason;
  EXPECT_EQ(tree.pids(), (std::vector<int64_t>{4242, 4250}));
  EXPECT_EQ(tree.processes()[1].parent_pid, 4242);
  EXPECT_EQ(tree.processes()[0].command, "python train.py");
}

TEST(ProcessTree, NoSuchProcessIsUnavailable) {
  const Host host(kFixture);
  ProcessTree tree(host, 99);
  const Availability availability = tree.Start();
  EXPECT_EQ(availability.state, Availability::State::kUnavailable);
  EXPECT_FALSE(availability.reason.empty());
  EXPECT_FALSE(availability.fix.empty());
}

// A child that makes children when told to through a pipe.
class Family {
 public:
  template <typename Body>
  explicit Family(Body body) {
    EXPECT_EQ(pipe(begin_), 0);
    EXPECT_EQ(pipe(done_), 0);
    pid_ = fork();
    if (pid_ == 0) {
      char c;
      if (read(begin_[0], &c, 1) == 1) body();
      if (write(done_[1], "x", 1) != 1) _exit(1);
      if (read(begin_[0], &c, 1) < 0) _exit(1);
      _exit(0);
    }
  }
  ~Family() {
    for (const int fd : {begin_[0], begin_[1], done_[0], done_[1]}) close(fd);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  void Run() {
    char c;
    EXPECT_EQ(write(begin_[1], "x", 1), 1);
    EXPECT_EQ(read(done_[0], &c, 1), 1);
  }
  int64_t pid() const { return pid_; }

 private:
  int begin_[2], done_[2];
  pid_t pid_ = 0;
};

TEST(ProcessTree, EveryForkIsSeenWhereTheKernelTells) {
  constexpr int kChildren = 200;
  Family family([] {
    for (int i = 0; i < kChildren; i++) {  // gone before anybody can look
      const pid_t child = fork();
      if (child == 0) _exit(i % 3);
      waitpid(child, nullptr, 0);
    }
    const pid_t middle = fork();  // a grandchild that outlives its parent
    if (middle == 0) {
      if (fork() == 0) {
        sleep(30);
        _exit(0);
      }
      _exit(0);
    }
    waitpid(middle, nullptr, 0);
  });
  const Host host;
  ProcessTree tree(host, family.pid());
  const Availability availability = tree.Start();
  ASSERT_TRUE(availability.usable()) << availability.reason;
  if (availability.state != Availability::State::kOk) {
    EXPECT_NE(availability.reason.find("can be missed"), std::string::npos);
    EXPECT_NE(availability.fix.find("CAP_NET_ADMIN"), std::string::npos);
    GTEST_SKIP() << availability.reason;
  }
  family.Run();
  tree.Update();
  tree.Update();
  if (tree.lost_events() > 0) GTEST_SKIP() << "the kernel dropped events on this busy machine";
  EXPECT_EQ(tree.processes().size(), 1u + kChildren + 2u);
  ASSERT_EQ(tree.pids().size(), 2u) << "the root and the grandchild";
  EXPECT_EQ(tree.pids()[0], family.pid());
  int with_status = 0, failed = 0;
  for (const TreeProcess& process : tree.processes()) {
    EXPECT_FALSE(process.name.empty());
    if (!process.wait_status) continue;
    with_status++;
    failed += WIFEXITED(*process.wait_status) && WEXITSTATUS(*process.wait_status) != 0;
  }
  EXPECT_EQ(with_status, kChildren + 1);
  EXPECT_EQ(failed, kChildren - (kChildren + 2) / 3);
  kill(static_cast<pid_t>(tree.pids()[1]), SIGKILL);
}

TEST(ProcessTree, ChildrenFoundByLookingAgain) {
  // The fixture's kernel tells nothing, so a host with a root of "/." has to look.
  Family family([] {
    if (fork() == 0) {
      sleep(30);
      _exit(0);
    }
  });
  const Host host("/.");
  ASSERT_FALSE(host.is_this_machine());
  ProcessTree tree(host, family.pid());
  ASSERT_EQ(tree.Start().state, Availability::State::kDegraded);
  EXPECT_EQ(tree.pids().size(), 1u);
  family.Run();
  tree.Update();
  ASSERT_EQ(tree.pids().size(), 2u);
  const int64_t child = tree.pids()[1];
  EXPECT_EQ(tree.processes()[1].parent_pid, family.pid());
  kill(static_cast<pid_t>(child), SIGKILL);
  for (int i = 0; i < 500 && tree.pids().size() > 1; i++) {
    usleep(10'000);
    tree.Update();
  }
  EXPECT_EQ(tree.pids().size(), 1u);
  EXPECT_TRUE(tree.processes()[1].ended_ns);
}

}  // namespace
}  // namespace headrace::probes
