#include <thread>

#include "base/clock.h"
#include "probes/stack/thread_stacks.h"
#include "tests/probes/stack/target.h"
#include "tests/sanitized.h"

namespace headrace::probes::stack {
namespace {

class ThreadStacksOf : public testing::TestWithParam<const char*> {};

TEST_P(ThreadStacksOf, KnownProgramHasKnownShares) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer makes some operators slower than others";
  const Host host;
  const Availability found = ThreadStacks::Check(host);
  if (!found.usable()) GTEST_SKIP() << found.reason;
  TargetProcess process("spin", GetParam());
  ASSERT_TRUE(process.ready());
  const Target target = TargetOf(process);
  ThreadStacksOptions options;
  options.frequency = 999;
  ThreadStacks probe(options);
  const Availability started = probe.Start(host, target);
  ASSERT_EQ(started.state, Availability::State::kDegraded) << started.reason;
  RecordingSink sink;
  // A process is unwound only once many of its first samples were truncated.
  ReadUntil(probe, sink, 100);
  sink.Forget();
  ReadUntil(probe, sink, 600);
  ASSERT_GE(sink.Samples(), 500) << sink.Text();
  for (const int percent : {10, 20, 30, 40}) {
    const std::string n = std::to_string(percent);
    const std::string frames = ";main;run_spin;middle_" + n + ";hot_" + n + ";spin";
    // 3 standard errors of a share at 500 samples, and a point for what is outside the operators.
    EXPECT_NEAR(sink.Share(frames), percent / 100.0, 0.075) << frames << "\n" << sink.Text();
  }
  EXPECT_LT(sink.Share("[truncated]"), 0.1) << sink.Text();
  probe.Stop();
}

INSTANTIATE_TEST_SUITE_P(FramePointers, ThreadStacksOf, testing::Values("with", "without"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ThreadStacks, CodeMadeAtRunTimeHasTheNameOfItsPerfMap) {
  const Host host;
  if (!ThreadStacks::Check(host).usable()) GTEST_SKIP() << ThreadStacks::Check(host).reason;
#if !defined(__x86_64__)
  GTEST_SKIP() << "the target makes code for x86-64 only";
#endif
  TargetProcess process("jit");
  ASSERT_TRUE(process.ready());
  const Target target = TargetOf(process);
  ThreadStacks probe;
  ASSERT_TRUE(probe.Start(host, target).usable());
  RecordingSink sink;
  ReadUntil(probe, sink, 20);
  EXPECT_GT(sink.Share(";run_jit;made_at_run_time"), 0.8) << sink.Text();
  unlink(("/tmp/perf-" + std::to_string(process.pid()) + ".map").c_str());
}

TEST(ThreadStacks, WhatATinyRingLosesIsCounted) {
  const Host host;
  if (!ThreadStacks::Check(host).usable()) GTEST_SKIP() << ThreadStacks::Check(host).reason;
  TargetProcess process("spin");
  ASSERT_TRUE(process.ready());
  const Target target = TargetOf(process);
  ThreadStacksOptions options;
  options.frequency = 2000;
  options.ring_pages = 2;
  ThreadStacks probe(options);
  ASSERT_TRUE(probe.Start(host, target).usable());
  RecordingSink sink;
  const int64_t end = MonotonicNs() + 10'000'000'000;
  // The kernel tells of a loss with the next sample that finds room.
  while (sink.lost["cpu stack samples"].first == 0 && MonotonicNs() < end) {
    usleep(200'000);
    probe.Read(sink);
  }
  const auto [lost, total] = sink.lost["cpu stack samples"];
  EXPECT_GT(lost, 0);
  EXPECT_EQ(total, lost + sink.Samples());
}

TEST(ThreadStacks, ThreadsBeyondTheLimitAreCounted) {
  const Host host;
  if (!ThreadStacks::Check(host).usable()) GTEST_SKIP() << ThreadStacks::Check(host).reason;
  TargetProcess process("sleep");
  ASSERT_TRUE(process.ready());
  const Target target = TargetOf(process);
  ThreadStacksOptions options;
  options.max_threads = 1;
  ThreadStacks probe(options);
  ASSERT_TRUE(probe.Start(host, target).usable());
  RecordingSink sink;
  probe.Read(sink);
  EXPECT_EQ(sink.lost["threads without cpu stack samples"].first, 3);
}

TEST(ThreadStacks, AFixtureIsNoMachineToSample) {
  const Host host("/nonexistent");
  const Availability found = ThreadStacks::Check(host);
  EXPECT_EQ(found.state, Availability::State::kUnavailable);
  EXPECT_FALSE(found.reason.empty());
  EXPECT_FALSE(found.fix.empty());
}

// 0 when it is stacks of own processes, without the kernel's part, or the reason.
int WhatAnOrdinaryUserGets(const TargetProcess& process) {
  const Host host;
  const Target target = TargetOf(process);
  ThreadStacks probe;
  const Availability found = probe.Start(host, target);
  if (found.state == Availability::State::kOk) return 11;
  if (found.reason.empty() || found.fix.empty()) return 12;
  if (!found.usable()) return 0;
  RecordingSink sink;
  ReadUntil(probe, sink, 20);
  return sink.Share("run_spin") > 0.5 ? 0 : 13;
}

TEST(ThreadStacks, OrdinaryUsersGetTheirOwnOrAReason) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  constexpr uint32_t kNobody = 65534;
  TargetProcess process("spin", "with", "", kNobody);
  if (!process.ready()) GTEST_SKIP() << "the build folder is closed to other users";
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(10);
    _exit(WhatAnOrdinaryUserGets(process));
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace headrace::probes::stack
