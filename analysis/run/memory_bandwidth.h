// Bytes that a run moved to and from memory, from the best source that was recorded, and the
// machine's ceiling.
#pragma once
#include <optional>
#include <string>

#include "analysis/run/run_view.h"
#include "base/quantity.h"

namespace headrace::analysis {

struct MemoryBandwidth {
  Quantity bytes_per_s;      // mean over the run; says whether it was counted or estimated
  std::string told_by;       // "memory controllers", "LLC misses of the processes", ...
  bool whole_machine;        // it includes other processes
  Real ceiling_bytes_per_s;  // highest read rate measured on this machine
};

// The source is the first of these that is known: memory controllers and similar counters; 64 bytes
// for each miss of the last-level cache; the bytes that operators accounted for, in and out.
// Nothing if none is known.
std::optional<MemoryBandwidth> MemoryBandwidthOf(const RunView& run);

// Seconds of the machine's full memory bandwidth that one batch took at this rate; the inverse is
// the rate that the bandwidth allows. Empty where the ceiling was not measured, or where only
// operators' accounts tell the traffic (most of those bytes stay in caches).
Real MemorySecondsPerBatch(const RunView& run, double batches_per_second);

}  // namespace headrace::analysis
