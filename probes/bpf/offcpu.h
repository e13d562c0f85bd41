// Off-CPU time by operator and cause, and the exact split of an operator's busy time that it gives:
// on a CPU = busy - blocked - runnable.
#pragma once
#include <cstdint>
#include <vector>

namespace headrace::probes::bpf {

// Times of one operator of one process, summed over its threads, since the probe's start; periods
// that are still open count up to now.
struct OperatorSplit {
  int64_t pid = 0;
  uint32_t operator_index = 0;
  int64_t blocked_ns = 0;   // off the CPU and not ready, inside the operator (locks included)
  int64_t runnable_ns = 0;  // ready, waiting for a CPU, inside the operator
  int64_t wait_ns = 0;      // off the CPU while waiting for an element or for room
};

// Interface of the probe "off-CPU time" for its splits, besides its measurements.
class SplitSource {
 public:
  virtual ~SplitSource() = default;
  // The splits as of now, much cheaper than a Read; valid until the next call. A period that ends
  // during the reading may be missing until then.
  virtual const std::vector<OperatorSplit>& Splits() = 0;
};

}  // namespace headrace::probes::bpf
