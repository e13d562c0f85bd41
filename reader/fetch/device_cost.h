// DeviceCost: the time that a read takes of its storage, as a line: a cost per request plus a cost
// per byte. This determines the gap up to which reading over a hole is cheaper than another
// request.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "reader/source/options.h"
#include "reader/source/throttle.h"

namespace headrace::reader {

struct DeviceCost {
  double ns_per_request = 0, ns_per_byte = 0;
  // The number of bytes that cost as much as one request; at most 1 TiB.
  uint64_t BestGapBytes() const;
};

// A measured rate for reads of one size, with as many in flight as the reader will have.
struct DevicePoint {
  double bytes_per_request = 0, bytes_per_second = 0;
};

// The line with the least sum of squared relative errors at the points, with neither cost below 0.
// Nothing with fewer than two sizes.
std::optional<DeviceCost> FitDeviceCost(std::span<const DevicePoint> points);

// The cost of reads on the modelled device with `depth` of them in flight, which share the latency.
DeviceCost CostOfThrottle(const ThrottleOptions& throttle, uint32_t depth);

}  // namespace headrace::reader
