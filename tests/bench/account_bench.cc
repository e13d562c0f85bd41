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
