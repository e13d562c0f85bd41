// Causes of waits by sampling: the tables against real and damaged text, and real threads that wait
// in known ways.
#include "probes/threads/wait_sampler.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "probes/probe.h"

namespace headrace::probes {
namespace {

std::string Kind(int fd) {
  const std::map<int, std::string> kinds = {{3, "pipe"}, {4, "unix"}, {5, "socket"}, {6, "file"}};
  const auto it = kinds.find(fd);
  return it == kinds.end() ? "" : it->second;
}

std::string Call(long number, const std::string& rest) {
  return CauseOfSyscall(std::to_string(number) + rest, Kind).value_or("nothing");
}

TEST(WaitSampler, KnowsCalls) {
  EXPECT_EQ(CauseOfSyscall("running\n", Kind), "running");
  EXPECT_EQ(CauseOfSyscall("-1 0x7ffd 0x7f00\n", Kind), "fault");
  EXPECT_EQ(Call(SYS_futex, " 0x7f00 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n"), "lock");
  EXPECT_EQ(Call(SYS_fcntl, " 0x5 0x7 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f00\n"), "lock") << "on a file";
  EXPECT_EQ(Call(SYS_flock, " 0x5 0x2 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n"), "lock");
  EXPECT_EQ(Call(SYS_clock_nanosleep, " 0x0\n"), "sleep");
  EXPECT_EQ(Call(SYS_ppoll, " 0x0\n"), "poll");
  EXPECT_EQ(Call(SYS_wait4, " 0x0\n"), "child");
  EXPECT_EQ(Call(SYS_fsync, " 0x6\n"), "storage");
  EXPECT_EQ(Call(SYS_read, " 0x3 0x0\n"), "pipe");
  EXPECT_EQ(Call(SYS_read, " 0x5 0x0\n"), "network");
  EXPECT_EQ(Call(SYS_pread64, " 0x6 0x0\n"), "storage");
  EXPECT_EQ(Call(SYS_recvmsg, " 0x4 0x0\n"), "pipe");
  EXPECT_EQ(Call(SYS_recvmsg, " 0x5 0x0\n"), "network");
  EXPECT_EQ(Call(SYS_read, " 0x63 0x0\n"), "other") << "a descriptor nobody knows";
  EXPECT_EQ(Call(99999, " 0x0\n"), "other");
}

TEST(WaitSampler, BearsDamagedText) {
  for (const char* bad :
       {"", " ", "\n", "x", "0x10 1", "99999999999999999999999 0x1", "runn", "1a"}) {
    EXPECT_FALSE(CauseOfSyscall(bad, Kind)) << bad;
  }
  EXPECT_EQ(Call(SYS_read, ""), "other");
  EXPECT_EQ(Call(SYS_read, " 0xffffffffffffffff"), "other");
  EXPECT_EQ(Call(SYS_read, " zz"), "other");
}

TEST(WaitSampler, KnowsKernelFunctions) {
  EXPECT_EQ(CauseOfKernelFunction("futex_do_wait"), "lock");
  EXPECT_EQ(CauseOfKernelFunction("locks_lock_inode_wait"), "lock");
  EXPECT_EQ(CauseOfKernelFunction("hrtimer_nanosleep\n"), "sleep");
  EXPECT_EQ(CauseOfKernelFunction("unix_stream_read_generic"), "pipe");
  EXPECT_EQ(CauseOfKernelFunction("folio_wait_bit_common"), "storage");
  EXPECT_EQ(CauseOfKernelFunction("0"), "running");
  EXPECT_EQ(CauseOfKernelFunction(""), "running");
  EXPECT_EQ(CauseOfKernelFunction("\xff\x01"), "other");
}

TEST(WaitSampler, KnowsStoppedThreads) {
  EXPECT_TRUE(IsStopped("42 (sleep) T 1 42 42 0"));
  EXPECT_TRUE(IsStopped("42 (a) S (b) t 1 42 42 0"));
  EXPECT_FALSE(IsStopped("42 (T) T) S 1 42 42 0"));
  for (const char* bad : {"", "T", ")", ") ", "42 (x", "42 (x) ", "42 (x) S 1", "\xff\x01"}) {
    EXPECT_FALSE(IsStopped(bad)) << bad;
  }
}

struct GatheredWaits : Sink {
  std::map<std::tuple<std::string, std::string, std::string>, double> values;
  void Add(const Measurement& m) override {
    values[{std::string(m.metric), m.labels.thread, m.labels.cause}] = m.value;
  }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view, int64_t, std::optional<int64_t>) override {}
};

TEST(WaitSampler, FindsWhatRealThreadsWaitFor) {
  const auto* entry = Registry<ProbeInfo>::Global().Find("waits by sampling");
  ASSERT_NE(entry, nullptr);
  const Host host;
  const Target target{.root_pid = getpid(), .pids = {getpid()}, .accounts = {}};
  const auto probe = entry->make();
  const Availability said = probe->Start(host, target);
  if (!said.usable()) GTEST_SKIP() << said.reason;

  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::mutex mutex;
  std::condition_variable over;
  bool done = false;
  const auto named = [](const char* name) { prctl(PR_SET_NAME, name); };
  std::thread locked([&] {
    named("wait-lock-1");
    std::unique_lock lock(mutex);
    over.wait(lock, [&] { return done; });
  });
  std::thread piped([&] {
    named("wait-pipe-1");
    char byte;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
  });
  std::thread asleep([&] {
    named("wait-sleep-1");
    for (int i = 0; i < 200; ++i) {
      usleep(5000);
      const std::lock_guard lock(mutex);
      if (done) break;
    }
  });
  GatheredWaits seen;
  for (int i = 0; i < 12; ++i) {
    usleep(30'000);
    probe->Read(seen);
  }
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  over.notify_all();
  EXPECT_EQ(write(ends[1], "x", 1), 1);
  locked.join();
  piped.join();
  asleep.join();
  const auto waited = [&](const char* thread, const char* cause) {
    const auto it = seen.values.find({"sampled_off_cpu_ns", thread, cause});
    return it == seen.values.end() ? 0.0 : it->second;
  };
  EXPECT_GT(waited("wait-lock", "lock"), 150e6);
  EXPECT_GT(waited("wait-pipe", "pipe"), 150e6);
  EXPECT_GT(waited("wait-sleep", "sleep"), 100e6);
  EXPECT_EQ(waited("wait-lock", "sleep"), 0);
  close(ends[0]);
  close(ends[1]);
}

TEST(WaitSampler, AStoppedProcessWaitsForNothing) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    while (true) usleep(1000);
  }
  int status = 0;
  ASSERT_EQ(kill(child, SIGSTOP), 0);
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  const Host host;
  const Target target{.root_pid = child, .pids = {child}, .accounts = {}};
  const auto probe = Registry<ProbeInfo>::Global().Find("waits by sampling")->make();
  const Availability said = probe->Start(host, target);
  GatheredWaits seen;
  for (int i = 0; said.usable() && i < 4; ++i) {
    usleep(30'000);
    probe->Read(seen);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!said.usable()) GTEST_SKIP() << said.reason;
  double stopped = 0, other = 0;
  for (const auto& [key, value] : seen.values) {
    if (std::get<0>(key) != "sampled_off_cpu_ns") continue;
    (std::get<2>(key) == "stopped" ? stopped : other) += value;
  }
  EXPECT_GT(stopped, 80e6);
  EXPECT_EQ(other, 0);
}

TEST(WaitSampler, SaysWhyAThreadCannotBeAsked) {
  const auto* entry = Registry<ProbeInfo>::Global().Find("waits by sampling");
  ASSERT_NE(entry, nullptr);
  const Host host("/nonexistent");
  const Target target{.root_pid = 1, .pids = {1}, .accounts = {}};
  const Availability said = entry->make()->Start(host, target);
  EXPECT_FALSE(said.usable());
  EXPECT_FALSE(said.reason.empty());
}

}  // namespace
}  // namespace headrace::probes
