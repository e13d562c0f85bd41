// TunerOptions: what a tuner may use, and how it proceeds.
#pragma once
#include <cstdint>
#include <optional>

namespace headrace::analysis {

struct TunerOptions {
  std::optional<uint64_t> memory_bytes;  // of the process; none: the run's own limit
  std::optional<double> cores;           // none: what the run has
  std::optional<double> target;          // batches per second; none: as many as possible
  int max_threads = 0;                   // per stage, as in Budget
  bool continuous = false;               // keeps watching after the plan has stopped changing
  // The most changes of settings; then the tuner stops with the settings it has. 0: no limit.
  int max_decisions = 0;
  bool dry_run = false;  // decides once and changes nothing
  // Whether old and new settings alternate until the difference is clear. Otherwise (where each
  // change is expensive) the time before the change is compared with the time after.
  bool interleave = true;
  int measure_windows = 10;  // fewest windows that a plan is made from
  int pairs = 8;             // the most pairs of blocks in a comparison
};

}  // namespace headrace::analysis
