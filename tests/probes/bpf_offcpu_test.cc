// Off-CPU time against what threads themselves know of their sleeps, locks and waits.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/account/account_segment.h"
#include "probes/bpf/offcpu.h"
#include "probes/bpf/program.h"
#include "tests/probes/off_cpu_fixture.h"

namespace headrace::probes::bpf {
namespace {

TEST_F(OffCpu, SplitsOperatorsByCauseAsTheThreadsThemselvesDo) {
  ASSERT_EQ(hr_account_open("offcpu_test"), 0);
  const uint32_t stage = hr_stage("stage", 2, 0);
  const uint32_t sleeps = hr_operator("sleeps", "test", stage);
  const uint32_t locks = hr_operator("locks", "test", stage);
  const uint32_t pipes = hr_operator("pipes", "test", stage);
  const uint32_t spins = hr_operator("spins", "test", stage);
  Start();
  if (IsSkipped()) return;
  int64_t slept = 0, locked = 0, piped = 0, cpu = 0;
  std::mutex mutex;
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  std::atomic<int> round = -1;
  std::thread helper([&] {
    for (int i = 0; i < 10; i++) {
      {
        std::lock_guard lock(mutex);
        round = i;
        SleepUntilNs(MonotonicNs() + 8'000'000);
      }
      SleepUntilNs(MonotonicNs() + 10'000'000);
      if (write(fds[1], "x", 1) != 1) return;
      while (round != -1) SleepUntilNs(MonotonicNs() + 1'000'000);
    }
  });
  std::thread worker([&] {
    hr_thread_begin(stage);
    const int64_t cpu_begin = ThreadCpuNs();
    for (int i = 0; i < 10; i++) {
      hr_enter(sleeps);
      int64_t begin = MonotonicNs();
      SleepUntilNs(begin + 5'000'000);
      slept += MonotonicNs() - begin;
      hr_leave();
      while (round != i) SleepUntilNs(MonotonicNs() + 200'000);
      hr_enter(locks);
      begin = MonotonicNs();
      mutex.lock();
      locked += MonotonicNs() - begin;
      mutex.unlock();
      hr_leave();
      hr_enter(spins);
      Spin(3'000'000);
      hr_leave();
      hr_enter(pipes);
      begin = MonotonicNs();
      char byte;
      ASSERT_EQ(read(fds[0], &byte, 1), 1);
      piped += MonotonicNs() - begin;
      hr_leave();
      round = -1;
    }
    cpu = ThreadCpuNs() - cpu_begin;
    hr_thread_end();
  });
  worker.join();
  helper.join();
  close(fds[0]);
  close(fds[1]);
  const CollectedWaits seen = Read();
  // Blocked and runnable together are what the thread saw, but for the switches themselves.
  const auto near = [&](uint32_t op, const char* cause, int64_t expected) {
    const double blocked = seen.Sum("off_cpu_ns", op, cause);
    const double runnable = seen.Sum("runnable_ns", op, "");
    EXPECT_NEAR(blocked + runnable, static_cast<double>(expected),
                0.02 * static_cast<double>(expected) + 1e6 + StolenNsMeanwhile())
        << cause;
    EXPECT_GT(blocked, 0) << cause;
  };
  near(sleeps, "sleep", slept);
  near(locks, "lock", locked);
  near(pipes, "pipe", piped);
  EXPECT_LT(seen.Sum("off_cpu_ns", spins, ""), 1e6);
  // The same by thread: nothing of what operators count is missing in the threads' own times.
  double inside_ns = 0, by_operators_ns = 0;
  for (const auto& [key, value] : seen.values) {
    const bool in_operator = key.second.operator_index.has_value();
    if (key.first == "off_cpu_inside_ns") {
      EXPECT_FALSE(in_operator);
      EXPECT_FALSE(key.second.thread.empty());
      inside_ns += value;
    } else if (key.first == "off_cpu_ns" && in_operator) {
      by_operators_ns += value;
    }
  }
  EXPECT_GT(inside_ns, static_cast<double>(slept));
  EXPECT_NEAR(inside_ns, by_operators_ns, 0.01 * by_operators_ns);

  auto segment = account::AccountSegment::Attach(getpid());
  ASSERT_TRUE(segment);
  const auto snapshot = segment->Read(true, {});
  const auto& splits = dynamic_cast<SplitSource&>(*probe_).Splits();
  double on_cpu = 0;
  for (const auto& o : snapshot.operators) on_cpu += static_cast<double>(o.busy_ns);
  for (const OperatorSplit& split : splits) {
    const auto& o = snapshot.operators.at(split.operator_index);
    EXPECT_GE(o.busy_ns + 1'000'000, split.blocked_ns + split.runnable_ns) << o.name;
    on_cpu -= static_cast<double>(split.blocked_ns + split.runnable_ns);
  }
  EXPECT_NEAR(on_cpu, static_cast<double>(cpu),
              0.1 * static_cast<double>(cpu) + StolenNsMeanwhile());
  EXPECT_EQ(seen.lost.at("offcpu: off cpu periods"), 0);
  EXPECT_EQ(seen.lost.at("follow: threads"), 0);
  hr_account_close();
}

// Accounts of a pipeline file tell all: its threads' times are not kept twice.
TEST_F(OffCpu, ThreadsOfAPipelineAreNotReportedBesideItsOperators) {
  ASSERT_EQ(hr_account_open("offcpu_test"), 0);
  const uint32_t stage = hr_stage("stage", 1, 0);
  const uint32_t sleeps = hr_operator("sleeps", "test", stage);
  target_.runs_pipeline = true;
  Start();
  if (IsSkipped()) return;
  std::thread([&] {
    hr_thread_begin(stage);
    hr_enter(sleeps);
    SleepUntilNs(MonotonicNs() + 20'000'000);
    hr_leave();
    hr_thread_end();
  }).join();
  const CollectedWaits seen = Read();
  EXPECT_GT(seen.Sum("off_cpu_ns", sleeps, "sleep"), 19e6);
  EXPECT_EQ(seen.Sum("off_cpu_inside_ns", {}, ""), 0);
  hr_account_close();
}

TEST_F(OffCpu, SeesThreadsThatSleepFromBeforeTheStart) {
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    std::thread sleeper([] { sleep(60); });
    char byte;
    while (read(channel[0], &byte, 1) < 0) {
    }
    _exit(0);
  }
  usleep(100'000);
  target_.root_pid = child;
  target_.pids = {child};
  const Availability available = probe_->Start(host_, target_);
  usleep(100'000);
  const CollectedWaits seen = Read();
  kill(child, SIGKILL);
  int status;
  waitpid(child, &status, 0);
  close(channel[0]);
  close(channel[1]);
  if (!available.usable()) GTEST_SKIP() << "no BPF here: " << available.reason;
  EXPECT_GE(seen.Sum("off_cpu_ns", std::nullopt, "sleep", child), 99e6);
  EXPECT_GE(seen.Sum("off_cpu_ns", std::nullopt, "pipe", child), 99e6);
}

// Kinds of waiting, each in an operator of its own; the thread knows by its clocks how long it was
// off the CPU.
TEST_F(OffCpu, NamesTheCauseOfEveryWait) {
  ASSERT_EQ(hr_account_open("offcpu_causes"), 0);
  const uint32_t stage = hr_stage("stage", 1, 0);
  Start();
  if (IsSkipped()) {
    hr_account_close();
    return;
  }
  int stream[2], datagram[2], pipes[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, stream), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, datagram), 0);
  ASSERT_EQ(pipe(pipes), 0);
  char name[] = "offcpu_test.XXXXXX";
  const int plain = mkstemp(name);
  ASSERT_GE(plain, 0);
  std::vector<char> chunk(4 << 20, 'x');
  ASSERT_EQ(write(plain, chunk.data(), chunk.size()), static_cast<ssize_t>(chunk.size()));
  ASSERT_EQ(fsync(plain), 0);
  const int direct = open(name, O_RDONLY | O_DIRECT | O_CLOEXEC);  // a tmpfs may have none
  unlink(name);
  void* aligned = nullptr;
  ASSERT_EQ(posix_memalign(&aligned, 4096, 1 << 20), 0);
  // Each byte comes after it was asked for: where the reader did not run, it would not wait else.
  std::atomic<int> asked{0};
  std::thread feeder([&] {
    for (int i = 0; i < 30; i++) {
      while (asked <= i) SleepUntilNs(MonotonicNs() + 100'000);
      SleepUntilNs(MonotonicNs() + 4'000'000);
      const int fds[] = {pipes[1], stream[1], datagram[1]};
      if (write(fds[i % 3], "x", 1) != 1) return;
    }
  });
  char byte;
  const std::vector<std::pair<std::string, std::function<void()>>> waits = {
      {"pipe", [&] { ASSERT_EQ(read(pipes[0], &byte, 1), 1); }},
      {"pipe", [&] { ASSERT_EQ(recv(stream[0], &byte, 1, 0), 1); }},
      {"poll",
       [&] {
         pollfd wait = {datagram[0], POLLIN, 0};
         ASSERT_EQ(poll(&wait, 1, -1), 1);
         ASSERT_EQ(read(datagram[0], &byte, 1), 1);
       }},
      {"child",
       [&] {
         const pid_t child = fork();
         if (child == 0) {
           usleep(4000);
           _exit(0);
         }
         int status;
         waitpid(child, &status, 0);
       }},
      {"storage",
       [&] {
         for (int i = 0; i < 4 && direct >= 0; i++) {
           ASSERT_EQ(pread(direct, aligned, 1 << 20, i << 20), 1 << 20);
         }
       }},
  };
  std::vector<int64_t> off(waits.size());
  std::thread worker([&] {
    hr_thread_begin(stage);
    for (int round = 0; round < 10; round++) {
      for (uint32_t i = 0; i < waits.size(); i++) {
        const uint32_t op = hr_operator(fmt::format("{} {}", i, waits[i].first).c_str(), "", stage);
        hr_enter(op);
        const int64_t wall = MonotonicNs(), cpu = ThreadCpuNs();
        if (i < 3) ++asked;
        waits[i].second();
        off[op] += cpu - ThreadCpuNs();
        off[op] += MonotonicNs() - wall;
        hr_leave();
      }
    }
    hr_thread_end();
  });
  worker.join();
  feeder.join();
  const CollectedWaits seen = Read();
  for (uint32_t i = 0; i < waits.size(); i++) {
    if (waits[i].first == "storage" && direct < 0) continue;
    const double blocked = seen.Sum("off_cpu_ns", i, waits[i].first);
    const double all = seen.Sum("off_cpu_ns", i, "") + seen.Sum("runnable_ns", i, "");
    const auto expected = static_cast<double>(off[i]);
    EXPECT_NEAR(all, expected, 0.02 * expected + 1e6 + StolenNsMeanwhile()) << waits[i].first;
    EXPECT_GT(blocked, 0.5 * seen.Sum("off_cpu_ns", i, "")) << waits[i].first;
  }
  for (const int fd : {stream[0], stream[1], datagram[0], datagram[1], pipes[0], pipes[1], plain}) {
    close(fd);
  }
  if (direct >= 0) close(direct);
  free(aligned);
  hr_account_close();
}

// Timers of an event loop are time limits of its polls.
TEST_F(OffCpu, PollsThatTheirTimeLimitsEndAreCountedApart) {
  std::ifstream symbols("/proc/kallsyms");
  bool is_known = false;
  for (std::string line; std::getline(symbols, line) && !is_known;) {
    is_known = line.ends_with(" hrtimer_wakeup") && line.find_first_not_of('0') < 16;
  }
  if (!is_known) GTEST_SKIP() << "the kernel does not tell where hrtimer_wakeup is";
  Start();
  if (IsSkipped()) return;
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  // A time limit that runs out while another program is in a system call is not known for one:
  // then once more.
  const double all_ns = 100e6, error_ns = 15e6;
  double before_ns = 0, timed_out_ns = 0;
  for (int attempt = 0; attempt < 8 && timed_out_ns < all_ns - error_ns; attempt++) {
    std::thread waits([&] {
      prctl(PR_SET_NAME, "waits");
      pollfd wait = {pipes[0], POLLIN, 0};
      for (int i = 0; i < 10; i++) {
        EXPECT_EQ(poll(&wait, 1, 10), 0);  // nobody writes
      }
      EXPECT_EQ(poll(&wait, 1, 60'000), 1);
    });
    SleepUntilNs(MonotonicNs() + 300'000'000);
    ASSERT_EQ(write(pipes[1], "x", 1), 1);
    waits.join();
    char taken;
    ASSERT_EQ(read(pipes[0], &taken, 1), 1);
    double sum_ns = 0, polls_ns = 0;
    for (const auto& [key, value] : Read().values) {
      if (key.second.thread != "waits") continue;
      if (key.first == "poll_timed_out_ns") sum_ns += value;
      if (key.first == "off_cpu_ns" && key.second.cause == "poll") polls_ns += value;
    }
    timed_out_ns = sum_ns - before_ns;
    before_ns = sum_ns;
    EXPECT_LT(timed_out_ns, all_ns + error_ns);
    // The poll that somebody ended is none of them; it is shorter where the thread began late.
    EXPECT_GT(polls_ns, sum_ns + 20e6);
  }
  close(pipes[0]);
  close(pipes[1]);
  EXPECT_GT(before_ns, 0) << "of eighty";
  if (timed_out_ns < all_ns - error_ns) GTEST_SKIP() << "others were in system calls all the time";
}

TEST_F(OffCpu, TimeOnTheCpuHoldsUnderOversubscription) {
  ASSERT_EQ(hr_account_open("offcpu_spin"), 0);
  const uint32_t stage = hr_stage("stage", 1, 0);
  Start();
  if (IsSkipped()) {
    hr_account_close();
    return;
  }
  cpu_set_t cpus;
  ASSERT_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
  for (const int times : {1, 2, 4}) {
    const uint32_t op = hr_operator(fmt::format("{}x", times).c_str(), "", stage);
    std::atomic<int64_t> cpu_ns = 0, off_ns = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < times * CPU_COUNT(&cpus); i++) {
      threads.emplace_back([&] {
        hr_thread_begin(stage);
        hr_enter(op);
        const int64_t wall = MonotonicNs(), cpu = ThreadCpuNs();
        Spin(100'000'000 / times);
        const int64_t used = ThreadCpuNs() - cpu;
        off_ns += MonotonicNs() - wall - used;
        cpu_ns += used;
        hr_leave();
        hr_thread_end();
      });
    }
    for (auto& thread : threads) thread.join();
    const CollectedWaits seen = Read();
    auto segment = account::AccountSegment::Attach(getpid());
    ASSERT_TRUE(segment);
    const auto snapshot = segment->Read(true, {});
    const double blocked = seen.Sum("off_cpu_ns", op, "");
    const double runnable = seen.Sum("runnable_ns", op, "");
    const double c = static_cast<double>(snapshot.operators.at(op).busy_ns) - blocked - runnable;
    const auto cpu = static_cast<double>(cpu_ns);
    EXPECT_NEAR(c, cpu, 0.02 * cpu + 2e6 + StolenNsMeanwhile()) << times;
    EXPECT_NEAR(blocked + runnable, static_cast<double>(off_ns),
                0.02 * static_cast<double>(off_ns) + 2e6 + StolenNsMeanwhile())
        << times;
  }
  hr_account_close();
}

// The kernel skips our programs now and then. A thread that was switched in without them and keeps
// running has the wait that the scheduler's own sum has, and not all of the time since.
TEST_F(OffCpu, AThreadWhoseSwitchInWasSkippedDoesNotWaitOn) {
  struct State {  // the first members of hr_thread_state
    uint32_t tgid, tid;
    uint64_t credits[24];
    uint64_t off_since_ns, woken_ns, on_cpu_ns, on_since_ns;
    uint32_t word, cause, timed_out, blocked;
    uint64_t wakeups_since_ns, wakeups_seen_and_one_in, blocked_ns, ran_ns, delayed_ns;
  };
  Start();
  if (IsSkipped()) return;
  Program other("fault");  // has the same map of threads
  const Availability available = other.Load(host_, target_);
  if (!available.usable()) GTEST_SKIP() << "no BPF here: " << available.reason;
  const int threads = other.map_fd("threads");
  bpf_map_info info = {};
  uint32_t size = sizeof info;
  ASSERT_EQ(bpf_obj_get_info_by_fd(threads, &info, &size), 0);
  // Of that thread alone: this one may well wait for the other core.
  constexpr const char* kName = "keeps-its-core";
  const auto of_thread = [&](const std::string& metric) {
    double sum = 0;
    for (const auto& [key, value] : Read().values) {
      if (key.first == metric && key.second.thread == kName) sum += value;
    }
    return sum;
  };
  const auto waited = [&] { return of_thread("runnable_ns"); };
  // Where it loses its core meanwhile, its state is put right by that: then once more.
  bool stayed = false;
  for (int attempt = 0; attempt < 20 && !stayed; attempt++) {
    std::atomic<bool> end = false;
    std::atomic<uint32_t> tid = 0;
    std::thread runs([&] {
      pthread_setname_np(pthread_self(), kName);
      SleepUntilNs(MonotonicNs() + 1'000'000);
      const sched_param first = {.sched_priority = 1};
      sched_setscheduler(0, SCHED_FIFO, &first);  // others would take its core
      tid = static_cast<uint32_t>(gettid());
      while (!end) {
      }
    });
    while (tid == 0) SleepUntilNs(MonotonicNs() + 1'000'000);
    const uint32_t key = tid;
    std::vector<uint8_t> value(info.value_size);
    const auto state = [&] {
      State read = {};
      EXPECT_EQ(bpf_map_lookup_elem(threads, &key, value.data()), 0);
      std::memcpy(&read, value.data(), sizeof read);
      EXPECT_EQ(read.tid, key);
      return read;
    };
    const double before = waited();
    State skipped = state();
    skipped.off_since_ns = skipped.woken_ns = static_cast<uint64_t>(MonotonicNs());
    skipped.on_since_ns = 0;
    skipped.delayed_ns -= std::min<uint64_t>(skipped.delayed_ns, 1'000);
    std::memcpy(value.data(), &skipped, sizeof skipped);
    ASSERT_EQ(bpf_map_update_elem(threads, &key, value.data(), BPF_EXIST), 0);
    SleepUntilNs(MonotonicNs() + 30'000'000);
    const double after = waited();
    stayed = state().off_since_ns == skipped.off_since_ns && state().on_since_ns == 0;
    if (stayed) {
      EXPECT_LT(after - before, 15e6);
    }
    end = true;
    runs.join();
  }
  if (!stayed) GTEST_SKIP() << "no thread kept its core for 30 ms";
  EXPECT_GT(of_thread("on_cpu_ns"), 15e6) << "that thread was not seen";
}

TEST_F(OffCpu, StopLeavesNothingInTheKernel) {
  Program program("offcpu");
  target_.accounts = {};
  const Availability available = program.Load(host_, target_);
  if (!available.usable()) GTEST_SKIP() << "no BPF here: " << available.reason;
  std::vector<uint32_t> programs, maps;
  for (const char* function : {"on_switch", "on_waking"}) {
    bpf_prog_info info = {};
    uint32_t size = sizeof info;
    ASSERT_EQ(bpf_obj_get_info_by_fd(program.program_fd(function), &info, &size), 0);
    programs.push_back(info.id);
  }
  for (const char* map : {"targets", "threads", "off_cpu"}) {
    bpf_map_info info = {};
    uint32_t size = sizeof info;
    ASSERT_EQ(bpf_obj_get_info_by_fd(program.map_fd(map), &info, &size), 0);
    maps.push_back(info.id);
  }
  program.Unload();
  const auto remains = [](int fd) {
    if (fd >= 0) close(fd);
    return fd >= 0;
  };
  // The kernel frees them after a grace period.
  for (int i = 0; i < 300; i++) {
    bool left = false;
    for (const uint32_t id : programs) left = left || remains(bpf_prog_get_fd_by_id(id));
    for (const uint32_t id : maps) left = left || remains(bpf_map_get_fd_by_id(id));
    if (!left) return;
    SleepUntilNs(MonotonicNs() + 10'000'000);
  }
  FAIL() << "programs or maps are left in the kernel";
}

TEST_F(OffCpu, WithoutPrivilegeItIsUnavailableAndSaysWhy) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
    const Availability available = probe_->Start(host_, target_);
    const std::string text = available.usable() ? "usable" : available.reason + "|" + available.fix;
    _exit(write(fds[1], text.data(), text.size()) < 0);
  }
  close(fds[1]);
  char text[512] = "";
  ASSERT_GT(read(fds[0], text, sizeof text - 1), 0);
  close(fds[0]);
  waitpid(child, nullptr, 0);
  EXPECT_NE(std::string(text).find("CAP_BPF"), std::string::npos) << text;
}

TEST_F(OffCpu, ATinyMapLosesAloud) {
  setenv("HEADRACE_BPF_MAP_ENTRIES", "1", 1);
  Start();
  unsetenv("HEADRACE_BPF_MAP_ENTRIES");
  if (IsSkipped()) return;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([] {
      for (int j = 0; j < 20; j++) usleep(1000);
    });
  }
  for (auto& thread : threads) thread.join();
  const CollectedWaits seen = Read();
  int64_t lost = 0;
  for (const auto& [what, count] : seen.lost) lost += count;
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace headrace::probes::bpf
