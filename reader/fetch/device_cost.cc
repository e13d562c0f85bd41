#include "reader/fetch/device_cost.h"

#include <algorithm>
#include <cmath>

namespace headrace::reader {

uint64_t DeviceCost::BestGapBytes() const {
  constexpr double kMost = 1ull << 40;
  if (ns_per_request <= 0) return 0;
  if (ns_per_byte * kMost <= ns_per_request) return static_cast<uint64_t>(kMost);
  return static_cast<uint64_t>(std::llround(ns_per_request / ns_per_byte));
}

std::optional<DeviceCost> FitDeviceCost(std::span<const DevicePoint> points) {
  // With t the time of a request: minimises the sum of (a / t + b * bytes / t - 1)^2.
  double xx = 0, xy = 0, yy = 0, x = 0, y = 0;
  double smallest = INFINITY, largest = 0;
  for (const DevicePoint& point : points) {
    if (point.bytes_per_request <= 0 || point.bytes_per_second <= 0) continue;
    const double t = point.bytes_per_request / point.bytes_per_second * 1e9;
    const double u = 1 / t, v = point.bytes_per_request / t;
    xx += u * u;
    xy += u * v;
    yy += v * v;
    x += u;
    y += v;
    smallest = std::min(smallest, point.bytes_per_request);
    largest = std::max(largest, point.bytes_per_request);
  }
  if (!(smallest < largest)) return std::nullopt;
  const double determinant = xx * yy - xy * xy;
  DeviceCost cost{(x * yy - y * xy) / determinant, (y * xx - x * xy) / determinant};
  // One cost below 0: the best line without it.
  if (cost.ns_per_request < 0) cost = {0, y / yy};
  if (cost.ns_per_byte < 0) cost = {x / xx, 0};
  return cost;
}

DeviceCost CostOfThrottle(const ThrottleOptions& throttle, uint32_t depth) {
  return {throttle.ns_per_request() +
              static_cast<double>(throttle.latency_ns) / std::max<uint32_t>(1, depth),
          throttle.ns_per_byte()};
}

}  // namespace headrace::reader
