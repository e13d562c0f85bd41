// Sums of counters over windows. A counter that was not measured in one of the windows is unknown
// in the sum.
#pragma once
#include <cstdint>
#include <limits>
#include <string_view>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// The sum, at the limit of the type where it does not fit: a file may come from anyone.
inline int64_t Plus(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

// Adds the counters of one window. `first`: this is the first window, so counters are set instead
// of added.
inline void Add(int64_t* sum, int64_t value, bool first) {
  *sum = first ? value : Plus(*sum, value);
}
inline void Add(Count* sum, const Count& value, bool first) {
  if (first) {
    *sum = value;
  } else if (*sum && value) {
    **sum = Plus(**sum, *value);
  } else {
    sum->reset();
  }
}
void Add(OperatorCounters* sum, const OperatorCounters& x, bool first);

inline double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }
inline double Seconds(const Count& ns) { return ns ? Seconds(*ns) : 0; }
inline double Steps(const StepCounters& steps) { return static_cast<double>(steps.steps_count); }

// Share of time that the stages' threads had a core, out of the time that they had work for one;
// none where that was not recorded.
std::optional<double> ShareOfCores(const WindowRow& sum);

// What the operator's threads were seen off the CPU for that cause ("sleep", "lock"); ns, 0 also
// where that was not recorded.
double OffCpuNs(const RunView& run, const OperatorRow& op, std::string_view cause);

// An operator's c, or the middle of its bounds where c is not exactly known; empty: not measured.
Count LikelyCpuNs(const OperatorCounters& op);

}  // namespace headrace::analysis
