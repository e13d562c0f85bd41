#include "collectors/split_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/collectors/times.h"

namespace headrace::collectors {
namespace {

TEST(SplitBounds, AnOperatorAloneOnItsThreadsIsExact) {
  const ThreadsTime threads{100 * kMs, 30 * kMs, 5 * kMs};
  const Bounds cpu = CpuBounds(threads, 100 * kMs);
  EXPECT_EQ(cpu.low_ns, 30 * kMs);
  EXPECT_EQ(cpu.high_ns, 30 * kMs);
  const Bounds runnable = RunnableBounds(threads, 100 * kMs, cpu);
  EXPECT_EQ(runnable.low_ns, 5 * kMs);
  EXPECT_EQ(runnable.high_ns, 5 * kMs);
}

TEST(SplitBounds, WithoutTheRunQueueAllTimeOffTheCpuMayBeInIt) {
  const ThreadsTime threads{100 * kMs, 30 * kMs, std::nullopt};
  const Bounds runnable = RunnableBounds(threads, 50 * kMs, {10 * kMs, 20 * kMs});
  EXPECT_EQ(runnable.low_ns, 0);
  EXPECT_EQ(runnable.high_ns, 40 * kMs);
}

// For any stage whose operators compute, block, queue and wait, the bounds contain what each
// operator did.
TEST(SplitBounds, HoldWhateverTheOperatorsOfAStageDid) {
  const char* given = std::getenv("HEADRACE_TEST_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("HEADRACE_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) {
    return std::uniform_int_distribution<int64_t>(0, n)(random);
  };
  struct Operator {
    int64_t c, b, q;
    int64_t busy() const { return c + b + q; }
  };
  for (int stage = 0; stage < 20'000; stage++) {
    std::vector<Operator> operators(static_cast<size_t>(1 + below(4)));
    ThreadsTime threads{below(50 * kMs), 0, 0};  // waits, off the CPU, some in the run queue
    threads.runnable_ns = below(threads.lifetime_ns);
    for (Operator& op : operators) {
      const auto some = [&] { return below(2) == 0 ? 0 : below(100 * kMs); };
      op = {some(), some(), some()};
      threads.lifetime_ns += op.busy();
      threads.on_cpu_ns += op.c;
      *threads.runnable_ns += op.q;
    }
    for (const Operator& op : operators) {
      const Bounds cpu = CpuBounds(threads, op.busy());
      ASSERT_LE(cpu.low_ns, op.c) << "stage " << stage;
      ASSERT_GE(cpu.high_ns, op.c) << "stage " << stage;
      for (const Bounds& known : {cpu, Bounds{op.c, op.c}}) {
        const Bounds runnable = RunnableBounds(threads, op.busy(), known);
        ASSERT_LE(runnable.low_ns, op.q) << "stage " << stage;
        ASSERT_GE(runnable.high_ns, op.q) << "stage " << stage;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::collectors
