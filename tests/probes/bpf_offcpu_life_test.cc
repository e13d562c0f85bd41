// Off-CPU time of threads and processes that begin, execute another image, are stopped or end.
#include <bpf/bpf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "base/clock.h"
#include "probes/bpf/followed.h"
#include "probes/bpf/program.h"
#include "tests/probes/off_cpu_fixture.h"

namespace headrace::probes::bpf {
namespace {

TEST_F(OffCpu, FollowsChildrenFromTheFork) {
  Start();
  if (IsSkipped()) return;
  const pid_t child = fork();
  if (child == 0) {
    usleep(50'000);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      usleep(30'000);
      _exit(0);
    }
    int status;
    waitpid(grandchild, &status, 0);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  const CollectedWaits seen = Read();
  EXPECT_GE(seen.Sum("off_cpu_ns", std::nullopt, "sleep", child), 49e6);
  EXPECT_GE(seen.Sum("off_cpu_ns", std::nullopt, "child", child), 25e6);
  EXPECT_GE(seen.Sum("off_cpu_ns", std::nullopt, "child", getpid()), 70e6);
}

TEST_F(OffCpu, StoppedThreadsAreNotTakenForWaitingOnes) {
  // The first thread of one is stopped before the start, in a system call; the other's while it is
  // being measured.
  std::vector<pid_t> children;
  for (int i = 0; i < 2; i++) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      while (true) usleep(1000);
    }
    children.push_back(child);
  }
  const auto stop = [](pid_t pid) {
    int status = 0;
    return kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status);
  };
  EXPECT_TRUE(stop(children[0]));
  target_.root_pid = getpid();
  target_.pids = {getpid(), children[0], children[1]};
  const Availability available = probe_->Start(host_, target_);
  EXPECT_TRUE(stop(children[1]));
  usleep(100'000);
  const CollectedWaits first = Read();
  kill(children[0], SIGCONT);
  kill(children[1], SIGCONT);
  usleep(20'000);
  const CollectedWaits seen = Read();
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  if (!available.usable()) GTEST_SKIP() << "no BPF here: " << available.reason;
  for (const pid_t child : children) {
    EXPECT_GE(first.Sum("off_cpu_ns", std::nullopt, "stopped", child), 99e6);
    EXPECT_GE(seen.Sum("off_cpu_ns", std::nullopt, "stopped", child), 99e6);
    // SIGCONT ends no wait: who sends it feeds nobody.
    EXPECT_EQ(seen.Sum("wakeups_count", std::nullopt, "stopped", child), 0);
  }
  EXPECT_GT(seen.Sum("off_cpu_ns", std::nullopt, "sleep", children[0]), 0);
}

TEST_F(OffCpu, ThreadsOfOneGroupAreOneInTheKernel) {
  Program program("offcpu");
  target_.accounts = {};
  const Availability available = program.Load(host_, target_);
  if (!available.usable()) GTEST_SKIP() << "no BPF here: " << available.reason;
  const std::map<std::string, std::string> groups = {{"churn-12", "churn-0"},
                                                     {"churn-0", "churn-0"},
                                                     {"a1b29", "a1b0"},
                                                     {"12", "12"},
                                                     {"000000000000000", "000000000000000"},
                                                     {"x", "x"},
                                                     {"x7", "x0"},
                                                     {"9x", "9x"},
                                                     {"abcdefghijklmno", "abcdefghijklmno"},
                                                     {"abcdefghijklmn8", "abcdefghijklmn0"},
                                                     {"a12345678901234", "a0"},
                                                     {"\xc3\xa9"
                                                      "3",
                                                      "\xc3\xa9"
                                                      "0"},
                                                     {"io:/;@", "io:/;@"},
                                                     {"8/9:", "8/9:"}};
  std::vector<std::thread> threads;
  std::atomic<bool> done = false;
  for (const auto& [name, group] : groups) {
    threads.emplace_back([&done, name = name] {
      pthread_setname_np(pthread_self(), name.c_str());
      while (!done) usleep(1000);
    });
  }
  // A name is taken over at the first switch after it was given.
  std::map<std::string, std::string> seen;
  const auto known = [&] {
    return std::all_of(groups.begin(), groups.end(),
                       [&](const auto& entry) { return seen.contains(entry.first); });
  };
  for (int i = 0; i < 500 && !known(); i++) {
    usleep(10'000);
    program.ForEach("threads", [&](const Record&, const Record& state) {
      seen[state.Text("name")] = state.Text("comm");
    });
  }
  done = true;
  for (auto& thread : threads) thread.join();
  for (const auto& [name, group] : groups) EXPECT_EQ(seen[name], group) << name;
}

TEST_F(OffCpu, EndedThreadsKeepTheirTime) {
  Start();
  if (IsSkipped()) return;
  std::atomic<int64_t> cpu_ns = 0;
  for (int i = 0; i < 100; i += 4) {
    std::vector<std::thread> threads;
    for (int j = i; j < i + 4; j++) {
      threads.emplace_back([&, j] {
        pthread_setname_np(pthread_self(), fmt::format("churn-{}", j).c_str());
        Spin(2'000'000);
        cpu_ns += ThreadCpuNs();
      });
    }
    for (auto& thread : threads) thread.join();
  }
  const CollectedWaits seen = Read();
  double on_cpu = 0;
  int groups = 0;
  for (const auto& [key, value] : seen.values) {
    if (key.first != "on_cpu_ns" || key.second.thread.rfind("churn", 0) != 0) continue;
    on_cpu += value;
    ++groups;
  }
  EXPECT_EQ(groups, 1);  // numbers of threads are not part of their group's name
  EXPECT_NEAR(on_cpu, static_cast<double>(cpu_ns),
              0.02 * static_cast<double>(cpu_ns) + 10e6 + StolenNsMeanwhile());
}

TEST_F(OffCpu, AnExecByAnyThreadIsFollowed) {
  Start();
  if (IsSkipped()) return;
  const int64_t begin = MonotonicNs();
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] {
      Spin(5'000'000);
      execlp("sleep", "sleep", "0.05", nullptr);
      _exit(127);
    }).join();
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  usleep(50'000);  // the last switch comes after the exit; figures move to their last place then
  const auto lifetime = static_cast<double>(MonotonicNs() - begin);
  const CollectedWaits seen = Read();
  EXPECT_GE(seen.Sum("off_cpu_ns", std::nullopt, "sleep", child), 49e6);
  const double on_cpu = seen.Sum("on_cpu_ns", std::nullopt, "", child);
  std::string all;
  for (const auto& [key, value] : seen.values) {
    if (key.second.pid != child) continue;
    all +=
        fmt::format("{} '{}' {} {:.0f}\n", key.first, key.second.thread, key.second.cause, value);
  }
  for (const auto& [what, count] : seen.lost) all += fmt::format("lost {} {}\n", what, count);
  EXPECT_GE(on_cpu, 4e6) << all;
  EXPECT_LE(on_cpu, lifetime) << all;
}

TEST_F(OffCpu, TimeBeforeAnExecKeepsItsThreadsName) {
  Start();
  if (IsSkipped()) return;
  std::vector<pid_t> children;
  for (int i = 0; i < 10; i++) {
    const pid_t child = fork();
    if (child == 0) {
      pthread_setname_np(pthread_self(), "before-exec");
      usleep(30'000);
      execlp("sleep", "sleep", "0.03", nullptr);
      _exit(127);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  const CollectedWaits seen = Read();
  std::map<std::string, double> slept;
  for (const auto& [key, value] : seen.values) {
    if (key.first == "off_cpu_ns" && key.second.cause == "sleep" && key.second.pid != getpid()) {
      slept[key.second.thread] += value;
    }
  }
  // The sleep before the exec is credited after it.
  EXPECT_GE(slept["before-exec (main)"], 10 * 29.5e6);
  EXPECT_GE(slept["sleep (main)"], 10 * 29.5e6);
}

TEST_F(OffCpu, EndedProcessesKeepTheirTimeAndLeaveTheMaps) {
  Start();
  if (IsSkipped()) return;
  std::vector<pid_t> children;
  for (int i = 0; i < 50; i++) {
    const pid_t child = fork();
    if (child == 0) {
      usleep(3000);
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  const CollectedWaits before = Read();
  for (int i = 0; i < 3; i++) {  // ended ones are folded over two reads a second apart
    SleepUntilNs(MonotonicNs() + 1'050'000'000);
    Read();
  }
  const CollectedWaits after = Read();
  for (const pid_t child : children) {
    const double slept = before.Sum("off_cpu_ns", std::nullopt, "sleep", child);
    // The timer runs from the call on: a child that is preempted before it sleeps sleeps less.
    EXPECT_GE(slept + before.Sum("runnable_ns", std::nullopt, "", child), 2.9e6);
    EXPECT_EQ(after.Sum("off_cpu_ns", std::nullopt, "sleep", child), slept);
  }
  for (const auto& [key, value] : before.values) {
    if (key.first != "bpf_run_time_ns") {
      EXPECT_GE(after.values.at(key), value) << key.first;
    }
  }
}

// kernel.bpf_stats_enabled, while it lives; not `set` where that may not be changed.
class MeasuredForOthers {
 public:
  MeasuredForOthers() : before_(Host().ReadInteger(kPath).value_or(0)), set_(Write(1)) {}
  ~MeasuredForOthers() {
    if (set_) Write(before_);
  }
  bool set() const { return set_; }

 private:
  static constexpr const char* kPath = "/proc/sys/kernel/bpf_stats_enabled";
  static bool Write(int64_t value) {
    std::ofstream file(kPath);
    return static_cast<bool>(file << value << std::flush);
  }
  int64_t before_;
  bool set_;
};

// Of all threads of the machine, since it was started.
int64_t Switches() {
  std::ifstream file("/proc/stat");
  std::string word;
  int64_t number = 0;
  while (file >> word && word != "ctxt") {
  }
  file >> number;
  return number;
}

// Then a tenth of the time is not all that it measures: runs were said to be ten times as many.
TEST_F(OffCpu, CostsAreNotCarriedOnWhereTheKernelMeasuresAllTheTime) {
  const MeasuredForOthers measured;
  if (!measured.set()) GTEST_SKIP() << "kernel.bpf_stats_enabled cannot be set here";
  Start();
  if (IsSkipped()) return;
  const int64_t switches_before = Switches();
  double runs = 0;
  for (int i = 0; i < 70; i++) {
    for (int slept = 0; slept < 50; slept++) usleep(500);
    const CollectedWaits now = Read();
    for (const auto& [key, value] : now.values) {
      if (key.first == "bpf_runs_count" && key.second.cause == "offcpu/on_switch") runs = value;
    }
  }
  EXPECT_GT(runs, 0);
  EXPECT_LT(runs, 2.0 * static_cast<double>(Switches() - switches_before));
}

}  // namespace
}  // namespace headrace::probes::bpf
