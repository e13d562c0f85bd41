// What a run moved to and from memory, by the best that was measured, and how much of the machine's
// ceiling that is.
#pragma once
#include <optional>
#include <string>

#include "analysis/run/run_view.h"
#include "base/quantity.h"

namespace headrace::analysis {

struct MemoryBandwidth {
  Quantity bytes_per_s;      // mean over the run; says whether it was counted or estimated
  std::string told_by;       // "memory controllers", "LLC misses of the processes", ...
  bool whole_machine;        // other processes are in it
  Real ceiling_bytes_per_s;  // the best this machine was measured to read
};

// By memory controllers and the like if a probe could read them, else 64 bytes for each miss of the
// last-level cache, else the bytes that the operators accounted for, in and out. Nothing if none of
// these is known.
std::optional<MemoryBandwidth> MemoryBandwidthOf(const RunView& run);

// Of a second of the machine's memory bandwidth, what one batch took at this rate; the inverse is
// the rate that it allows. Empty where the ceiling was not measured, or the traffic is only told
// from what operators accounted for, which mostly stays in caches.
Real MemorySecondsPerBatch(const RunView& run, double batches_per_second);

}  // namespace headrace::analysis
