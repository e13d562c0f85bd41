#include "experiments/table_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/statistics/statistics.h"
#include "base/error.h"
#include "base/file.h"
#include "experiments/dedup_sample.h"
#include "experiments/keys.h"
#include "reader/dwrf/layout_map.h"
#include "reader/fetch/read_plan.h"
#include "reader/pipeline/dedup_plan.h"
#include "reader/pipeline/split.h"
#include "workloads/coread_log.h"

namespace headrace::experiments {
namespace {

namespace dwrf = reader::dwrf;
using analysis::TableFacts;
using Json = nlohmann::ordered_json;

constexpr double kTraffic = 0.8;
constexpr uint64_t kMostFeatures = 50'000;  // read of a sample: more would not fit memory
constexpr int64_t kDedupNs = 2'000'000'000;

bool IsSparse(const reader::Schema& schema, const std::string& column) {
  const auto node = schema.FindColumn(column);
  if (!node || schema.node(*node).kind != reader::TypeKind::kMap) return false;
  const auto& children = schema.node(*node).children;
  if (children.size() < 2) return false;
  const reader::TypeKind value = schema.node(children[1]).kind;
  return value == reader::TypeKind::kList || value == reader::TypeKind::kMap;
}

// Sizes of the streams that the projection reads, and of the reads that they are joined to.
void ReadSizes(const reader::Table& table, const reader::PipelineSpec& spec, TableFacts* facts) {
  std::vector<double> streams, reads;
  for (const auto& file : table.files) {
    for (size_t s = 0; s < file->num_stripes(); ++s) {
      const dwrf::StripePlan plan = dwrf::MakePlan(*file, file->ReadStripe(s), spec.projection);
      for (const auto& stream : plan.streams) streams.push_back(static_cast<double>(stream.length));
      const reader::ReadPlan joined =
          reader::PlanReads(plan.ranges(), {spec.fetch.max_gap_bytes, spec.fetch.max_read_bytes});
      for (const reader::ByteRange& read : joined.reads)
        reads.push_back(static_cast<double>(read.length));
    }
  }
  facts->streams = analysis::SizesOf(std::move(streams));
  facts->reads = analysis::SizesOf(std::move(reads));
}

// What each feature is read, by its name: of a log of jobs, or as the generator planned it.
std::map<std::string, double> ReadsOf(const std::string& table, const FactsOptions& options,
                                      TableFacts* facts) {
  std::map<std::string, double> reads;
  if (!options.coread.empty()) {
    for (const workloads::CoreadJob& job : workloads::LoadCoread(options.coread))
      for (const std::string& feature : job.features) reads[feature] += job.weight;
    facts->hot_told_by = "a log of jobs";
    if (reads.empty()) facts->hot_reason = "the log of jobs names no feature";
    return reads;
  }
  const std::string path = (std::filesystem::path(table) / "table.json").string();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    facts->hot_reason = "no log tells what other jobs read: --coread FILE (run --log-reads FILE)";
    return reads;
  }
  const Json json = Json::parse(ReadWholeFile(path), nullptr, false);
  if (!json.is_object() || !json.contains("features") || !json["features"].is_array()) {
    facts->hot_reason = "table.json beside the table has no popularity of features";
    return reads;
  }
  for (const Json& entry : json["features"]) {
    if (!entry.is_object()) continue;
    const auto name = entry.find("feature");
    const auto popularity = entry.find("popularity");
    if (name == entry.end() || !name->is_string() || popularity == entry.end() ||
        !popularity->is_number())
      continue;
    reads[name->get<std::string>()] = popularity->get<double>();
  }
  facts->hot_told_by = "the popularity that the generator planned (table.json)";
  if (reads.empty()) facts->hot_reason = "table.json beside the table has no popularity";
  return reads;
}

// Share of the bytes that serves 80 % of the bytes read, the most read features first; of the last
// one the part that is needed.
std::optional<double> HotRatio(std::vector<std::pair<double, double>> features) {  // reads, bytes
  std::sort(features.begin(), features.end(), std::greater<>());
  double bytes = 0, traffic = 0;
  for (const auto& [reads, size] : features) {
    bytes += size;
    traffic += reads * size;
  }
  if (bytes <= 0 || traffic <= 0) return std::nullopt;
  double hot = 0, served = 0;
  for (const auto& [reads, size] : features) {
    const double all = reads * size, needed = kTraffic * traffic - served;
    if (all >= needed) return (hot + size * (all > 0 ? needed / all : 0)) / bytes;
    hot += size;
    served += all;
  }
  return 1.0;
}

// Coverage and lengths of the features, stored and used.
class RowSample {
 public:
  void Add(const reader::FlatMapBatch& batch) {
    rows_ += batch.rows;
    for (const auto& column : batch.dense) present_[column.name] += column.present.count;
    for (const auto& column : batch.sparse) {
      present_[column.name] += column.present.count;
      std::vector<double>& lengths = lengths_[column.name];
      for (uint64_t row = 0; row < batch.rows; ++row)
        if (column.present.Get(row))
          lengths.push_back(static_cast<double>(column.offsets[row + 1] - column.offsets[row]));
    }
  }
  uint64_t rows() const { return rows_; }

  struct Found {
    std::optional<double> coverage, mean, p99;
  };
  // Statistics over all features, or over those in `names`.
  Found Of(const std::set<std::string>* names) const {
    Found found;
    std::vector<double> coverages, all;
    for (const auto& [name, present] : present_)
      if (names == nullptr || names->count(name) > 0)
        coverages.push_back(static_cast<double>(present) / static_cast<double>(rows_));
    for (const auto& [name, lengths] : lengths_)
      if (names == nullptr || names->count(name) > 0)
        all.insert(all.end(), lengths.begin(), lengths.end());
    if (!coverages.empty()) found.coverage = analysis::Mean(coverages);
    if (all.empty()) return found;
    found.mean = analysis::Mean(all);
    found.p99 = analysis::Quantile(std::move(all), 0.99);
    return found;
  }

 private:
  uint64_t rows_ = 0;
  std::map<std::string, uint64_t> present_;
  std::map<std::string, std::vector<double>> lengths_;
};

void SampleRows(const reader::Table& table, const dwrf::Projection& all,
                const std::set<std::string>& used, const FactsOptions& options,
                const std::function<bool()>& stop, TableFacts* facts) {
  if (all.features.empty()) {
    facts->sample_reason = "the table has no flattened map";
    return;
  }
  if (all.features.size() > kMostFeatures) {
    facts->sample_reason =
        fmt::format("more than {} features: no sample of all of them is read", kMostFeatures);
    return;
  }
  RowSample sample;
  for (const reader::Split& split : table.splits) {
    if (sample.rows() > 0 && sample.rows() + split.rows > options.sample_rows) break;
    if (stop && stop()) throw Error(ExitCode::kInterrupted, "interrupted");
    sample.Add(reader::ReadSplit(table, split, all));
  }
  if (sample.rows() == 0) {
    facts->sample_reason = "the table has no rows";
    return;
  }
  facts->sampled_rows = sample.rows();
  const RowSample::Found stored = sample.Of(nullptr), taken = sample.Of(&used);
  facts->coverage = stored.coverage;
  facts->list_length_mean = stored.mean;
  facts->list_length_p99 = stored.p99;
  facts->used_coverage = taken.coverage;
  facts->used_list_length_mean = taken.mean;
  facts->used_list_length_p99 = taken.p99;
  facts->sample_reason = "the sample holds no such feature";
}

void SampleDuplication(const reader::Table& table, const reader::PipelineSpec& spec,
                       const std::function<bool()>& stop, TableFacts* facts) {
  DedupSampleOptions options;
  options.dedup.scope = spec.dedup.scope;
  options.batch_rows = spec.batch_rows;
  options.rows = 32'768;
  options.lists = 1 << 24;
  const auto found = SampleDedup(table, spec.projection, options, kDedupNs, stop);
  if (!found) {
    facts->duplication_reason =
        "the projection has no sparse feature, or the table no column session_id";
    return;
  }
  facts->duplication_now = found->now;
  facts->duplication_clustered = found->clustered;
}

}  // namespace

TableFacts ReadTableFacts(const reader::PipelineSpec& spec, const FactsOptions& options,
                          const std::function<bool()>& stop) {
  if (spec.synthetic || spec.table.empty())
    throw Error(ExitCode::kUsage, "its elements are synthetic: there is no table to characterize",
                spec.path, "give a pipeline that reads a table");
  const std::string& keys = options.keys.empty() ? spec.keys : options.keys;
  const reader::Table table = reader::OpenTable(spec.table, spec.io, {}, OpenWithKeys(keys));
  TableFacts facts;
  facts.table = spec.table;
  facts.rows = table.rows;
  dwrf::LayoutOptions mapping;
  mapping.projection = &spec.projection;
  mapping.max_gap_bytes = spec.fetch.max_gap_bytes;
  mapping.max_read_bytes = spec.fetch.max_read_bytes;
  const dwrf::LayoutMap map = dwrf::MapLayout(table.files, mapping);
  for (const dwrf::FileLayout& file : map.files) {
    ++facts.files;
    facts.stripes += file.stripes;
    facts.bytes += static_cast<double>(file.file_bytes);
  }
  const reader::Schema& schema = table.files[0]->schema();
  dwrf::Projection all;
  std::set<std::string> used;
  std::vector<std::pair<double, double>> traffic;
  const std::map<std::string, double> reads = ReadsOf(spec.table, options, &facts);
  for (const dwrf::KeyLayout& key : map.keys) {
    const std::string& column = map.columns[key.column].name;
    const dwrf::FeatureRequest feature{column, key.key};
    const auto bytes = static_cast<double>(key.data.stored_bytes);
    const bool sparse = IsSparse(schema, column);
    (sparse ? facts.stored_sparse : facts.stored_dense) += 1;
    facts.feature_bytes += bytes;
    const std::string name = dwrf::FeatureName(feature);
    if (key.wanted) {
      (sparse ? facts.used_sparse : facts.used_dense) += 1;
      facts.used_bytes += bytes;
      used.insert(name);
    }
    if (!map.columns[key.column].encrypted) all.features.push_back(feature);
    const auto found = reads.find(name);
    traffic.emplace_back(found != reads.end() ? found->second : 0, bytes);
  }
  if (!reads.empty()) {
    facts.hot_bytes_ratio = HotRatio(std::move(traffic));
    if (!facts.hot_bytes_ratio) facts.hot_reason = "no feature of the table is in the log";
  }
  std::set<std::string> derived;
  for (const reader::TransformSpec& transform : spec.transforms)
    if (used.count(transform.output) == 0) derived.insert(transform.output);
  facts.derived = static_cast<double>(derived.size());
  ReadSizes(table, spec, &facts);
  SampleRows(table, all, used, options, stop, &facts);
  SampleDuplication(table, spec, stop, &facts);
  return facts;
}

}  // namespace headrace::experiments
