// WorkloadSpec: what a recommendation training table is to look like, and what a model reads of it.
//
// Counts are those of the full-size table; `feature_fraction` scales them when the table is made.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "reader/dwrf/layout_cost.h"

namespace headrace::workloads {

struct WorkloadSpec {
  std::string name;

  // How much of it to make.
  uint64_t rows = 16'384;
  double feature_fraction = 0.0625;
  uint64_t seed = 1;
  uint64_t partitions = 1;  // one file each
  // With a goal, an empty codec and 0 stripe rows are chosen (reader/dwrf/layout_cost.h).
  reader::dwrf::LayoutGoal optimize = reader::dwrf::LayoutGoal::kFixed;
  std::string compression = "zstd";
  uint64_t stripe_rows = 2048;

  // [table]
  double dense_features = 0, sparse_features = 0;  // stored, at full size
  double weighted_ratio = 0.1;
  double coverage_mean = 0.45;
  double list_length_mean = 26;
  double list_length_sigma = 0.8, feature_length_sigma = 1.0;
  double small_id_ratio = 0.3, medium_id_ratio = 0.5;

  // [sessions]
  double rows_per_session = 16.5;
  double user_side_ratio = 0.9;
  double duplication_low = 0.90, duplication_high = 0.99;
  double history_ratio = 0.6;
  bool clustered = false;

  // [projection]
  double used_dense_features = 0, used_sparse_features = 0;  // at full size
  double derived_features = 0;
  double bytes_used_ratio = 0.37;
  double hot_bytes_ratio = 0.39;

  // [pipeline]
  double batch_rows = 512;
  std::string step = "0";  // a duration, of the consumer
};

// Counts after scaling. Used features keep the full-size share of stored ones as closely as whole
// numbers allow; every kind the full-size table has keeps at least one feature.
struct FeatureCounts {
  uint32_t dense = 0, sparse = 0, weighted = 0;  // stored; `sparse` leaves the weighted ones out
  uint32_t used_dense = 0;
  uint32_t used_sparse = 0;  // of sparse and weighted together
  uint32_t derived = 0;
};
FeatureCounts ScaledCounts(const WorkloadSpec& spec);

// Name -> TOML text of the models that come with the program (workloads/*.toml).
const std::map<std::string, std::string, std::less<>>& BuiltInModels();

// Reads a spec; `where` names the text in errors. Throws Error kBadData with line and column for
// unknown keys (naming the nearest valid one), wrong types and values out of range.
WorkloadSpec ParseSpec(std::string_view toml_text, const std::string& where);

// A built-in model by name, or the spec file of that name. Throws Error kUsage when it is neither,
// and as ParseSpec.
WorkloadSpec LoadSpec(const std::string& name_or_path);

// The built-in model `name` at a given size. Throws Error kUsage for an unknown name.
WorkloadSpec ForModel(std::string_view name, double feature_fraction, uint64_t rows, uint64_t seed);

// Throws Error kUsage, naming the option, unless the spec can be generated.
void CheckSpec(const WorkloadSpec& spec);

}  // namespace headrace::workloads
