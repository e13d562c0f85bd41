// What phases and drift read of a window.
#pragma once
#include <cstddef>
#include <cstdint>

#include "analysis/run/counter_sums.h"
#include "analysis/run/run_view.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {

// Of a phase that statements may rest on, and of each side of a change.
inline size_t FewestWindows() { return static_cast<size_t>(kWindowsOfPhase); }

// Batches per second.
inline double RateOf(const WindowRow& window) {
  return window.duration_ns > 0
             ? static_cast<double>(window.steps.steps_count) / Seconds(window.duration_ns)
             : 0;
}

inline int64_t EndOf(const WindowRow& window) { return window.start_ns + window.duration_ns; }

inline double StepsOf(const WindowRow& window) {
  return static_cast<double>(window.steps.steps_count);
}

}  // namespace headrace::analysis
