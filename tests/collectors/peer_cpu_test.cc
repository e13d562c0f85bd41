#include "collectors/peer_cpu.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace headrace::collectors {
namespace {

namespace fs = std::filesystem;

// A /proc of our making, and the mounts that it names.
class PeerCpuTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "peer_cpu_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    proc_ = folder_ / "proc";
    Write(proc_ / "self/mountinfo", fmt::format("30 1 0:26 / {0}/unified rw - cgroup2 cgroup2 rw\n"
                                                "31 1 0:27 / {0}/cpu rw - cgroup cgroup rw,cpu\n",
                                                folder_.string()));
    Write(proc_ / "sys/kernel/sched_autogroup_enabled", "0\n");
    Write(proc_ / "uptime", "1 1\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  static void Write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // A process that began at `start` ticks and used `ticks` of CPU time, of 10 ms each.
  void Process(int pid, const std::string& groups, int ticks, int start = 1,
               const std::string& session = "1") {
    const fs::path folder = proc_ / std::to_string(pid);
    Write(folder / "stat", fmt::format("{} (a b) R 1 1 1 0 -1 0 0 0 0 0 {} 0 0 0 20 0 1 0 {} 0 0\n",
                                       pid, ticks, start));
    Write(folder / "cgroup", groups);
    Write(folder / "autogroup", fmt::format("/autogroup-{} nice 0\n", session));
  }
  int64_t PeersMs(PeerCpu* peers, const std::set<int64_t>& own = {10}) {
    return peers->ReadNs([&](int64_t pid, int64_t) { return own.count(pid) != 0; }) / 1'000'000;
  }

  fs::path folder_, proc_;
};

TEST_F(PeerCpuTest, CountsWhatOthersOfTheGroupUseFromThenOn) {
  for (const int pid : {10, 11, 12}) Process(pid, pid == 12 ? "3:cpu:/b\n" : "3:cpu:/a\n", 100);
  PeerCpu peers(10, proc_);
  ASSERT_TRUE(peers.known());
  EXPECT_EQ(PeersMs(&peers), 0);
  Process(10, "3:cpu:/a\n", 150);  // the run itself
  Process(11, "3:cpu:/a\n", 130);
  Process(12, "3:cpu:/b\n", 180);  // another group
  EXPECT_EQ(PeersMs(&peers), 300);
  EXPECT_EQ(PeersMs(&peers), 300);
  Process(11, "3:cpu:/a\n", 20, 7);  // another process of this number
  Process(13, "3:cpu:/a\n", 5, 8);
  EXPECT_EQ(PeersMs(&peers), 550);
  fs::remove_all(proc_ / "13");
  Process(14, "3:cpu:/a\n", 5, 9);  // a child of the run
  EXPECT_EQ(PeersMs(&peers, {10, 14}), 550);
}

// In the unified hierarchy weights hold where the controller is on.
TEST_F(PeerCpuTest, GroupsWithoutAWeightOfTheirOwnAreOne) {
  Write(folder_ / "unified/pod/cpu.weight", "100\n");
  Write(folder_ / "unified/pod/one/cgroup.procs", "");
  Write(folder_ / "unified/pod/two/cgroup.procs", "");
  Write(folder_ / "unified/other/cpu.weight", "100\n");
  for (const int pid : {10, 11, 12}) Process(pid, "0::/pod/one\n", 0);
  PeerCpu peers(10, proc_);
  Process(11, "0::/pod/two\n", 10);
  Process(12, "0::/other\n", 20);
  EXPECT_EQ(PeersMs(&peers), 100);
}

// What a process used before is not counted because one look at it failed.
TEST_F(PeerCpuTest, AFailedLookCountsNothing) {
  for (const int pid : {10, 11, 12}) Process(pid, "3:cpu:/a\n", 1000);
  fs::remove(proc_ / "12/stat");
  PeerCpu peers(10, proc_);
  fs::remove(proc_ / "11/stat");
  Process(12, "3:cpu:/a\n", 1010);  // seen for the first time, and older than the look
  EXPECT_EQ(PeersMs(&peers), 0);
  Process(11, "3:cpu:/a\n", 1003);
  Process(12, "3:cpu:/a\n", 1014);
  EXPECT_EQ(PeersMs(&peers), 70);
}

// A container calls its own group "/", in which the kernel knows no sessions.
TEST_F(PeerCpuTest, AContainersTopGroupIsNotTheMachines) {
  Write(proc_ / "sys/kernel/sched_autogroup_enabled", "1\n");
  Write(folder_ / "unified/cpu.weight", "100\n");
  for (const char* groups : {"3:cpu:/\n", "0::/\n"}) {
    SCOPED_TRACE(groups);
    for (const int pid : {10, 11}) Process(pid, groups, 0);
    PeerCpu peers(10, proc_);
    Process(11, groups, 10, 1, "2");
    EXPECT_EQ(PeersMs(&peers), 100);
  }
}

// Where the group of the run lies is not to be seen: neither is who shares it.
TEST_F(PeerCpuTest, AHierarchyThatIsNotMountedTellsNothing) {
  Write(proc_ / "self/mountinfo", "");
  Process(10, "0::/pod\n", 0);
  EXPECT_FALSE(PeerCpu(10, proc_).known());
  Process(10, "3:cpu:/pod\n", 0);  // the name says enough
  EXPECT_TRUE(PeerCpu(10, proc_).known());
}

TEST_F(PeerCpuTest, AProcessThatMovesIsFollowed) {
  for (const int pid : {10, 11, 12}) Process(pid, pid == 12 ? "3:cpu:/b\n" : "3:cpu:/a\n", 0);
  PeerCpu peers(10, proc_);
  Process(10, "3:cpu:/b\n", 0);
  Process(11, "3:cpu:/a\n", 10);
  Process(12, "3:cpu:/b\n", 5);
  EXPECT_EQ(PeersMs(&peers), 50);
  fs::remove_all(proc_ / "10");
  Process(12, "3:cpu:/b\n", 6);
  EXPECT_EQ(PeersMs(&peers), 60);
}

TEST_F(PeerCpuTest, InTheTopGroupSessionsAreApartWhereTheKernelSeparatesThem) {
  for (const bool separates : {false, true}) {
    SCOPED_TRACE(separates);
    Write(proc_ / "sys/kernel/sched_autogroup_enabled", separates ? "1\n" : "0\n");
    Write(folder_ / "cpu/release_agent", "");
    for (const int pid : {10, 11, 12}) Process(pid, "3:cpu:/\n", 0);
    PeerCpu peers(10, proc_);
    Process(11, "3:cpu:/\n", 10, 1, "1");
    Process(12, "3:cpu:/\n", 20, 1, "2");
    EXPECT_EQ(PeersMs(&peers), separates ? 100 : 300);
  }
}

TEST_F(PeerCpuTest, WithoutAKnownGroupNothingIsFound) {
  PeerCpu peers(10, proc_);
  EXPECT_FALSE(peers.known());
  Process(11, "3:cpu:/a\n", 10);
  EXPECT_EQ(PeersMs(&peers), 0);
}

// Files that lie or end early are as if they were not there.
TEST_F(PeerCpuTest, DamagedFilesDoNoHarm) {
  Process(10, "3:cpu:/a\n", 0);
  PeerCpu peers(10, proc_);
  Write(proc_ / "11/stat", "11 (x");
  Write(proc_ / "99999999999999999999/stat", "1 (x) R");
  Write(proc_ / "12/stat", "12 (x) R 1 1 1 0 -1 0 0 0 0 0 -5 0 0 0 20 0 1 0 1 0 0\n");
  Write(proc_ / "12/cgroup", "no colon");
  // As of a process that ends between the opening of its file and the reading.
  Process(13, "3:cpu:/a\n", 10, 9);
  fs::remove(proc_ / "13/cgroup");
  fs::create_directory(proc_ / "13/cgroup");
  EXPECT_EQ(PeersMs(&peers), 0);
}

TEST(PeerCpu, OfThisMachineIsReadable) {
  PeerCpu peers(getpid());
  if (!peers.known()) GTEST_SKIP() << "the control group of this process cannot be read";
  EXPECT_GE(peers.ReadNs([](int64_t, int64_t) { return false; }), 0);
}

}  // namespace
}  // namespace headrace::collectors
