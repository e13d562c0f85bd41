// What a tuner says: what to do next, and the result.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/tuning/tuned_target.h"

namespace headrace::analysis {

// What to do next.
struct Move {
  std::vector<Decision> decisions;  // made or judged now, in order
  std::vector<Change> set;          // knobs to turn now, those that free memory first
  int64_t wait_ns = 0;              // look again when this much more is recorded
  bool stop = false;
};

// The verified effect of all changes that were kept.
struct TuneResult {
  KnobValues start, end;
  std::optional<double> effect;  // rate at `end` / rate at `start` - 1; none: not compared
  Interval effect_interval;      // 95 %
  // The interval includes no loss or, with fewer threads, only a small one.
  bool shown = false;
  size_t pairs = 0;            // 0: not interleaved
  std::optional<double> rate;  // batches per second at `end`
  std::string effect_note;     // why there is no effect figure, or its limitations
  std::string why;             // why the tuner stopped
  bool converged = false;      // the plan stopped changing
  // Bytes by which the process exceeded its memory budget in the last reading; none: within it, or
  // no budget.
  std::optional<double> over_memory_bytes;
  int applied = 0;  // decisions that turned knobs
};

}  // namespace headrace::analysis
