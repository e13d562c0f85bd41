#include "analysis/run/reads.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// Bytes and times as the pipeline file writes them; nothing for what it would refuse.
std::optional<double> SecondsOf(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  try {
    return static_cast<double>(ParseDuration(*text, "setting")) * 1e-9;
  } catch (const Error&) {
    return std::nullopt;
  }
}
std::optional<double> NumberOf(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(text->c_str(), &end);
  if (end == text->c_str() || !std::isfinite(number)) return std::nullopt;
  return number;
}

// time = request + byte * size, by least squares over the sizes of one depth.
std::optional<ReadCost> Fitted(const std::vector<StoragePoint>& points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const StoragePoint& point : points) {
    if (point.size_bytes <= 0 || point.bytes_per_s <= 0) continue;
    // Relative errors count: a large read must not drown what small ones say of a request.
    const double time = point.size_bytes / point.bytes_per_s, weight = 1 / (time * time);
    n += weight;
    x += weight * point.size_bytes;
    y += weight * time;
    xx += weight * point.size_bytes * point.size_bytes;
    xy += weight * point.size_bytes * time;
  }
  const double determinant = n * xx - x * x;
  if (points.size() < 2 || determinant <= 0) return std::nullopt;
  ReadCost cost;
  cost.byte_s = (n * xy - x * y) / determinant;
  cost.request_s = (y - cost.byte_s * x) / n;
  if (!(cost.byte_s > 0) || !(cost.request_s > 0)) return std::nullopt;
  return cost;
}

// The read cost fitted to the calibration of the innermost calibrated folder that holds the table,
// at the smallest measured depth.
std::optional<ReadCost> Calibrated(const RunView& run) {
  const std::string best = CalibratedFolder(run);
  if (best.empty()) return std::nullopt;
  double depth = 0;
  std::vector<StoragePoint> points;
  for (const StoragePoint& point : run.storage_points) {
    if (point.folder != best) continue;
    if (points.empty() || point.depth < depth) {
      points.clear();
      depth = point.depth;
    }
    if (point.depth == depth) points.push_back(point);
  }
  std::optional<ReadCost> cost = Fitted(points);
  if (!cost) return std::nullopt;
  cost->told_by = "the calibration of " + best;
  // Reads that memory answered cost less than the device would: never more than was spent on them.
  if (const auto reads = ReadsOf(run)) {
    const OperatorRow& io = run.operators[reads->io];
    const double spent = static_cast<double>(io.busy_ns) * 1e-9;
    const double modelled = static_cast<double>(io.completions_count) * cost->request_s +
                            static_cast<double>(io.bytes_out_bytes) * cost->byte_s;
    if (modelled > spent && modelled > 0) {
      cost->request_s *= spent / modelled;
      cost->byte_s *= spent / modelled;
    }
  }
  return cost;
}

}  // namespace

std::optional<Reads> ReadsOf(const RunView& run) {
  std::optional<size_t> fetch, io;
  for (size_t i = 0; i < run.operators.size() && !fetch; ++i) {
    if (run.operators[i].kind == "fetch") fetch = i;
  }
  if (!fetch) return std::nullopt;
  const OperatorRow& row = run.operators[*fetch];
  for (size_t i = 0; i < run.operators.size(); ++i) {
    if (run.operators[i].name == row.name + ".io") io = i;
  }
  if (!io || run.operators[*io].completions_count <= 0 || row.rows_count <= 0) return std::nullopt;
  const OperatorRow& requests = run.operators[*io];
  Reads reads;
  reads.fetch = *fetch;
  reads.io = *io;
  const double rows = static_cast<double>(row.rows_count);
  const double count = static_cast<double>(requests.completions_count);
  reads.requests_per_row = count / rows;
  reads.bytes_per_row = static_cast<double>(requests.bytes_out_bytes) / rows;
  reads.mean_bytes = static_cast<double>(requests.bytes_out_bytes) / count;
  if (row.completions_count > 0) {
    reads.requests_per_stripe = count / static_cast<double>(row.completions_count);
    reads.stripe_rows = rows / static_cast<double>(row.completions_count);
  }
  if (row.bytes_in_bytes > 0) {
    reads.over_read_ratio = std::clamp(
        1 - static_cast<double>(row.bytes_out_bytes) / static_cast<double>(row.bytes_in_bytes), 0.0,
        1.0);
  }
  return reads;
}

bool ManySmallReads(const Reads& reads) {
  return reads.requests_per_stripe >= kManyRequestsPerStripe &&
         reads.mean_bytes < kSmallRequestBytes;
}

// A modelled device says it outright.
std::optional<ReadCost> ReadCostOf(const RunView& run) {
  const auto setting = [&](const char* key) { return SettingOf(run.run, key); };
  const auto request = NumberOf(setting("source.device.ns_per_request"));
  const auto byte = NumberOf(setting("source.device.ns_per_byte"));
  if (request && byte) {
    return ReadCost{*request * 1e-9, *byte * 1e-9, "[source.device] of the pipeline file"};
  }
  const double bandwidth = BytesSettingOf(run.run, "source.throttle.bandwidth").value_or(0);
  const double iops = NumberOf(setting("source.throttle.iops")).value_or(0);
  const double seek = SecondsOf(setting("source.throttle.seek")).value_or(0);
  if (bandwidth > 0) {
    return ReadCost{seek + (iops > 0 ? 1 / iops : 0), 1 / bandwidth,
                    "[source.throttle] of the pipeline file"};
  }
  return Calibrated(run);
}

std::string TableOf(const RunRow& run) {
  const std::string table = SettingOf(run, "source.table").value_or("");
  if (table.empty()) return "";
  if (table.find("://") != std::string::npos || table.starts_with("/")) return table;
  if (run.pipeline_path.empty()) return "";
  const size_t slash = run.pipeline_path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : run.pipeline_path.substr(0, slash);
  return table == "." ? folder : folder + "/" + table;
}

std::string CalibratedFolder(const RunView& run) {
  const std::string table = TableOf(run.run);
  std::string best;
  for (const StoragePoint& point : run.storage_points) {
    const std::string& folder = point.folder;
    // "/data/rm1" holds no "/data/rm10".
    const bool within =
        table.starts_with(folder) &&
        (table.size() == folder.size() || folder.ends_with('/') || table[folder.size()] == '/');
    if (within && folder.size() > best.size()) best = folder;
  }
  return best;
}

}  // namespace headrace::analysis
