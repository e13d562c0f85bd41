#include "workloads/spec.h"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/registry.h"
#include "base/toml_depth.h"
#include "base/units.h"

namespace headrace::workloads {
namespace {

struct NumberKey {
  const char* section;
  const char* key;
  double WorkloadSpec::*member;
  double low, high;
};

constexpr NumberKey kNumbers[] = {
    {"table", "dense_features", &WorkloadSpec::dense_features, 1, 1e6},
    {"table", "sparse_features", &WorkloadSpec::sparse_features, 1, 1e6},
    {"table", "weighted_ratio", &WorkloadSpec::weighted_ratio, 0, 1},
    {"table", "coverage_mean", &WorkloadSpec::coverage_mean, 0.01, 1},
    {"table", "list_length_mean", &WorkloadSpec::list_length_mean, 1, 1000},
    {"table", "list_length_sigma", &WorkloadSpec::list_length_sigma, 0, 2},
    {"table", "feature_length_sigma", &WorkloadSpec::feature_length_sigma, 0, 2},
    {"table", "small_id_ratio", &WorkloadSpec::small_id_ratio, 0, 1},
    {"table", "medium_id_ratio", &WorkloadSpec::medium_id_ratio, 0, 1},
    {"sessions", "rows_per_session", &WorkloadSpec::rows_per_session, 1, 10000},
    {"sessions", "user_side_ratio", &WorkloadSpec::user_side_ratio, 0, 1},
    {"sessions", "duplication_low", &WorkloadSpec::duplication_low, 0, 1},
    {"sessions", "duplication_high", &WorkloadSpec::duplication_high, 0, 1},
    {"sessions", "history_ratio", &WorkloadSpec::history_ratio, 0, 1},
    {"projection", "dense_features", &WorkloadSpec::used_dense_features, 0, 1e6},
    {"projection", "sparse_features", &WorkloadSpec::used_sparse_features, 0, 1e6},
    {"projection", "derived_features", &WorkloadSpec::derived_features, 0, 1e6},
    {"projection", "bytes_used_ratio", &WorkloadSpec::bytes_used_ratio, 0.001, 1},
    {"projection", "hot_bytes_ratio", &WorkloadSpec::hot_bytes_ratio, 0.01, 0.8},
    {"pipeline", "batch_rows", &WorkloadSpec::batch_rows, 1, 1e6},
};

[[noreturn]] void Fail(const std::string& where, const toml::source_region& at,
                       const std::string& what, const std::string& fix = {}) {
  throw Error(ExitCode::kBadData, what,
              fmt::format("{}:{}:{}", where, at.begin.line, at.begin.column), fix);
}

std::string NearestFix(std::string_view name, const std::vector<std::string>& valid) {
  const std::string nearest = NearestName(name, valid);
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", nearest);
  return fmt::format("valid names: {}", fmt::join(valid, ", "));
}

void ReadKey(WorkloadSpec* spec, const std::string& where, const std::string& section,
             std::string_view key, const toml::node& value) {
  if (section == "sessions" && key == "clustered") {
    if (!value.is_boolean()) Fail(where, value.source(), "'clustered' is not true or false");
    spec->clustered = *value.value<bool>();
    return;
  }
  if (section == "pipeline" && key == "step") {
    if (!value.is_string())
      Fail(where, value.source(), "'step' is not a string", "write it as \"5ms\"");
    spec->step = *value.value<std::string>();
    ParseDuration(spec->step, "step");
    return;
  }
  std::vector<std::string> valid;
  if (section == "sessions") valid.push_back("clustered");
  if (section == "pipeline") valid.push_back("step");
  for (const NumberKey& number : kNumbers) {
    if (section != number.section) continue;
    valid.push_back(number.key);
    if (key != number.key) continue;
    const auto read = value.value<double>();
    if (!read) Fail(where, value.source(), fmt::format("'{}' is not a number", key));
    if (!(*read >= number.low && *read <= number.high))
      Fail(where, value.source(),
           fmt::format("'{}' is {}; it must be {} to {}", key, *read, number.low, number.high));
    spec->*number.member = *read;
    return;
  }
  Fail(where, value.source(), fmt::format("unknown key '{}' in [{}]", key, section),
       NearestFix(key, valid));
}

uint32_t Scale(double count, double fraction) {
  if (count <= 0) return 0;
  return std::max<uint32_t>(1, static_cast<uint32_t>(std::lround(count * fraction)));
}

}  // namespace

FeatureCounts ScaledCounts(const WorkloadSpec& spec) {
  FeatureCounts counts;
  counts.dense = Scale(spec.dense_features, spec.feature_fraction);
  const uint32_t sparse = Scale(spec.sparse_features, spec.feature_fraction);
  counts.weighted = static_cast<uint32_t>(std::lround(sparse * spec.weighted_ratio));
  if (counts.weighted == 0 && spec.weighted_ratio > 0 && sparse > 1) counts.weighted = 1;
  counts.sparse = sparse - counts.weighted;
  counts.used_sparse = std::min(sparse, Scale(spec.used_sparse_features, spec.feature_fraction));
  // The share of used among all features is what the model publishes, so rounding goes to dense.
  const double stored = spec.dense_features + spec.sparse_features;
  const double used = spec.used_dense_features + spec.used_sparse_features;
  const auto total = static_cast<uint32_t>(std::lround((counts.dense + sparse) * used / stored));
  if (spec.used_dense_features > 0)
    counts.used_dense = std::clamp<uint32_t>(
        total > counts.used_sparse ? total - counts.used_sparse : 1, 1, counts.dense);
  counts.derived = Scale(spec.derived_features, spec.feature_fraction);
  return counts;
}

WorkloadSpec ParseSpec(std::string_view toml_text, const std::string& where) {
  CheckTomlDepth(toml_text, where, ExitCode::kBadData);
  toml::table document;
  try {
    document = toml::parse(toml_text, where);
  } catch (const toml::parse_error& error) {
    Fail(where, error.source(),
         std::string(error.description()) + "; docs/characterize.md describes a spec");
  }
  WorkloadSpec spec;
  const std::vector<std::string> sections = {"table", "sessions", "projection", "pipeline"};
  for (const auto& [key, value] : document) {
    const std::string name(key.str());
    if (name == "name") {
      if (!value.is_string()) Fail(where, value.source(), "'name' is not a string");
      spec.name = *value.value<std::string>();
      continue;
    }
    if (std::find(sections.begin(), sections.end(), name) == sections.end()) {
      std::vector<std::string> valid = sections;
      valid.push_back("name");
      Fail(where, key.source(), fmt::format("unknown key '{}'", name), NearestFix(name, valid));
    }
    if (!value.is_table()) Fail(where, value.source(), fmt::format("'{}' is not a section", name));
    for (const auto& [inner, inner_value] : *value.as_table())
      ReadKey(&spec, where, name, inner.str(), inner_value);
  }
  if (spec.name.empty()) spec.name = "table";
  CheckSpec(spec);
  return spec;
}

WorkloadSpec LoadSpec(const std::string& name_or_path) {
  if (const auto it = BuiltInModels().find(name_or_path); it != BuiltInModels().end())
    return ParseSpec(it->second, it->first + ".toml");
  if (::access(name_or_path.c_str(), F_OK) == 0)
    return ParseSpec(ReadWholeFile(name_or_path, 1 << 20), name_or_path);
  std::vector<std::string> names;
  for (const auto& [name, text] : BuiltInModels()) names.push_back(name);
  throw Error(ExitCode::kUsage,
              fmt::format("unknown workload '{}': neither a model nor a file", name_or_path), {},
              NearestFix(name_or_path, names));
}

WorkloadSpec ForModel(std::string_view name, double feature_fraction, uint64_t rows,
                      uint64_t seed) {
  const auto it = BuiltInModels().find(name);
  if (it == BuiltInModels().end())
    throw Error(ExitCode::kUsage, fmt::format("unknown model '{}'", name));
  WorkloadSpec spec = ParseSpec(it->second, it->first + ".toml");
  spec.feature_fraction = feature_fraction;
  spec.rows = rows;
  spec.seed = seed;
  CheckSpec(spec);
  return spec;
}

void CheckSpec(const WorkloadSpec& spec) {
  const auto require = [](bool good, const std::string& what) {
    if (!good) throw Error(ExitCode::kUsage, what);
  };
  require(spec.rows >= 1 && spec.rows <= 1'000'000'000,
          fmt::format("--rows is {}; it must be 1 to 1000000000", spec.rows));
  require(spec.feature_fraction > 0 && spec.feature_fraction <= 1,
          fmt::format("--features is {}; it must be above 0 and at most 1", spec.feature_fraction));
  require(spec.partitions >= 1 && spec.partitions <= std::min<uint64_t>(spec.rows, 99'999),
          fmt::format("--partitions is {}; it must be 1 to the number of rows, at most 99999",
                      spec.partitions));
  require(spec.stripe_rows >= 1 && spec.stripe_rows <= 10'000'000,
          fmt::format("--stripe-rows is {}; it must be 1 to 10000000", spec.stripe_rows));
  require(spec.dense_features >= 1 && spec.sparse_features >= 1,
          "the spec stores no features; set dense_features and sparse_features in [table]");
  require(spec.used_dense_features <= spec.dense_features &&
              spec.used_sparse_features <= spec.sparse_features,
          "the projection uses more features than the table stores");
  require(spec.small_id_ratio + spec.medium_id_ratio <= 1 + 1e-9,
          "small_id_ratio and medium_id_ratio add up to more than 1");
  require(spec.duplication_low <= spec.duplication_high,
          "duplication_low is above duplication_high");
}

}  // namespace headrace::workloads
