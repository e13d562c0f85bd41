#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "probes/account/account_segment.h"
#include "probes/account/scope.h"
#include "probes/process.h"
#include "tests/seed.h"

namespace headrace::account {
namespace {

constexpr int64_t kMs = 1'000'000;

void Spin(int64_t ns) {
  const int64_t end = MonotonicNs() + ns;
  while (MonotonicNs() < end) {
  }
}
void Sleep(int64_t ns) { SleepUntilNs(MonotonicNs() + ns); }

class Account : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/headrace-account-XXXXXX";
    folder_ = mkdtemp(folder);
    setenv("HEADRACE_ACCOUNT_DIR", folder_.c_str(), 1);
    unsetenv("HEADRACE_ACCOUNTS");
    unsetenv("HEADRACE_ACCOUNT_LEVEL");
    ASSERT_EQ(hr_account_open("test"), 0);
  }
  void TearDown() override {
    hr_account_close();
    std::filesystem::remove_all(folder_);
  }
  SegmentSnapshot Read(AccountSegment& segment) {
    return segment.Read(true, [](int64_t tid) -> std::optional<ThreadTime> {
      const auto time = probes::ReadTaskTime(getpid(), tid);
      if (!time) return std::nullopt;
      return ThreadTime{time->on_cpu_ns, time->runnable_ns};
    });
  }
  SegmentSnapshot Read() {
    auto segment = AccountSegment::Attach(getpid());
    return Read(*segment);
  }
  std::string folder_;
};

TEST_F(Account, NestedOperatorStopsItsParentsClock) {
  const uint32_t stage = hr_stage("s", 1, 0);
  const uint32_t outer = hr_operator("outer", "a", stage);
  const uint32_t inner = hr_operator("inner", "b", stage);
  hr_thread_begin(stage);
  const int64_t begin = MonotonicNs();
  {
    OperatorScope a(outer);
    Sleep(20 * kMs);
    {
      OperatorScope b(inner);
      Sleep(40 * kMs);
      b.Done(7, 100, 200);
    }
    Sleep(20 * kMs);
  }
  const int64_t elapsed = MonotonicNs() - begin;  // sleeps last as long as the machine likes
  const SegmentSnapshot s = Read();
  ASSERT_EQ(s.operators.size(), 2u);
  EXPECT_EQ(s.operators[0].name, "outer");
  EXPECT_EQ(s.operators[0].kind, "a");
  EXPECT_GE(s.operators[0].busy_ns, 40 * kMs - kMs / 100);
  EXPECT_LE(s.operators[0].busy_ns, elapsed - 40 * kMs + kMs / 100);
  EXPECT_GE(s.operators[1].busy_ns, 40 * kMs - kMs / 100);
  EXPECT_LE(s.operators[1].busy_ns, elapsed - 40 * kMs + kMs / 100);
  EXPECT_EQ(s.operators[1].rows, 7);
  EXPECT_EQ(s.operators[1].in_bytes, 100);
  EXPECT_EQ(s.operators[1].out_bytes, 200);
  EXPECT_EQ(s.operators[1].completions, 1);
}

TEST_F(Account, TimesOfAThreadSumUpToItsLifetime) {
  const uint32_t stage = hr_stage("s", 1, 0);
  const uint32_t op = hr_operator("op", "", stage);
  const uint32_t lock = hr_resource("lock", HR_LOCK, 1);
  std::thread([&] {
    ThreadScope member(stage);
    Sleep(5 * kMs);
    for (int i = 0; i < 5; i++) {
      {
        WaitScope wait(op, HR_WAIT_IN);
        Sleep(4 * kMs);
      }
      OperatorScope scope(op);
      Spin(3 * kMs);
      {
        ResourceScope held(lock);
        Sleep(2 * kMs);
        held.Held();
        Sleep(1 * kMs);
      }
      {
        WaitScope wait(op, HR_WAIT_OUT);
        Sleep(2 * kMs);
      }
    }
  }).join();
  const SegmentSnapshot s = Read();
  const auto& o = s.operators[0];
  const auto& stage_row = s.stages[0];
  EXPECT_EQ(stage_row.threads, 1);
  EXPECT_EQ(stage_row.live_threads, 0);
  const int64_t sum = o.busy_ns + o.wait_in_ns + o.wait_out_ns + stage_row.unattributed_ns;
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(stage_row.lifetime_ns), 1e4);
  EXPECT_GE(o.wait_in_ns, 20 * kMs - kMs / 10);
  EXPECT_GE(o.wait_out_ns, 10 * kMs - kMs / 10);
  EXPECT_GE(o.lock_wait_ns, 10 * kMs - kMs / 10);
  EXPECT_GE(stage_row.unattributed_ns, 5 * kMs - kMs / 10);
  EXPECT_EQ(s.resources[0].acquisitions, 5);
  EXPECT_NEAR(static_cast<double>(s.resources[0].wait_ns), static_cast<double>(o.lock_wait_ns),
              1e4);
  EXPECT_GE(s.resources[0].hold_ns, 5 * kMs - kMs / 10);
}

TEST_F(Account, CpuClockSplitsWorkFromSleep) {
  const uint32_t stage = hr_stage("s", 1, 0);
  const uint32_t spin = hr_operator("spin", "", stage), sleep = hr_operator("sleep", "", stage);
  int64_t cpu_ns = 0;
  std::thread([&] {
    ThreadScope member(stage);
    const int64_t begin = ThreadCpuNs();
    for (int i = 0; i < 20; i++) {
      {
        OperatorScope scope(spin);
        Spin(4 * kMs);
      }
      {
        OperatorScope scope(sleep);
        Sleep(4 * kMs);
      }
    }
    cpu_ns = ThreadCpuNs() - begin;
  }).join();
  const SegmentSnapshot s = Read();
  // The spinning thread may be preempted: what counts is that its CPU time is all found again.
  EXPECT_NEAR(static_cast<double>(*s.operators[0].on_cpu_ns), static_cast<double>(cpu_ns),
              0.05 * static_cast<double>(cpu_ns) + 2e6);
  EXPECT_LT(*s.operators[1].on_cpu_ns, 6 * kMs);
  EXPECT_NEAR(static_cast<double>(*s.stages[0].on_cpu_ns), static_cast<double>(cpu_ns), 3e6);
}

// Whatever the operators do in a window, what each of them had of its CPU time lies between the
// bounds; of an operator alone in it the bounds meet.
TEST(AccountBounds, HoldWhatEachOperatorHadOfTheWindow) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) {
    return std::uniform_int_distribution<uint64_t>(0, n)(random);
  };
  for (int window = 0; window < 20'000; window++) {
    constexpr int kMost = 5;
    uint64_t inside[kMost] = {}, used[kMost] = {}, wait = 0, cpu = 0, length = 0;
    const int operators = 1 + static_cast<int>(below(kMost - 1));
    for (int i = 0; i < operators; i++) {
      inside[i] = below(3) == 0 ? 0 : below(200'000);
      const uint64_t kind = below(3);  // sleeps, computes, or does both
      used[i] = kind == 0 ? 0 : kind == 1 ? inside[i] : below(inside[i]);
      cpu += used[i];
      length += inside[i];
    }
    if (below(1)) wait = below(100'000);
    const uint64_t waiting_cpu = below(wait);
    for (int i = 0; i < operators; i++) {
      uint64_t low = 0, high = 0;
      hr_cpu_bounds_(cpu + waiting_cpu, length + wait, inside[i], &low, &high);
      ASSERT_LE(low, used[i]) << "window " << window << " operator " << i;
      ASSERT_GE(high, used[i]) << "window " << window << " operator " << i;
      ASSERT_LE(high, inside[i]);
      const bool alone = operators == 1 && wait == 0, all_on_cpu = cpu == length && wait == 0;
      ASSERT_TRUE(!alone || low == high);
      ASSERT_TRUE(!all_on_cpu || low == inside[i]);
      ASSERT_TRUE(cpu + waiting_cpu > 0 || high == 0);
    }
  }
}

// Operators of unlike kind on one thread, which keeps a ledger of its own.
class Unlike {
 public:
  Unlike(const char* stage, int64_t sleep_ns, int64_t spin_ns)
      : stage_(hr_stage(stage, 1, 0)), sleep_ns_(sleep_ns), spin_ns_(spin_ns) {
    const char* names[] = {"sleeps", "computes", "both"};
    for (int i = 0; i < 3; i++) ids_[i] = hr_operator(names[i], "", stage_);
  }
  void Run(int rounds) {
    std::thread([&] {
      prctl(PR_SET_TIMERSLACK, 1);
      ThreadScope member(stage_);
      for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 3; i++) {
          OperatorScope scope(ids_[i]);
          const int64_t begin = ThreadCpuNs();
          if (i != 0) Spin(spin_ns_);
          if (i != 1) Nap();
          used_[i] += ThreadCpuNs() - begin;
        }
      }
    }).join();
  }
  uint32_t id(int i) const { return ids_[i]; }
  int64_t used_ns(int i) const { return used_[i]; }

 private:
  void Nap() const {
    const timespec time = {0, sleep_ns_};
    nanosleep(&time, nullptr);
  }
  uint32_t stage_, ids_[3];
  int64_t sleep_ns_, spin_ns_;
  int64_t used_[3] = {};
};

TEST_F(Account, LongVisitsOfUnlikeOperatorsAreToldApart) {
  Unlike unlike("slow", kMs * 2 / 5, kMs * 2 / 5);
  unlike.Run(300);
  const SegmentSnapshot s = Read();
  for (int i = 0; i < 3; i++) {
    const auto& op = s.operators[unlike.id(i)];
    SCOPED_TRACE(op.name);
    const double used = static_cast<double>(unlike.used_ns(i));
    const double allowed = 0.05 * static_cast<double>(op.busy_ns);
    EXPECT_NEAR(static_cast<double>(*op.on_cpu_ns), used, allowed);
    EXPECT_NEAR(static_cast<double>(*op.on_cpu_low_ns), used, allowed);
    EXPECT_NEAR(static_cast<double>(*op.on_cpu_high_ns), used, allowed);
  }
}

TEST_F(Account, ShortVisitsOfUnlikeOperatorsHaveBoundsThatHoldTheTruth) {
  Unlike unlike("fast", 1'000, 2'000);
  unlike.Run(10'000);
  const SegmentSnapshot s = Read();
  for (int i = 0; i < 3; i++) {
    const auto& op = s.operators[unlike.id(i)];
    SCOPED_TRACE(op.name);
    // What the ledger itself takes at the ends of a visit is the operator's, but not in the ledger.
    const int64_t allowed = 10'000 * int64_t{2'000};
    EXPECT_LE(*op.on_cpu_low_ns, unlike.used_ns(i) + allowed);
    EXPECT_GE(*op.on_cpu_high_ns, unlike.used_ns(i));
    EXPECT_LE(*op.on_cpu_low_ns, *op.on_cpu_ns + 10'000);
    EXPECT_GE(*op.on_cpu_high_ns + 10'000, *op.on_cpu_ns);
    EXPECT_LE(*op.on_cpu_high_ns, op.busy_ns + op.busy_ns / 100);
  }
}

TEST_F(Account, ShortVisitsThatAllComputeAreToldApartAllTheSame) {
  const uint32_t stage = hr_stage("s", 1, 0);
  const uint32_t ids[] = {hr_operator("a", "", stage), hr_operator("b", "", stage)};
  std::vector<int64_t> widths;
  for (int attempt = 0; attempt < 5; attempt++) {  // another program may take the core
    const auto width = [&] {
      const SegmentSnapshot s = Read();
      int64_t sum = 0;
      for (const uint32_t id : ids) {
        const auto& op = s.operators[id];
        sum += *op.on_cpu_high_ns - *op.on_cpu_low_ns - op.busy_ns / 10;
      }
      return sum;
    };
    const int64_t before = width();
    std::thread([&] {
      ThreadScope member(stage);
      for (int i = 0; i < 20'000; i++) {
        OperatorScope scope(ids[i % 2]);
        Spin(2'000);
      }
    }).join();
    widths.push_back(width() - before);
    if (widths.back() < 0) return;
  }
  ADD_FAILURE() << "bounds a tenth of the busy time apart, at best by "
                << *std::min_element(widths.begin(), widths.end()) << " ns more";
}

// A program compiled with an account.h that kept no bounds.
TEST_F(Account, SegmentsWithoutBoundsAreReadWithoutThem) {
  const uint32_t stage = hr_stage("s", 1, 0);
  const uint32_t op = hr_operator("op", "", stage);
  std::thread([&] {
    OperatorScope scope(op);
    Spin(5 * kMs);
  }).join();
  EXPECT_TRUE(Read().operators[0].on_cpu_low_ns.has_value());
  hr_process_v1.segment->header.abi_minor = 0;
  const SegmentSnapshot s = Read();
  EXPECT_TRUE(s.operators[0].on_cpu_ns.has_value());
  EXPECT_FALSE(s.operators[0].on_cpu_low_ns.has_value());
  EXPECT_FALSE(s.operators[0].on_cpu_high_ns.has_value());
}

TEST_F(Account, WhatAThreadDoesNowIsSeenLive) {
  const uint32_t stage = hr_stage("s", 1, 0);
  const uint32_t op = hr_operator("stuck", "", stage), spins = hr_operator("spins", "", stage);
  std::atomic<bool> stop = false, ready = false;
  std::thread blocked([&] {
    ThreadScope member(stage);
    OperatorScope scope(op);
    ready = true;
    while (!stop) Sleep(kMs);
  });
  std::thread spinning([&] {
    ThreadScope member(stage);
    OperatorScope scope(spins);
    while (!stop) {
    }
  });
  while (!ready) Sleep(kMs);
  auto segment = AccountSegment::Attach(getpid());
  const SegmentSnapshot before = Read(*segment);
  Sleep(200 * kMs);
  SegmentSnapshot after = Read(*segment);
  const auto spun = [&] { return *after.operators[1].on_cpu_ns - *before.operators[1].on_cpu_ns; };
  for (int i = 0; i < 600 && spun() <= 60 * kMs; i++) {  // others may have the cores
    Sleep(100 * kMs);
    after = Read(*segment);
  }
  stop = true;
  blocked.join();
  spinning.join();
  EXPECT_GE(after.operators[0].busy_ns - before.operators[0].busy_ns, 199 * kMs);
  EXPECT_LT(*after.operators[0].on_cpu_ns - *before.operators[0].on_cpu_ns,
            (after.operators[0].busy_ns - before.operators[0].busy_ns) / 5);
  EXPECT_GT(spun(), 60 * kMs);
  ASSERT_EQ(after.threads.size(), 2u);
  bool found = false;
  for (const auto& thread : after.threads) found |= thread.current_operator == op;
  EXPECT_TRUE(found);
}

TEST_F(Account, EndedThreadsKeepTheirFigures) {
  const uint32_t stage = hr_stage("s", 2, 0);
  const uint32_t op = hr_operator("op", "", stage);
  auto segment = AccountSegment::Attach(getpid());
  int64_t last_rows = 0, last_lifetime = 0;
  for (int i = 0; i < 60; i++) {
    std::thread([&] {  // never calls hr_thread_begin or hr_thread_end
      OperatorScope scope(op);
      scope.Done(10, 1, 1);
      Spin(kMs / 10);
    })
        .join();
    const SegmentSnapshot s = Read(*segment);
    EXPECT_EQ(s.operators[0].rows, last_rows + 10);
    EXPECT_GE(s.stages[0].lifetime_ns, last_lifetime);
    last_rows = s.operators[0].rows;
    last_lifetime = s.stages[0].lifetime_ns;
  }
  const SegmentSnapshot s = Read(*segment);
  EXPECT_EQ(s.stages[0].threads, 60);
  EXPECT_EQ(s.operators[0].enters, 60);
}

TEST_F(Account, SnapshotsOfBusyThreadsNeverLoseTime) {
  const uint32_t stage = hr_stage("s", 2, 0);
  const uint32_t op = hr_operator("op", "", stage);
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++) {
    threads.emplace_back([&] {
      while (!stop) {  // joins and leaves while being read
        ThreadScope member(stage);
        for (int k = 0; k < 2000; k++) {
          OperatorScope scope(op);
        }
      }
    });
  }
  auto segment = AccountSegment::Attach(getpid());
  int64_t lifetime = 0, enters = 0;
  for (int i = 0; i < 300; i++) {
    const SegmentSnapshot s = Read(*segment);
    EXPECT_GE(s.operators[0].enters, enters) << i;
    lifetime = std::max(lifetime, s.stages[0].lifetime_ns);
    enters = s.operators[0].enters;
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  // A snapshot counts a leaving thread up to the instant of reading, the thread itself only up to
  // where it left: the difference is as long as each of the threads may be preempted in between.
  EXPECT_GE(Read(*segment).stages[0].lifetime_ns, lifetime - 3 * 20'000'000);
}

TEST_F(Account, LimitsAreCountedNotFatal) {
  const uint32_t stage = hr_stage("s", 1, 0);
  uint32_t last = 0;
  for (int i = 0; i < HR_MAX_OPERATORS + 44; i++) {
    last = hr_operator(("op" + std::to_string(i)).c_str(), "k", stage);
  }
  EXPECT_EQ(last, HR_NONE);
  hr_enter(last);
  hr_leave();
  hr_leave();  // one too many
  hr_done(last, 1, 1, 1, 1);
  for (int i = 0; i < HR_MAX_DEPTH + 5; i++) hr_enter(0);
  for (int i = 0; i < HR_MAX_DEPTH + 5; i++) hr_leave();
  for (int i = 0; i < 70; i++) {
    hr_stage(("s" + std::to_string(i)).c_str(), 1, 0);
    hr_queue(("q" + std::to_string(i)).c_str(), 0, 0, 1);
    hr_resource(("r" + std::to_string(i)).c_str(), HR_LOCK, 1);
  }
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0;
  bool go = false;
  std::vector<std::thread> threads;
  const int num_threads = HR_MAX_THREADS + 8;
  for (int i = 0; i < num_threads; i++) {
    threads.emplace_back([&] {
      hr_enter(0);
      std::unique_lock lock(mutex);
      waiting++;
      changed.notify_all();
      changed.wait(lock, [&] { return go; });
      hr_leave();
    });
  }
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return waiting == num_threads; });
    go = true;
    changed.notify_all();
  }
  for (auto& thread : threads) thread.join();
  std::map<std::string, int64_t> losses;
  for (const auto& loss : Read().losses) losses[loss.what] = loss.count;
  EXPECT_EQ(losses["operators"], 44);
  EXPECT_EQ(losses["stages"], 70 + 1 - HR_MAX_STAGES);
  EXPECT_EQ(losses["queues"], 70 - HR_MAX_QUEUES);
  EXPECT_EQ(losses["resources"], 70 - HR_MAX_RESOURCES);
  EXPECT_EQ(losses["threads"], num_threads + 1 - HR_MAX_THREADS);
  EXPECT_EQ(losses["nested operators"], 5);
}

TEST_F(Account, ForkedChildDetaches) {
  const uint32_t stage = hr_stage("s", 1, 0);
  const uint32_t op = hr_operator("op", "", stage);
  hr_enter(op);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 1000; i++) {
      hr_enter(op);
      hr_done(op, 1, 1, 1, 1);
      hr_leave();
    }
    const bool own = hr_account_open("child") == 0 && AccountSegment::Attach(getpid()).has_value();
    hr_account_close();
    exit(own ? 0 : 1);  // runs atexit handlers: the parent's segment must stay
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  hr_leave();
  const SegmentSnapshot s = Read();
  EXPECT_EQ(s.operators[0].enters, 1);
  EXPECT_EQ(s.operators[0].rows, 0);
}

TEST_F(Account, QueueGaugesAreTimeWeighted) {
  const uint32_t a = hr_stage("a", 1, 0), b = hr_stage("b", 1, 0);
  const uint32_t queue = hr_queue("q", a, b, 2);
  Sleep(20 * kMs);  // empty
  hr_queue_level(queue, 1);
  Sleep(20 * kMs);
  hr_queue_level(queue, 2);
  Sleep(40 * kMs);  // full, up to now
  const auto q = Read().queues[0];
  EXPECT_EQ(q.producer_stage, a);
  EXPECT_EQ(q.consumer_stage, b);
  EXPECT_EQ(q.puts, 2);
  EXPECT_EQ(q.gets, 0);
  const double observed = static_cast<double>(q.observed_ns);
  EXPECT_NEAR(static_cast<double>(q.empty_ns) / observed, 0.25, 0.1);
  EXPECT_NEAR(static_cast<double>(q.full_ns) / observed, 0.5, 0.12);
  EXPECT_NEAR(static_cast<double>(q.occupancy_ns) / static_cast<double>(q.capacity_ns), 0.625, 0.1);
}

TEST_F(Account, StepsAreTotalsAndRecords) {
  auto segment = AccountSegment::Attach(getpid());
  for (uint64_t i = 0; i < 10; i++) hr_step(100, 50, 8);
  SegmentSnapshot s = Read(*segment);
  EXPECT_EQ(s.steps_count, 10);
  EXPECT_EQ(s.step_rows, 80);
  EXPECT_EQ(s.step_wait_ns, 1000);
  ASSERT_EQ(s.steps.size(), 10u);
  EXPECT_EQ(s.steps[9].number, 9u);
  EXPECT_NEAR(static_cast<double>(s.steps[9].end_monotonic_ns), static_cast<double>(MonotonicNs()),
              1e9);
  for (int i = 0; i < HR_STEP_RECORDS + 100; i++) hr_step(1, 1, 1);
  s = Read(*segment);
  EXPECT_EQ(s.steps_count, HR_STEP_RECORDS + 110);
  EXPECT_EQ(s.steps.size(), static_cast<size_t>(HR_STEP_RECORDS));
  EXPECT_EQ(s.steps_overwritten, 100);
}

TEST_F(Account, ResourceHeldNowCountsLive) {
  const uint32_t stage = hr_stage("s", 1, 0);
  const uint32_t op = hr_operator("op", "", stage);
  const uint32_t device = hr_resource("disk", HR_DEVICE, 4);
  OperatorScope scope(op);
  ResourceScope resource(device);
  resource.Held();
  Sleep(30 * kMs);
  const auto r = Read().resources[0];
  EXPECT_EQ(r.kind, uint32_t{HR_DEVICE});
  EXPECT_EQ(r.servers, 4u);
  EXPECT_GE(r.hold_ns, 29 * kMs);
}

TEST_F(Account, ParallelismIsIntegratedOverTime) {
  const int64_t begin = MonotonicNs();
  const uint32_t stage = hr_stage("s", 1, 0);
  const int64_t declared = MonotonicNs();
  Sleep(30 * kMs);
  const int64_t before = MonotonicNs();
  hr_stage_parallelism(stage, 3);
  const int64_t after = MonotonicNs();
  Sleep(30 * kMs);
  const int64_t reading = MonotonicNs();
  const auto s = Read().stages[0];
  const int64_t read = MonotonicNs();
  EXPECT_EQ(s.parallelism, 3u);
  // How long the sleeps really were is the machine's affair; 1 ms for the two clocks' difference.
  EXPECT_GE(s.parallelism_ns, (before - declared) + 3 * (reading - after) - kMs);
  EXPECT_LE(s.parallelism_ns, (after - begin) + 3 * (read - before) + kMs);
}

TEST_F(Account, KilledProcessIsStillReadable) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    hr_account_open("victim");
    const uint32_t stage = hr_stage("s", 1, 0), op = hr_operator("op", "k", stage);
    hr_enter(op);
    hr_done(op, 1, 42, 0, 0);
    [[maybe_unused]] ssize_t n = write(fds[1], "x", 1);
    pause();
  }
  char x;
  ASSERT_EQ(read(fds[0], &x, 1), 1);
  auto segment = AccountSegment::Attach(child);
  ASSERT_TRUE(segment);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const SegmentSnapshot s = segment->Read(false, nullptr);
  EXPECT_EQ(segment->program(), "victim");
  EXPECT_FALSE(s.closed);
  EXPECT_EQ(s.operators[0].rows, 42);
}

TEST_F(Account, ClosingRemovesTheFileAndMarksIt) {
  auto segment = AccountSegment::Attach(getpid());
  hr_account_close();
  EXPECT_TRUE(segment->Read(true, nullptr).closed);
  EXPECT_FALSE(AccountSegment::Attach(getpid()));
  hr_enter(0);  // nothing happens
  hr_leave();
  ASSERT_EQ(hr_account_open("again"), 0);
  const uint32_t op = hr_operator("op", "", hr_stage("s", 1, 0));
  { OperatorScope scope(op); }
  EXPECT_EQ(Read().operators[0].enters, 1);
}

// Containers that share the folder number their processes alike.
TEST_F(Account, AnotherContainersSegmentStaysAndOursHasAnotherName) {
  hr_account_close();
  const std::string usual = folder_ + "/headrace." + std::to_string(getpid());
  hr_header other = {};
  other.magic = HR_ACCOUNT_MAGIC;
  other.pid = static_cast<uint32_t>(getpid());
  other.pid_namespace = 17;
  const int fd = open(usual.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(write(fd, &other, sizeof other), static_cast<ssize_t>(sizeof other));
  ASSERT_EQ(hr_account_open("second"), 0);
  const std::string second = fmt::format("{}.{}", usual, hr_pid_namespace_());
  const auto segment = AccountSegment::AttachAt(second);
  ASSERT_TRUE(segment);
  EXPECT_EQ(segment->program(), "second");
  hr_header still = {};
  ASSERT_EQ(pread(fd, &still, sizeof still, 0), static_cast<ssize_t>(sizeof still));
  EXPECT_EQ(std::memcmp(&still, &other, sizeof still), 0);
  hr_account_close();
  EXPECT_FALSE(std::filesystem::exists(second));
  EXPECT_TRUE(std::filesystem::exists(usual));

  // A segment of an unknown namespace is replaced once nobody writes it.
  other.pid_namespace = 0;
  ASSERT_EQ(pwrite(fd, &other, sizeof other, 0), static_cast<ssize_t>(sizeof other));
  ASSERT_EQ(hr_account_open("third"), 0);
  EXPECT_TRUE(AccountSegment::AttachAt(second)) << "it is still open for writing";
  hr_account_close();
  close(fd);
  ASSERT_EQ(hr_account_open("fourth"), 0);
  EXPECT_FALSE(AccountSegment::AttachAt(second));
  EXPECT_EQ(AccountSegment::AttachAt(usual)->program(), "fourth");
}

TEST_F(Account, FilesThatAreNotItsOwnAreNeitherFollowedNorReplaced) {
  hr_account_close();
  const std::string usual = folder_ + "/headrace." + std::to_string(getpid());
  std::filesystem::create_symlink(folder_ + "/victim", usual);
  ASSERT_EQ(hr_account_open("beside"), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/victim"));
  hr_account_close();
  std::filesystem::create_directory(fmt::format("{}.{}", usual, hr_pid_namespace_()));
  EXPECT_EQ(hr_account_open("nowhere"), -EEXIST);
}

// Its name may have been taken by a program with an older header.
TEST_F(Account, ClosingRemovesOnlyItsOwnFile) {
  const std::string usual = folder_ + "/headrace." + std::to_string(getpid());
  std::filesystem::remove(usual);
  std::ofstream(usual) << "another's";
  hr_account_close();
  EXPECT_TRUE(std::filesystem::exists(usual));
}

TEST(AccountOff, SwitchMakesEveryCallANoOp) {
  setenv("HEADRACE_ACCOUNTS", "off", 1);
  EXPECT_EQ(hr_account_open("test"), 0);
  EXPECT_EQ(hr_stage("s", 1, 0), HR_NONE);
  const uint32_t op = hr_operator("op", "", HR_NONE);
  {
    OperatorScope scope(op);
    scope.Done(1, 1, 1);
  }
  hr_step(1, 1, 1);
  hr_thread_begin(0);
  hr_thread_end();
  EXPECT_FALSE(AccountSegment::Attach(getpid()));
  unsetenv("HEADRACE_ACCOUNTS");
}

TEST(AccountOff, FolderThatCannotBeWrittenIsAnErrorNumber) {
  setenv("HEADRACE_ACCOUNT_DIR", "/nonexistent", 1);
  EXPECT_EQ(hr_account_open("test"), -ENOENT);
  unsetenv("HEADRACE_ACCOUNT_DIR");
}

// A hostile segment gives odd figures or an Error, never a crash.
TEST_F(Account, DamagedSegmentsAreSurvived) {
  const uint32_t stage = hr_stage("s", 1, 0), op = hr_operator("op", "", stage);
  hr_queue("q", stage, stage, 3);
  hr_resource("r", HR_LOCK, 1);
  hr_enter(op);
  hr_step(1, 2, 3);
  const std::string path = folder_ + "/headrace." + std::to_string(getpid());
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  ASSERT_EQ(good.size(), sizeof(hr_segment));
  const uint64_t seed = TestSeed(20261121);
  std::mt19937_64 random(seed);
  const std::string damaged_path = folder_ + "/damaged";
  int readable = 0;
  for (int round = 0; round < 150; round++) {
    std::string bytes = good;
    // The magic, version and size stay in most rounds, so that the damage is read at all.
    const size_t from = round % 8 == 0 ? 0 : 24;
    const size_t limit = round % 2 ? 4096 : offsetof(hr_segment, slots) + 2 * sizeof(hr_slot);
    for (int i = 0; i < (round % 3 ? 2000 : 40); i++) {
      bytes[from + random() % (limit - from)] = static_cast<char>(random());
    }
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    std::ofstream(damaged_path, std::ios::binary) << bytes;
    try {
      AccountSegment segment = AccountSegment::OpenFile(damaged_path);
      for (const bool alive : {true, false}) {
        const SegmentSnapshot s = segment.Read(alive, [](int64_t) { return ThreadTime{1, 1}; });
        for (const auto& o : s.operators) ASSERT_LT(o.stage, s.stages.size());
        for (const auto& t : s.threads) ASSERT_LT(t.stage, s.stages.size());
      }
      readable++;
      if (truncate(damaged_path.c_str(), static_cast<off_t>(random() % good.size())) == 0) {
        segment.Read(true, nullptr);  // it shrinks under the reader
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
    }
  }
  EXPECT_GT(readable, 20);
  hr_leave();
}

}  // namespace
}  // namespace headrace::account
