// Links between processes: parsers against damaged text, a fixture tree, and real pipes and sockets
// between this process and a child.
#include "probes/links/links.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "probes/probe.h"

namespace headrace::probes {
namespace {

TEST(Links, ParsesChannels) {
  EXPECT_EQ(ParseChannel("pipe:[123]"), std::pair(std::string("pipe"), uint64_t{123}));
  EXPECT_EQ(ParseChannel("socket:[18446744073709551615]")->second, UINT64_MAX);
  for (const char* bad :
       {"", "pipe:", "pipe:[", "pipe:[]", "pipe:[12", "pipe:[-1]", "pipe:[x]",
        "pipe:[99999999999999999999999]", "anon_inode:[eventfd]", "/tmp/pipe:[1]x", ":[1]", "]"}) {
    EXPECT_FALSE(ParseChannel(bad)) << bad;
  }
}

TEST(Links, ParsesAccess) {
  EXPECT_EQ(ParseAccess("pos:\t0\nflags:\t02000001\nmnt_id:\t15\n"), 1);
  EXPECT_EQ(ParseAccess("flags:\t00"), 0);
  EXPECT_EQ(ParseAccess("flags:\t0100002\n"), 2);
  for (const char* bad : {"", "flags:", "flags:\t", "flags:\t9", "flag", "flags:\t3",
                          "flags:\t7777777777777777777777777777777"}) {
    EXPECT_FALSE(ParseAccess(bad)) << bad;
  }
}

TEST(Links, ParsesSharedMaps) {
  Holdings holdings;
  ParseSharedMaps(
      "7f0000000000-7f0000001000 rw-s 00000000 00:1a 77    /dev/shm/torch_1\n"
      "7f0000002000-7f0000003000 rw-s 00000000 00:1a 77    /dev/shm/torch_1\n"
      "7f0000004000-7f0000008000 rw-s 00000000 00:01 5     /memfd:pool (deleted)\n"
      "7f0000009000-7f000000a000 rw-p 00000000 00:1a 78    /dev/shm/private\n"
      "7f000000b000-7f000000c000 r--s 00000000 fe:00 9     /usr/lib/gconv-modules.cache\n"
      "7f000000d000-7f000000d000 rw-s 00000000 00:1a 79    /dev/shm/empty\n"
      "zz-7f000000d000 rw-s 00000000 00:1a 79    /dev/shm/bad\n"
      "7f00 rw-s\n\n\x01\xff binary rw-s",
      &holdings);
  ASSERT_EQ(holdings.maps.size(), 2u);
  EXPECT_EQ(holdings.maps.at("00:1a 77"), 8192);
  EXPECT_EQ(holdings.maps.at("00:01 5"), 16384);
}

TEST(Links, FindsTcpPeersOfOneMachine) {
  const std::string head = "  sl  local_address rem_address   st tx_queue rx_queue tr ...\n";
  const auto peers = ParseTcpPeers(
      head +
      "   0: 0100007F:1F90 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000 0 0 501 1 x\n"
      "   1: 0100007F:D2F0 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 0 0 502 1 x\n"
      "   2: 0100007F:D2F1 08080808:1F90 01 00000000:00000000 00:00000000 00000000 0 0 503 1 x\n"
      "   3: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 504 1 x\n"
      "   4: truncated");
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peers[0].first + peers[0].second, 1003u);
  EXPECT_TRUE(ParseTcpPeers("").empty());
  EXPECT_TRUE(ParseTcpPeers("\n\n   \xff\xfe 01 01 01").empty());
}

TEST(Links, SiblingsThatInheritedAreNotLinked) {
  std::map<int64_t, Holdings> processes;
  // 1 is the parent of 2 and 3; all hold both ends of pipe 10 (inherited); 4 only writes pipe 11,
  // which 1 reads.
  for (const int64_t pid : {1, 2, 3}) processes[pid].pipes[10] = {true, true};
  processes[4].pipes[11] = {false, true};
  processes[1].pipes[11] = {true, false};
  processes[2].sockets[20] = 1;
  processes[3].sockets[21] = 1;
  processes[2].maps["m 1"] = 4096;
  processes[1].maps["m 1"] = 4096;
  const std::map<int64_t, int64_t> parents = {{1, 0}, {2, 1}, {3, 1}, {4, 1}};
  const auto links = FindLinks(processes, parents, {{20, 21}, {21, 20}}, {});
  EXPECT_FALSE(links.contains({2, 3, "pipe"}));
  EXPECT_EQ(links.at({1, 2, "pipe"}), 1);
  EXPECT_EQ(links.at({2, 1, "pipe"}), 1);
  EXPECT_EQ(links.at({4, 1, "pipe"}), 1);
  EXPECT_FALSE(links.contains({1, 4, "pipe"}));
  EXPECT_EQ(links.at({2, 3, "unix"}), 1) << "a socket pair that the parent does not hold";
  EXPECT_EQ(links.at({2, 1, "shm"}), 1);
}

TEST(Links, ReadsAFixture) {
  const std::string root = testing::TempDir() + "/headrace-links";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root + "/proc/5/fd");
  std::filesystem::create_directories(root + "/proc/5/fdinfo");
  std::filesystem::create_symlink("pipe:[9]", root + "/proc/5/fd/3");
  std::filesystem::create_symlink("pipe:[9]", root + "/proc/5/fd/4");
  std::filesystem::create_symlink("socket:[8]", root + "/proc/5/fd/5");
  std::filesystem::create_symlink("/etc/passwd", root + "/proc/5/fd/6");
  std::ofstream(root + "/proc/5/fdinfo/3") << "flags:\t00\n";
  std::ofstream(root + "/proc/5/fdinfo/4") << "flags:\t01\n";
  const auto holdings = ReadHoldings(Host(root), 5);
  ASSERT_TRUE(holdings);
  EXPECT_TRUE(holdings->pipes.at(9).reads && holdings->pipes.at(9).writes);
  EXPECT_EQ(holdings->sockets.size(), 1u);
  EXPECT_FALSE(ReadHoldings(Host(root), 6));
  std::filesystem::remove_all(root);
}

struct GatheredLinks : Sink {
  std::vector<std::pair<Labels, double>> links;
  void Add(const Measurement& m) override {
    if (m.metric == "link_count") links.push_back({m.labels, m.value});
  }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view, int64_t, std::optional<int64_t>) override {}

  double Count(int64_t pid, const std::string& subject) const {
    for (const auto& [labels, value] : links) {
      if (labels.pid == pid && labels.subject == subject) return value;
    }
    return -1;
  }
};

TEST(Links, SeesRealChannelsToAChild) {
  int there[2], pair[2];
  ASSERT_EQ(pipe(there), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Whatever else this process holds, of other tests too, is no channel to the child.
    for (int fd = 3; fd < 1024; ++fd) {
      if (fd != there[1] && fd != pair[1]) close(fd);
    }
    char byte;
    _exit(read(pair[1], &byte, 1) == 1 ? 0 : 1);
  }
  close(there[1]);
  close(pair[1]);
  const auto* entry = Registry<ProbeInfo>::Global().Find("links");
  ASSERT_NE(entry, nullptr);
  const Host host;
  const Target target{.root_pid = getpid(), .pids = {getpid(), child}, .accounts = {}};
  const auto probe = entry->make();
  ASSERT_TRUE(probe->Start(host, target).usable());
  // The child closes its copies at its own pace.
  GatheredLinks seen;
  for (int i = 0; i < 200; ++i) {
    seen.links.clear();
    probe->Read(seen);
    if (seen.Count(getpid(), "pipe>" + std::to_string(child)) != 1) break;
    usleep(10'000);
  }
  EXPECT_EQ(seen.Count(child, "pipe>" + std::to_string(getpid())), 1);
  EXPECT_LE(seen.Count(getpid(), "pipe>" + std::to_string(child)), 0);
  EXPECT_EQ(seen.Count(child, "unix>" + std::to_string(getpid())), 1);
  EXPECT_EQ(seen.Count(getpid(), "unix>" + std::to_string(child)), 1);
  EXPECT_EQ(write(pair[0], "x", 1), 1);
  waitpid(child, nullptr, 0);
  close(there[0]);
  close(pair[0]);
}

TEST(Links, SaysWhyAProcessCannotBeRead) {
  const auto* entry = Registry<ProbeInfo>::Global().Find("links");
  ASSERT_NE(entry, nullptr);
  const Host host;
  const Target target{.root_pid = 0x7fffffff, .pids = {}, .accounts = {}};
  const Availability said = entry->make()->Start(host, target);
  EXPECT_FALSE(said.usable());
  EXPECT_NE(said.reason.find("No such file"), std::string::npos) << said.reason;
  EXPECT_FALSE(said.fix.empty());
}

}  // namespace
}  // namespace headrace::probes
