// TunerOptions: what a tuner may spend, and how it goes about it.
#pragma once
#include <cstdint>
#include <optional>

namespace headrace::analysis {

struct TunerOptions {
  std::optional<uint64_t> memory_bytes;  // of the process; none: the run's own limit
  std::optional<double> cores;           // none: what the run has
  std::optional<double> target;          // batches per second; none: as many as possible
  int max_threads = 0;                   // of a stage; as Budget's
  bool continuous = false;               // watches on after the plan has stopped changing
  // Of changes of settings; afterwards the tuner stops with what it has. 0: no limit.
  int max_decisions = 0;
  bool dry_run = false;  // decides once and changes nothing
  // Whether old and new settings take turns until the difference is clear. Otherwise (where each
  // change is dear) what was before is compared with what is after.
  bool interleave = true;
  int measure_windows = 10;  // a plan is made of at least so many
  int pairs = 8;             // of blocks, at most
};

}  // namespace headrace::analysis
