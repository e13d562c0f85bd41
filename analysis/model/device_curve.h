// DeviceCurve: the rate B(k) at which a table's storage delivers with k requests in flight, from
// the machine's calibration and from what the run itself got. B is concave and never falls. It
// bounds the rate of a pipeline twice: k requests in flight get no more than B(k), and nothing gets
// more than the plateau. A device whose rate falls again under high load is assumed to keep its
// best rate, because a reader can use fewer requests in flight.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct DeviceCurve {
  std::string folder;                             // the folder that was calibrated
  std::vector<std::pair<double, double>> points;  // requests in flight, bytes/s; by the former
  double in_flight = 1;                           // requests that each thread keeps in flight
  size_t io = 0;           // the operator that reads, into RunView::operators
  double from_device = 1;  // share of the bytes read that came from it, not from the page cache

  // Bytes per second at `k` requests in flight.
  double At(double k) const;
  double Most() const;
  // Factor by which a request takes longer with `k` in flight than with `now`, without the time
  // spent waiting at the plateau: how far the curve bends below a straight rise to the plateau.
  double Slower(double k, double now) const;
};

// The lowest concave curve that lies above the points and the origin and never falls; by depth.
std::vector<std::pair<double, double>> ConcaveHull(std::vector<std::pair<double, double>> points);

// The curve for what the run read; empty where it read no device, where a modelled device stands
// before it, where its folder was not calibrated, or where its reads are not counted. Uses the
// windows from `first_ns` to `last_ns`, counted from the start of the run.
std::optional<DeviceCurve> DeviceCurveOf(const RunView& run, int64_t first_ns, int64_t last_ns);

}  // namespace headrace::analysis
