// Off-CPU time against what threads themselves know of their sleeps, locks and waits.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/account/account_segment.h"
#include "probes/bpf/offcpu.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {
namespace {

struct Collected final : Sink {
  std::map<std::pair<std::string, Labels>, double> values;
  std::map<std::string, int64_t> lost;
  void Add(const Measurement& m) override { values[{std::string(m.metric), m.labels}] += m.value; }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view what, int64_t count, std::optional<int64_t>) override {
    lost[std::string(what)] += count;
  }
  // Sum over everything that matches.
  double Sum(const std::string& metric, std::optional<uint32_t> operator_index,
             const std::string& cause, int64_t pid = 0) const {
    double sum = 0;
    for (const auto& [key, value] : values) {
      if (key.first != metric || key.second.operator_index != operator_index) continue;
      if (!cause.empty() && key.second.cause != cause) continue;
      if (pid != 0 && key.second.pid != pid) continue;
      sum += value;
    }
    return sum;
  }
};

int64_t ThreadCpuNs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}
void Spin(int64_t ns) {
  for (const int64_t begin = ThreadCpuNs(); ThreadCpuNs() - begin < ns;) {
  }
}

class OffCpu : public testing::Test {
 protected:
  void SetUp() override {
    const ProbeInfo* info = Registry<ProbeInfo>::Global().Find("off-CPU time");
    ASSERT_NE(info, nullptr);
    probe_ = info->make();
    target_.root_pid = getpid();
    target_.pids = {getpid()};
  }
  void Start() {
    target_.accounts = {{getpid(), FindSegmentAddress(host_, getpid())}};
    const Availability available = probe_->Start(host_, target_);
    if (!available.usable()) GTEST_SKIP() << "no BPF here: " << available.reason;
  }
  Collected Read() {
    Collected sink;
    probe_->Read(sink);
    return sink;
  }

  Host host_;
  Target target_;
  std::unique_ptr<Probe> probe_;
};

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
  const Collected seen = Read();
  // Blocked and runnable together are what the thread saw, but for the switches themselves.
  const auto near = [&](uint32_t op, const char* cause, int64_t expected) {
    const double blocked = seen.Sum("off_cpu_ns", op, cause);
    const double runnable = seen.Sum("runnable_ns", op, "");
    EXPECT_NEAR(blocked + runnable, static_cast<double>(expected),
                0.02 * static_cast<double>(expected) + 1e6)
        << cause;
    EXPECT_GT(blocked, 0) << cause;
  };
  near(sleeps, "sleep", slept);
  near(locks, "lock", locked);
  near(pipes, "pipe", piped);
  EXPECT_LT(seen.Sum("off_cpu_ns", spins, ""), 1e6);

  auto segment = account::AccountSegment::Attach(getpid());
  ASSERT_TRUE(segment);
  const auto snapshot = segment->Read(true, {});
  const auto& splits = dynamic_cast<SplitSource&>(*probe_).Splits();
  double on_cpu = 0;
  for (const OperatorSplit& split : splits) {
    const auto& o = snapshot.operators.at(split.operator_index);
    EXPECT_GE(o.busy_ns + 1'000'000, split.blocked_ns + split.runnable_ns) << o.name;
    on_cpu += static_cast<double>(o.busy_ns - split.blocked_ns - split.runnable_ns);
  }
  EXPECT_NEAR(on_cpu, static_cast<double>(cpu), 0.1 * static_cast<double>(cpu));
  EXPECT_EQ(seen.lost.at("offcpu: off cpu periods"), 0);
  EXPECT_EQ(seen.lost.at("follow: threads"), 0);
  hr_account_close();
}

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
  const Collected seen = Read();
  EXPECT_GE(seen.Sum("off_cpu_ns", std::nullopt, "sleep", child), 49e6);
  EXPECT_GE(seen.Sum("off_cpu_ns", std::nullopt, "child", child), 25e6);
  EXPECT_GE(seen.Sum("off_cpu_ns", std::nullopt, "child", getpid()), 70e6);
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
  const Collected seen = Read();
  int64_t lost = 0;
  for (const auto& [what, count] : seen.lost) lost += count;
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace headrace::probes::bpf
