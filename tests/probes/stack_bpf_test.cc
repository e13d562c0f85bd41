#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/bpf/followed.h"
#include "probes/stack/cpu_stacks.h"
#include "probes/stack/off_cpu_stacks.h"
#include "tests/probes/stack/target.h"

namespace headrace::probes::stack {
namespace {

Target AccountedTargetOf(const TargetProcess& process) {
  Target target = TargetOf(process);
  if (const uint64_t address = bpf::FindSegmentAddress(Host(), process.pid())) {
    target.accounts = {{process.pid(), address}};
  }
  return target;
}

// Ten times; returns how long it took, in nanoseconds.
double ReadForASecond(Probe& probe, RecordingSink& sink) {
  const int64_t begin = MonotonicNs();
  for (int i = 0; i < 10; ++i) {
    usleep(100'000);
    probe.Read(sink);
  }
  return static_cast<double>(MonotonicNs() - begin);
}

class CpuStacksOf : public testing::TestWithParam<const char*> {};

TEST_P(CpuStacksOf, OperatorsHaveTheirSharesAndTheirFunctions) {
  const Host host;
  const Availability found = CpuStacks::Check(host);
  if (!found.usable()) GTEST_SKIP() << found.reason;
  TargetProcess process("spin", GetParam());
  ASSERT_TRUE(process.ready());
  const Target target = AccountedTargetOf(process);
  ASSERT_EQ(target.accounts.size(), 1u);
  CpuStacks probe(999);
  const Availability started = probe.Start(host, target);
  ASSERT_EQ(started.state, Availability::State::kOk) << started.reason;
  RecordingSink sink;
  ReadUntil(probe, sink, 700);
  ASSERT_GE(sink.Samples(), 500) << sink.Text();
  for (uint32_t i = 0; i < 4; ++i) {
    const int percent = 10 * (static_cast<int>(i) + 1);
    EXPECT_NEAR(sink.OperatorShare(i), percent / 100.0, 0.075) << sink.Text();
    double own = 0, others = 0;
    for (const auto& [key, s] : sink.stacks) {
      if (s.operator_index != i || s.folded.find("hot_") == std::string::npos) continue;
      const bool mine = s.folded.find("main;run_spin;middle_" + std::to_string(percent) + ";hot_" +
                                      std::to_string(percent)) != std::string::npos;
      (mine ? own : others) += static_cast<double>(s.samples);
    }
    // The word is read at the instant of the sample: no operator gets another's function.
    EXPECT_GT(own, 0) << i;
    EXPECT_EQ(others, 0) << i << "\n" << sink.Text();
  }
  EXPECT_LT(sink.Share("[truncated]"), 0.1) << sink.Text();
  for (const auto& [what, n] : sink.lost) EXPECT_EQ(n.first, 0) << what;
  probe.Stop();
}

INSTANTIATE_TEST_SUITE_P(FramePointers, CpuStacksOf, testing::Values("with", "without"),
                         [](const auto& info) { return std::string(info.param); });

TEST(OffCpuStacks, FindsWhereThreadsSleepAndWaitForLocks) {
  const Host host;
  const Availability found = OffCpuStacks::Check(host);
  if (!found.usable()) GTEST_SKIP() << found.reason;
  TargetProcess process("sleep");
  ASSERT_TRUE(process.ready());
  const Target target = AccountedTargetOf(process);
  OffCpuStacks probe;
  ASSERT_TRUE(probe.Start(host, target).usable());
  RecordingSink sink;
  const double elapsed = ReadForASecond(probe, sink);
  double napped = 0, locked = 0;
  for (const auto& [key, s] : sink.stacks) {
    const auto ns = static_cast<double>(s.time_ns);
    if (s.folded.starts_with("napper;[sleep];") &&
        s.folded.find("napper;take_a_nap") != std::string::npos) {
      napped += ns;
    }
    if (s.folded.starts_with("locked;[lock];") &&
        s.folded.find("locked;want_lock") != std::string::npos) {
      locked += ns;
    }
  }
  // Both threads do nothing else; the first periods begin with the first switch. Of naps of 5 ms
  // one in four is taken: some 50 stacks, fewer where other programs keep the threads from their
  // CPU.
  EXPECT_GT(napped, 0.5 * elapsed) << sink.Text();
  EXPECT_LT(napped, 1.4 * elapsed) << sink.Text();
  EXPECT_GT(locked, 0.5 * elapsed) << sink.Text();
  EXPECT_LT(locked, 1.4 * elapsed) << sink.Text();
}

// Two programs see every switch, and the one that comes first leaves the other a note.
TEST(OffCpuStacks, AreTheSameBesideTheTimesInEitherOrder) {
  const Host host;
  const Availability found = OffCpuStacks::Check(host);
  if (!found.usable()) GTEST_SKIP() << found.reason;
  for (const bool times_come_first : {true, false}) {
    SCOPED_TRACE(times_come_first);
    TargetProcess process("sleep");
    ASSERT_TRUE(process.ready());
    const Target target = AccountedTargetOf(process);
    const std::unique_ptr<Probe> times = Registry<ProbeInfo>::Global().Find("off-CPU time")->make();
    OffCpuStacks probe;
    if (times_come_first) {
      ASSERT_TRUE(times->Start(host, target).usable());
      usleep(200'000);  // what blocks meanwhile has no stack, and is not counted
    }
    ASSERT_TRUE(probe.Start(host, target).usable());
    const int64_t begin = MonotonicNs();
    if (!times_come_first) {
      ASSERT_TRUE(times->Start(host, target).usable());
    }
    RecordingSink sink;
    ReadForASecond(probe, sink);
    const auto elapsed = static_cast<double>(MonotonicNs() - begin);
    double napped = 0, unknown = 0;
    for (const auto& [key, s] : sink.stacks) {
      const bool is_named = s.folded.find("napper;take_a_nap") != std::string::npos;
      if (is_named) napped += static_cast<double>(s.time_ns);
      if (s.folded.find("[other]") != std::string::npos) unknown += static_cast<double>(s.time_ns);
    }
    EXPECT_GT(napped, 0.5 * elapsed) << sink.Text();
    EXPECT_LT(napped, 1.4 * elapsed) << sink.Text();
    EXPECT_EQ(unknown, 0) << sink.Text();
  }
}

// As the time off a CPU says it: only the end of such a wait tells, which that probe sees.
TEST(OffCpuStacks, AWaitWhoseTimeRanOutIsASleep) {
  const Host host;
  const Availability found = OffCpuStacks::Check(host);
  if (!found.usable()) GTEST_SKIP() << found.reason;
  TargetProcess process("sleep");
  ASSERT_TRUE(process.ready());
  const Target target = AccountedTargetOf(process);
  const std::unique_ptr<Probe> times = Registry<ProbeInfo>::Global().Find("off-CPU time")->make();
  ASSERT_TRUE(times->Start(host, target).usable());
  OffCpuStacks probe;
  ASSERT_TRUE(probe.Start(host, target).usable());
  RecordingSink sink;
  ReadForASecond(probe, sink);
  double slept = 0, all = 0;
  for (const auto& [key, s] : sink.stacks) {
    if (s.folded.find("timed;wait_in_vain") == std::string::npos) continue;
    all += static_cast<double>(s.time_ns);
    if (s.folded.starts_with("timed;[sleep];")) slept += static_cast<double>(s.time_ns);
  }
  EXPECT_GT(all, 0.5e9) << sink.Text();
  EXPECT_GT(slept, 0.9 * all) << sink.Text();
}

TEST(CpuStacks, WhatTinyMapsLoseIsCounted) {
  const Host host;
  if (!CpuStacks::Check(host).usable()) GTEST_SKIP() << CpuStacks::Check(host).reason;
  TargetProcess process("spin");
  ASSERT_TRUE(process.ready());
  const Target target = AccountedTargetOf(process);
  StackProgramOptions options;
  options.max_stacks = 2;
  options.max_counts = 2;
  CpuStacks probe(999, options);
  ASSERT_TRUE(probe.Start(host, target).usable());
  RecordingSink sink;
  int64_t lost = 0;
  for (int i = 0; i < 20 && lost == 0; ++i) {
    usleep(100'000);
    probe.Read(sink);
    lost = 0;
    for (const auto& [what, n] : sink.lost) lost += n.first;
  }
  EXPECT_GT(lost, 0);
}

TEST(CpuStacks, AFixtureIsUnavailableWithAReason) {
  const Host host("/nonexistent");
  for (const Availability& found : {CpuStacks::Check(host), OffCpuStacks::Check(host)}) {
    EXPECT_EQ(found.state, Availability::State::kUnavailable);
    EXPECT_FALSE(found.reason.empty());
    EXPECT_FALSE(found.fix.empty());
  }
}

TEST(CpuStacks, OrdinaryUsersGetAReason) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(10);
    const Host host;
    for (const Availability& found : {CpuStacks::Check(host), OffCpuStacks::Check(host)}) {
      if (found.usable() || found.reason.empty() || found.fix.empty()) _exit(11);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace headrace::probes::stack
