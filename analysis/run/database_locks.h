// Waits for the lock on an SQLite database. SQLite sleeps between two looks at it: to the kernel,
// such a wait is one for a timer.
#pragma once
#include <cstdint>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Sleeps of threads, by sampled stacks off the CPU.
class SqliteSleeps {
 public:
  // Leaves out what is no sleep, and stacks that were not unwound.
  void Add(const StackRow& stack);
  // Which part of the time they are in SQLite, 0 to 1. 0 where they are few.
  double ratio() const;

 private:
  double all_ns_ = 0, in_sqlite_ns_ = 0;
  int64_t samples_count_ = 0;
};

// That ratio for the operator's threads.
double SqliteSleepRatio(const RunView& run, const OperatorRow& op);

}  // namespace headrace::analysis
