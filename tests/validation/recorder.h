// A played World as a recorded run: the rows that a collector would have stored and LoadRun read.
// What a collector cannot see is not in it (contention, the shapes of costs, what locks slow).
#pragma once
#include "analysis/run/run_view.h"
#include "tests/validation/world.h"

namespace headrace::validation {

// Of a recording, unless it would be shorter than a few seconds.
inline constexpr double kRecordedBatches = 2500;

struct Recording {
  double seconds = 20;    // of virtual time
  double period_s = 0.2;  // of the stored intervals
  int level = 3;          // 3: c, b and q by operator; 2: c by operator, q by stage
};

analysis::RunView Record(const World& world, const Recording& how, uint64_t seed);

}  // namespace headrace::validation
