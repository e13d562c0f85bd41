// Clocks: what reading one costs, and how far the time-stamp counter drifts from CLOCK_MONOTONIC.
#include <fmt/format.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "probes/calibration/calibration.h"

namespace headrace::probes {
namespace {

#if defined(__x86_64__)
constexpr const char* kCounterName = "tsc";
uint64_t ReadCounter() { return __rdtsc(); }
#elif defined(__aarch64__)
constexpr const char* kCounterName = "cntvct_el0";
uint64_t ReadCounter() {
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
}
#else
constexpr const char* kCounterName = "";
uint64_t ReadCounter() { return 0; }
#endif

constexpr bool kHasCounter = kCounterName[0] != '\0';

// Both clocks as of one instant: of several tries the one that took least.
void ReadBoth(int64_t* ns, uint64_t* ticks) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 50; i++) {
    const uint64_t before = ReadCounter();
    const int64_t now = MonotonicNs();
    const uint64_t after = ReadCounter();
    if (after - before >= least) continue;
    least = after - before;
    *ns = now;
    *ticks = before + (after - before) / 2;
  }
}

}  // namespace

CounterDrift::CounterDrift() {
  if (!kHasCounter) return;
  int64_t ns = 0;
  uint64_t ticks = 0;
  ReadBoth(&ns, &ticks);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ReadBoth(&begin_ns_, &begin_ticks_);
  hertz_ = static_cast<double>(begin_ticks_ - ticks) / (static_cast<double>(begin_ns_ - ns) * 1e-9);
}

void CounterDrift::Finish(Calibration* out) const {
  if (!hertz_) {
    out->skips.push_back(
        {"counter", "this processor has no time-stamp counter that we know", "x86-64 or arm64"});
    return;
  }
  int64_t ns = 0;
  uint64_t ticks = 0;
  ReadBoth(&ns, &ticks);
  const double seconds = static_cast<double>(ns - begin_ns_) * 1e-9;
  if (seconds <= 0) return;
  Ceiling frequency;
  frequency.metric = "counter_frequency_hertz";
  frequency.unit = "Hz";
  frequency.subject = kCounterName;
  const double later = static_cast<double>(ticks - begin_ticks_) / seconds;
  frequency.value = later;
  frequency.minimum = std::min(*hertz_, later);
  frequency.maximum = std::max(*hertz_, later);
  frequency.repetitions_count = 2;
  frequency.note = fmt::format("against CLOCK_MONOTONIC, over 0.2 s and over {:.1f} s", seconds);
  Ceiling drift;
  drift.metric = "counter_drift_ratio";
  drift.unit = "ratio";
  drift.subject = kCounterName;
  drift.value = drift.minimum = drift.maximum = later / *hertz_ - 1;
  drift.repetitions_count = 1;
  drift.note = fmt::format("of a calibration over 0.2 s, after {:.1f} s", seconds);
  out->ceilings.push_back(std::move(frequency));
  out->ceilings.push_back(std::move(drift));
}

void CalibrateClock(const CalibrationOptions& options, Calibration* out) {
  const auto measure = [&](const char* name, auto read) {
    constexpr int kReads = 20'000;
    Ceiling ceiling;
    ceiling.metric = "clock_read_ns";
    ceiling.unit = "ns";
    ceiling.subject = name;
    Repeat(
        ceiling, false, options.part_ns / 20,
        [&] {
          const int64_t begin = MonotonicNs();
          for (int i = 0; i < kReads; i++) read();
          return static_cast<double>(MonotonicNs() - begin) / kReads;
        },
        out);
  };
  if (options.progress) options.progress(0, "clocks");
  if (kHasCounter) {
    measure(kCounterName, [] {
      const uint64_t ticks = ReadCounter();
      asm volatile("" ::"r"(ticks));
    });
  }
  const auto get = [](clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    asm volatile("" ::"r"(&now) : "memory");
  };
  measure("CLOCK_MONOTONIC", [&] { get(CLOCK_MONOTONIC); });
  measure("CLOCK_THREAD_CPUTIME_ID", [&] { get(CLOCK_THREAD_CPUTIME_ID); });
}

}  // namespace headrace::probes
