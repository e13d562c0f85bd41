#include <thread>

#include "base/clock.h"
#include "probes/stack/thread_stacks.h"
#include "tests/probes/stack/target.h"

namespace headrace::probes::stack {
namespace {

// Reads until `samples` were taken, 10 s have passed.
void ReadUntil(Probe& probe, RecordingSink& sink, int64_t samples) {
  const int64_t end = MonotonicNs() + 10'000'000'000;
  while (sink.Samples() < samples && MonotonicNs() < end) {
    usleep(50'000);
    probe.Read(sink);
  }
}

class ThreadStacksOf : public testing::TestWithParam<const char*> {};

TEST_P(ThreadStacksOf, KnownProgramHaveKnownShares) {
  const Host host;
  const Availability found = ThreadStacks::Check(host);
  if (!found.usable()) GTEST_SKIP() << found.reason;
  TargetProcess process("spin", GetParam());
  ASSERT_TRUE(process.ready());
  Target target;
  target.root_pid = process.pid();
  target.pids = {process.pid()};
  ThreadStacksOptions options;
  options.frequency = 499;
  ThreadStacks probe(options);
  const Availability started = probe.Start(host, target);
  ASSERT_EQ(started.state, Availability::State::kDegraded) << started.reason;
  RecordingSink sink;
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

}  // namespace
}  // namespace headrace::probes::stack
