// What a border of an operator account costs: enter + leave against two bare readings of the clock
// they use, in one process. "off" is the same code in a process whose accounts are not open.
#include <benchmark/benchmark.h>

#include "probes/account/scope.h"

namespace headrace::account {
namespace {

uint32_t Open() {
  hr_account_open("account_bench");
  return hr_operator("op", "bench", hr_stage("bench", 1, 0));
}

void TwoClockReadings(benchmark::State& state) {
  Open();
  for (auto _ : state) {
    benchmark::DoNotOptimize(hr_ticks_());
    benchmark::DoNotOptimize(hr_ticks_());
  }
}
BENCHMARK(TwoClockReadings);

void EnterLeaveOn(benchmark::State& state) {
  const uint32_t op = Open();
  for (auto _ : state) {
    hr_enter(op);
    hr_leave();
  }
}
BENCHMARK(EnterLeaveOn);

void EnterLeaveDoneOn(benchmark::State& state) {
  const uint32_t op = Open();
  for (auto _ : state) {
    OperatorScope scope(op);
    scope.Done(64, 4096, 8192);
  }
}
BENCHMARK(EnterLeaveDoneOn);

// Two operators in turn that compute for the given time each, and the same work without accounts:
// what reading the CPU clock at the ends of long visits costs. From `long_us` on a visit is long.
uint64_t Compute(uint64_t steps, uint64_t x) {
  for (uint64_t i = 0; i < steps; i++) x = x * 6364136223846793005u + 1442695040888963407u;
  return x;
}
uint64_t StepsIn(int64_t ns) {
  static const double steps_per_ns = [] {
    const uint64_t begin = hr_clock_ns_(CLOCK_MONOTONIC);
    benchmark::DoNotOptimize(Compute(20'000'000, begin));
    return 20e6 / static_cast<double>(hr_clock_ns_(CLOCK_MONOTONIC) - begin);
  }();
  return static_cast<uint64_t>(steps_per_ns * static_cast<double>(ns));
}

void VisitsWithout(benchmark::State& state) {
  Open();
  const uint64_t steps = StepsIn(state.range(0));
  uint64_t x = 1;
  for (auto _ : state) benchmark::DoNotOptimize(x = Compute(steps, x));
}

void VisitsWith(benchmark::State& state) {
  const uint32_t ids[] = {Open(), hr_operator("other", "bench", hr_stage("bench", 1, 0))};
  const uint64_t steps = StepsIn(state.range(0));
  uint64_t x = 1;
  uint32_t turn = 0;
  for (auto _ : state) {
    hr_enter(ids[turn ^= 1]);
    benchmark::DoNotOptimize(x = Compute(steps, x));
    hr_leave();
  }
  state.counters["long_us"] = static_cast<double>(hr_process_v1.cpu_period_ticks) / 10 * 1e6 /
                              static_cast<double>(hr_process_v1.segment->header.ticks_per_second);
}
BENCHMARK(VisitsWithout)->Arg(300)->Arg(5'000)->Arg(50'000)->Arg(120'000)->Arg(1'000'000);
BENCHMARK(VisitsWith)->Arg(300)->Arg(5'000)->Arg(50'000)->Arg(120'000)->Arg(1'000'000);

// A long visit and a short one in turn: the clock is read at both ends of the long one.
void LongAndShortVisits(benchmark::State& state) {
  const uint32_t ids[] = {Open(), hr_operator("other", "bench", hr_stage("bench", 1, 0))};
  const bool accounts = state.range(0) != 0;
  const uint64_t steps[] = {StepsIn(120'000), StepsIn(300)};
  uint64_t x = 1;
  for (auto _ : state) {
    for (int i = 0; i < 2; i++) {
      if (accounts) hr_enter(ids[i]);
      benchmark::DoNotOptimize(x = Compute(steps[i], x));
      if (accounts) hr_leave();
    }
  }
}
BENCHMARK(LongAndShortVisits)->Arg(0)->Arg(1);

void QueueLevelOn(benchmark::State& state) {
  Open();
  const uint32_t queue = hr_queue("q", HR_NONE, HR_NONE, 8);
  uint32_t level = 0;
  for (auto _ : state) hr_queue_level(queue, level++ & 7);
}
BENCHMARK(QueueLevelOn);

// Last, because it closes the accounts.
void EnterLeaveOff(benchmark::State& state) {
  hr_account_close();
  for (auto _ : state) {
    hr_enter(0);
    hr_leave();
    benchmark::ClobberMemory();
  }
}
BENCHMARK(EnterLeaveOff);

}  // namespace
}  // namespace headrace::account

BENCHMARK_MAIN();
