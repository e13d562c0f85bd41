// DeviceCurve: what the storage of a table delivers at so many requests in flight, by the machine's
// calibration and by what the run itself got: a concave, never falling curve B(k). It bounds the
// rate of a pipeline twice: threads that read cannot have more than B(k) of what is in flight, and
// nothing gets more than the plateau. A device whose rate falls again under load is taken to hold
// its best: who reads may have fewer in flight.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct DeviceCurve {
  std::string folder;                             // that was calibrated
  std::vector<std::pair<double, double>> points;  // requests in flight, bytes/s; by the former
  double in_flight = 1;                           // requests that each thread keeps there
  size_t io = 0;           // the operator that reads, into RunView::operators
  double from_device = 1;  // share of the bytes read that came from it, not from the page cache

  // Bytes per second at `k` requests in flight.
  double At(double k) const;
  double Most() const;
  // How much longer a request takes with `k` in flight than with `now`, beyond what waiting for the
  // plateau's share costs: by how far the curve bends below a straight rise to the plateau.
  double Slower(double k, double now) const;
};

// Least concave curve above those points and the origin that never falls. By depth.
std::vector<std::pair<double, double>> ConcaveHull(std::vector<std::pair<double, double>> points);

// The curve for what the run read; empty where it read no device, where a modelled device stands
// before it, where its folder was not calibrated, or where its reads are not counted.
// Of the windows from `first_ns` to `last_ns`, since the run began.
std::optional<DeviceCurve> DeviceCurveOf(const RunView& run, int64_t first_ns, int64_t last_ns);

}  // namespace headrace::analysis
