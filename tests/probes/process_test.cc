#include "probes/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace headrace::probes {
namespace {

TEST(Process, ReadsItself) {
  const auto stat = ReadProcessStat(getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent_pid, getppid());
  EXPECT_EQ(stat->session_id, getsid(0));
  EXPECT_GT(stat->rss_bytes, 1 << 20);
  EXPECT_EQ(ReadOwner(getpid()), geteuid());
  EXPECT_NE(ReadCommandLine(getpid()).find("probes_test"), std::string::npos);
  EXPECT_TRUE(IsAlive(getpid(), stat->start_ticks));
  EXPECT_FALSE(IsAlive(getpid(), stat->start_ticks + 1)) << "a reused pid is another process";
  const auto host = ReadHostCpu();
  ASSERT_TRUE(host);
  EXPECT_GE(host->num_cpus, 1);
}

TEST(Process, ParsesNamesWithBlanksAndParentheses) {
  const std::string root = testing::TempDir() + "/headrace-proc";
  std::filesystem::create_directories(root + "/7/task/8");
  std::ofstream(root + "/7/stat")
      << "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 12345 1000 25 0 0";
  std::ofstream(root + "/7/task/8/schedstat") << "123456 789 10\n";
  const auto stat = ReadProcessStat(7, root);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) b (c");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->num_threads, 3);
  EXPECT_EQ(stat->start_ticks, 12345);
  EXPECT_EQ(stat->cpu_ns, 300 * (1'000'000'000 / sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(stat->rss_bytes, 25 * sysconf(_SC_PAGESIZE));
  ASSERT_TRUE(ReadTaskTime(7, 8, root));
  EXPECT_EQ(ReadTaskTime(7, 8, root)->runnable_ns, 789);
  std::filesystem::remove_all(root);
}

TEST(Process, LabelsGroupsOfThreads) {
  EXPECT_EQ(ThreadGroupLabel("reader-12", false), "reader");
  EXPECT_EQ(ThreadGroupLabel("tf_data_7", false), "tf_data");
  EXPECT_EQ(ThreadGroupLabel("python", true), "python (main)");
  EXPECT_EQ(ThreadGroupLabel("reader-", false), "reader-") << "nothing numbered";
  EXPECT_EQ(ThreadGroupLabel("12", false), "12");
  EXPECT_EQ(ThreadGroupLabel("", false), "");
}

TEST(Process, ThreadTimesReadAgainGrowAndEndWithTheThread) {
  for (const size_t most_open : {size_t{0}, size_t{1}, size_t{64}}) {
    TaskTimeReader reader(getpid(), most_open);
    std::atomic<int64_t> tid = 0;
    std::atomic<int> stage = 0;
    std::thread thread([&] {
      tid = gettid();
      while (stage == 0) {
      }
    });
    while (tid == 0) std::this_thread::yield();
    const auto first = reader.Read(tid);
    ASSERT_TRUE(first);
    ASSERT_TRUE(reader.Read(getpid())) << "a second thread";
    std::optional<TaskTime> later;
    do {
      later = reader.Read(tid);
      ASSERT_TRUE(later);
      EXPECT_GE(later->on_cpu_ns, first->on_cpu_ns);
    } while (later->on_cpu_ns == first->on_cpu_ns);
    stage = 1;
    thread.join();
    // Whoever joins it is woken before the kernel has done with it.
    for (int i = 0; i < 1000 && reader.Read(tid); ++i) usleep(10'000);
    EXPECT_FALSE(reader.Read(tid)) << "it has ended";
    EXPECT_FALSE(reader.Read(tid));
  }
}

TEST(Process, AbsentIsAbsentNotZero) {
  const std::string root = "/nonexistent";
  EXPECT_FALSE(ReadProcessStat(1, root));
  EXPECT_FALSE(ReadTaskTime(1, 1, root));
  EXPECT_FALSE(ReadProcessIo(1, root));
  EXPECT_FALSE(ReadHostCpu(root));
  EXPECT_FALSE(ReadOwner(1, root));
  EXPECT_FALSE(IsAlive(1, 0, root));
}

}  // namespace
}  // namespace headrace::probes
