#include "experiments/device_cost.h"

#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <vector>

#include "collectors/store/store.h"
#include "reader/pipeline/gap.h"

namespace headrace::experiments {
namespace {

std::optional<dev_t> DeviceOf(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_dev;
}

}  // namespace

std::optional<reader::DeviceCost> CalibratedCost(const std::string& database,
                                                 const std::string& path, uint32_t depth) {
  const std::optional<dev_t> device = DeviceOf(path);
  if (!device || !std::filesystem::exists(database)) return std::nullopt;
  collectors::ReadStore store(database);
  const collectors::SqlResult rows = store.Query(
      "SELECT calibration_id, folder, size_bytes, depth_count, value FROM calibration_summary "
      "WHERE metric = 'storage_read_bytes_per_s'");
  std::optional<int64_t> calibration;
  double nearest = INFINITY;
  std::vector<reader::DevicePoint> points;
  for (const auto& row : rows.rows) {
    if (calibration && std::get<int64_t>(row[0]) != *calibration) break;
    if (!calibration && DeviceOf(std::get<std::string>(row[1])) != device) continue;
    calibration = std::get<int64_t>(row[0]);
    const double away = std::abs(std::log(static_cast<double>(std::get<int64_t>(row[3])) / depth));
    if (away > nearest) continue;
    if (away < nearest) points.clear();
    nearest = away;
    points.push_back({static_cast<double>(std::get<int64_t>(row[2])), std::get<double>(row[4])});
  }
  return reader::FitDeviceCost(points);
}

void ChooseGap(const std::string& database, reader::PipelineSpec* spec) {
  if (spec->gap_is_auto && !spec->device_cost && !spec->throttle.enabled() && !spec->synthetic)
    spec->device_cost = CalibratedCost(database, spec->table, reader::ReadsUnderWay(*spec));
  reader::ChooseGap(spec);
}

}  // namespace headrace::experiments
