#include "workloads/pipeline_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace headrace::workloads {
namespace {

using reader::FeatureKind;

constexpr uint32_t kMaxIds = 50;  // of a list, after FirstX
constexpr uint64_t kHashSpace = 1'000'000;

std::vector<const Feature*> Used(const GeneratedTable& table, FeatureKind kind) {
  std::vector<const Feature*> used;
  for (size_t i = 0; i < table.features.size(); ++i)
    if (table.used[i] && table.features[i].kind == kind) used.push_back(&table.features[i]);
  return used;
}

std::string Keys(const std::vector<const Feature*>& features) {
  std::string text;
  for (size_t i = 0; i < features.size(); ++i) {
    if (i > 0) text += i % 20 == 0 ? ",\n  " : ", ";
    text += std::to_string(features[i]->key);
  }
  return "[" + text + "]";
}

void AppendTransform(std::string* text, const std::string& output, const std::string& op,
                     const std::vector<std::string>& inputs, const std::string& parameters) {
  *text += fmt::format("[[transform]]\noutput = \"{}\"\nop = \"{}\"\ninputs = [\"{}\"]\n{}\n",
                       output, op, fmt::join(inputs, "\", \""), parameters);
}

// Derived features are made from raw ids and values, before those are normalised. The mix leans on
// n-grams, which is where the published models spend most of their transform cycles.
void AppendDerived(std::string* text, uint32_t count, const std::vector<const Feature*>& dense,
                   const std::vector<const Feature*>& sparse) {
  for (uint32_t i = 0; i < count; ++i) {
    const std::string output = fmt::format("derived:{}", i + 1);
    const auto list = [&](uint32_t offset) {
      return FeatureColumn(*sparse[(i + offset) % sparse.size()]);
    };
    const uint32_t kind = i % 10;
    if (kind == 9 || sparse.empty()) {
      AppendTransform(text, output, "get_local_hour", {"timestamp"}, "offset_hours = -8\n");
    } else if (kind == 3 && !dense.empty()) {
      AppendTransform(text, output, "bucketize", {FeatureColumn(*dense[i % dense.size()])},
                      "borders = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, "
                      "20.0]\n");
    } else if (kind == 5 && sparse.size() > 1) {
      AppendTransform(text, output, "id_list_transform", {list(0), list(1)},
                      "mode = \"intersection\"\n");
    } else if (kind == 6 && sparse.size() > 1) {
      AppendTransform(text, output, "id_list_transform", {list(0), list(1)}, "mode = \"union\"\n");
    } else if (kind == 7) {
      AppendTransform(text, output, "positive_modulus", {list(0)}, "divisor = 100003\n");
    } else if (kind == 8) {
      AppendTransform(text, output, "map_id", {list(0)}, "size = 65536\n");
    } else {
      AppendTransform(text, output, "ngram", {list(0)}, fmt::format("n = {}\n", 2 + i % 2));
    }
  }
}

void AppendSparse(std::string* text, const std::vector<const Feature*>& features) {
  for (const Feature* feature : features) {
    const std::string column = FeatureColumn(*feature);
    if (feature->mean_length > kMaxIds / 2.0)
      AppendTransform(text, column, "first_x", {column}, fmt::format("count = {}\n", kMaxIds));
    AppendTransform(text, column, "sigrid_hash", {column},
                    fmt::format("salt = {}\nmax = {}\n", feature->key, kHashSpace));
  }
}

void AppendDense(std::string* text, const std::vector<const Feature*>& features) {
  for (const Feature* feature : features) {
    const std::string column = FeatureColumn(*feature);
    switch (feature->shape) {
      case QuantileTable::Shape::kCount:
        AppendTransform(text, column, "box_cox", {column}, "lambda = 0.5\nshift = 1.0\n");
        break;
      case QuantileTable::Shape::kRatio:
        AppendTransform(text, column, "logit", {column}, "epsilon = 0.0001\n");
        break;
      default:
        AppendTransform(text, column, "clamp", {column}, "low = -3.0\nhigh = 3.0\n");
    }
  }
}

}  // namespace

std::string PipelineText(const GeneratedTable& table) {
  const WorkloadSpec& spec = table.spec;
  const auto dense = Used(table, FeatureKind::kDense);
  const auto sparse = Used(table, FeatureKind::kSparse);
  const auto weighted = Used(table, FeatureKind::kWeightedSparse);
  const double feature_share = static_cast<double>(dense.size() + sparse.size() + weighted.size()) /
                               static_cast<double>(table.features.size());
  const double byte_share =
      static_cast<double>(table.used_bytes()) / static_cast<double>(table.feature_bytes());
  const bool encrypted = !table.keys_place.empty();
  std::string text = fmt::format(
      R"(# {0}: reads {1:.1f} % of the stored features, which hold {2:.1f} % of the stored bytes.
# Run it:            headrace run pipeline.toml
# What limits it:    headrace report latest
# Change a setting:  headrace run pipeline.toml --set decode.parallelism=2

[pipeline]
name = "{0}"
order = "any"          # "file": batches come in the order of the table
batch_rows = {3}
seed = {4}

[source]
table = "."            # the folder of part-*.dwrf, relative to this file
{9}epochs = 1             # 0: for ever

[projection]
label = "label"
columns = ["session_id", "timestamp"]

[projection.maps]      # keys of the flattened maps
dense = {5}
sparse = {6}
weighted = {7}

# Stages run at the same time, each on `parallelism` threads; `queue` is how many finished elements
# may wait for the next stage.

[[stage]]
name = "fetch"
operators = ["fetch"]
parallelism = 1
queue = 4

[[stage]]
name = "decode"
operators = [{10}"decompress", "decode", "extract"]
parallelism = 1
queue = 4

[[stage]]
name = "transform"
operators = ["transform"]
parallelism = 1
queue = 4

[[stage]]
name = "batch"
operators = ["batch", "tensorize"]
parallelism = 1
queue = 8

[consumer]
step = "{8}"             # time of one training step; "0": takes batches as fast as they come

)",
      spec.name, 100 * feature_share, 100 * byte_share, static_cast<uint64_t>(spec.batch_rows),
      spec.seed, Keys(dense), Keys(sparse), Keys(weighted), spec.step,
      encrypted ? fmt::format("keys = {}  # where the keys are; they are in no file of the table\n",
                              nlohmann::json(table.keys_place)
                                  .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
                : "",
      encrypted ? "\"decrypt\", " : "");
  text += "# Derived features, from raw values.\n\n";
  AppendDerived(&text, ScaledCounts(spec).derived, dense, sparse);
  text +=
      "# Sparse normalisation: at most this many ids of a list, hashed into the embedding "
      "table.\n\n";
  AppendSparse(&text, sparse);
  AppendSparse(&text, weighted);
  text += "# Dense normalisation.\n\n";
  AppendDense(&text, dense);
  return text;
}

std::string TableJson(const GeneratedTable& table) {
  const WorkloadSpec& spec = table.spec;
  const auto round = [](double value) { return std::round(value * 1e6) / 1e6; };
  nlohmann::ordered_json json;
  json["schema"] = "headrace.table/1";
  json["name"] = spec.name;
  json["rows"] = spec.rows;
  json["feature_fraction"] = spec.feature_fraction;
  json["seed"] = spec.seed;
  json["partitions"] = spec.partitions;
  if (spec.optimize != reader::dwrf::LayoutGoal::kFixed)
    json["optimize"] = reader::dwrf::LayoutGoalName(spec.optimize);
  json["compression"] = spec.compression;
  json["stripe_rows"] = spec.stripe_rows;
  json["clustered"] = spec.clustered;
  const FeatureCounts counts = ScaledCounts(spec);
  json["targets"] = {
      {"dense_features", counts.dense},
      {"sparse_features", counts.sparse + counts.weighted},
      {"weighted_features", counts.weighted},
      {"used_dense_features", counts.used_dense},
      {"used_sparse_features", counts.used_sparse},
      {"derived_features", counts.derived},
      {"coverage_mean", spec.coverage_mean},
      {"list_length_mean", spec.list_length_mean},
      {"rows_per_session", spec.rows_per_session},
      {"bytes_used_ratio", spec.bytes_used_ratio},
      {"hot_bytes_ratio", spec.hot_bytes_ratio},
  };
  json["written"] = {
      {"files", table.files},
      {"stripes", table.stripes},
      {"file_bytes", table.file_bytes},
      {"feature_bytes", table.feature_bytes()},
      {"used_bytes", table.used_bytes()},
  };
  for (const FeatureKind kind :
       {FeatureKind::kDense, FeatureKind::kSparse, FeatureKind::kWeightedSparse}) {
    auto& keys = json["projection"][ColumnName(kind)] = nlohmann::ordered_json::array();
    for (const Feature* feature : Used(table, kind)) keys.push_back(feature->key);
  }
  for (size_t i = 0; i < table.features.size(); ++i) {
    const Feature& feature = table.features[i];
    nlohmann::ordered_json entry = {
        {"feature", FeatureColumn(feature)},        {"used", static_cast<bool>(table.used[i])},
        {"coverage", round(feature.coverage)},      {"repeat", round(feature.repeat)},
        {"popularity", round(table.popularity[i])}, {"stored_bytes", table.stored_bytes[i]}};
    if (feature.kind != FeatureKind::kDense) {
      entry["mean_length"] = round(feature.mean_length);
      entry["ids"] = IdClassName(feature.ids);
    }
    json["features"].push_back(entry);
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::workloads
