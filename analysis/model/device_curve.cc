#include "analysis/model/device_curve.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "analysis/run/reads.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// The rate for requests of `bytes`, between the two sizes that were measured nearest to it.
double RateOfSize(const std::map<double, double>& rate_of_size, double bytes) {
  const auto above = rate_of_size.lower_bound(bytes);
  if (above == rate_of_size.end()) return rate_of_size.rbegin()->second;
  if (above == rate_of_size.begin() || above->first == bytes) return above->second;
  const auto below = std::prev(above);
  const double way = std::log(bytes / below->first) / std::log(above->first / below->first);
  return below->second * std::pow(above->second / below->second, way);
}

double InFlightPerThread(const RunView& run, double requests_per_stripe) {
  if (SettingOf(run.run, "source.io") != "uring") return 1;
  const double depth = std::atof(SettingOf(run.run, "source.depth").value_or("1").c_str());
  return std::clamp(std::min(depth, requests_per_stripe), 1.0, 1024.0);
}

struct PhaseReads {
  double device_bytes = 0, asked_bytes = 0, seconds = 0;
};

// What was read in the phase from `first_ns` to `last_ns`; in the whole run where device reads were
// not recorded over time.
std::optional<PhaseReads> ReadInPhase(const RunView& run, size_t io, int64_t first_ns,
                                      int64_t last_ns) {
  PhaseReads had;
  for (const DeviceReadRow& row : run.device_reads) {
    if (row.start_ns >= first_ns && row.start_ns < last_ns) had.device_bytes += row.read_bytes;
  }
  for (const WindowRow& window : run.windows) {
    if (window.start_ns < first_ns || window.start_ns >= last_ns) continue;
    had.asked_bytes += static_cast<double>(window.operators[io].bytes_out_bytes);
    had.seconds += static_cast<double>(window.duration_ns) * 1e-9;
  }
  if (!run.device_reads.empty() && had.seconds > 0) return had;
  const HostRow* device = run.FindHost("process_read_bytes");
  if (device == nullptr || !device->last_value) return std::nullopt;
  return PhaseReads{*device->last_value, static_cast<double>(run.operators[io].bytes_out_bytes),
                    static_cast<double>(run.run.duration_ns) * 1e-9};
}

}  // namespace

double DeviceCurve::At(double k) const {
  double last_k = 0, last_rate = 0;
  for (const auto& [depth, rate] : points) {
    if (k <= depth) return last_rate + (rate - last_rate) * (k - last_k) / (depth - last_k);
    last_k = depth;
    last_rate = rate;
  }
  return last_rate;
}

double DeviceCurve::Most() const { return points.empty() ? 0 : points.back().second; }

double DeviceCurve::Slower(double k, double now) const {
  const auto bend = [&](double depth) {
    const double rate = At(depth);
    return rate > 0 ? std::min(depth * At(1), Most()) / rate : 1;
  };
  return bend(k) / bend(now);
}

std::vector<std::pair<double, double>> ConcaveHull(std::vector<std::pair<double, double>> points) {
  std::sort(points.begin(), points.end());
  std::vector<std::pair<double, double>> hull = {{0, 0}};
  for (const auto& point : points) {
    if (point.first <= 0 || point.second <= hull.back().second) continue;  // it never falls
    while (hull.size() >= 2) {
      const auto &a = hull[hull.size() - 2], &b = hull.back();
      const double before = (b.second - a.second) * (point.first - a.first);
      if (before > (point.second - a.second) * (b.first - a.first)) break;
      hull.pop_back();
    }
    hull.push_back(point);
  }
  hull.erase(hull.begin());
  return hull;
}

std::optional<DeviceCurve> DeviceCurveOf(const RunView& run, int64_t first_ns, int64_t last_ns) {
  const auto reads = ReadsOf(run);
  if (!reads || reads->mean_bytes <= 0) return std::nullopt;
  for (const ResourceRow& resource : run.resources) {
    if (resource.kind == "device") return std::nullopt;
  }
  DeviceCurve curve;
  curve.io = reads->io;
  const auto had = ReadInPhase(run, curve.io, first_ns, last_ns);
  if (!had || had->asked_bytes <= 0 || had->seconds <= 0) return std::nullopt;
  curve.from_device = std::min(1.0, had->device_bytes / had->asked_bytes);
  if (curve.from_device < kLeastFromStore) return std::nullopt;
  curve.folder = CalibratedFolder(run);
  if (curve.folder.empty()) return std::nullopt;
  std::map<double, std::map<double, double>> by_depth;
  for (const StoragePoint& point : run.storage_points) {
    if (point.folder != curve.folder || point.size_bytes <= 0 || point.bytes_per_s <= 0) continue;
    by_depth[point.depth][point.size_bytes] = point.bytes_per_s;
  }
  for (const auto& [depth, rates] : by_depth) {
    curve.points.emplace_back(depth, RateOfSize(rates, reads->mean_bytes));
  }
  curve.in_flight = InFlightPerThread(run, reads->requests_per_stripe);
  // What the run itself got, with at most all threads of the stage at it, was there to be had.
  double threads = 1;
  for (const StageRow& stage : run.stages) {
    if (stage.name == run.operators[curve.io].stage) {
      threads = std::max(1.0, static_cast<double>(stage.last_parallelism_count));
    }
  }
  curve.points.emplace_back(threads * curve.in_flight, had->device_bytes / had->seconds);
  curve.points = ConcaveHull(std::move(curve.points));
  if (curve.points.empty()) return std::nullopt;
  return curve;
}

}  // namespace headrace::analysis
