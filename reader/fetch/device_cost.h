// DeviceCost: what a read costs the storage that it comes from, as a line: so much per request and
// so much per byte. From it follows the gap below which reading over a hole is cheaper than another
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
  // As many bytes as cost what a request costs; at most 1 TiB.
  uint64_t BestGapBytes() const;
};

// A measured rate of reads of one size, with as many under way as the reader will have.
struct DevicePoint {
  double bytes_per_request = 0, bytes_per_second = 0;
};

// The line through the points whose squared relative errors add up to the least, with neither cost
// below 0. Nothing with fewer than two sizes.
std::optional<DeviceCost> FitDeviceCost(std::span<const DevicePoint> points);

// The cost of reads on the modelled device with `depth` of them in flight, which share the latency.
DeviceCost CostOfThrottle(const ThrottleOptions& throttle, uint32_t depth);

}  // namespace headrace::reader
