#include "cli/table_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/statistics.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/keys_option.h"
#include "cli/layout_dedup.h"
#include "reader/dwrf/layout_map.h"
#include "reader/fetch/read_plan.h"
#include "reader/pipeline/dedup_plan.h"
#include "reader/pipeline/split.h"
#include "workloads/coread_log.h"

namespace headrace::cli {
namespace {

namespace dwrf = reader::dwrf;
using analysis::TableFacts;
using Json = nlohmann::ordered_json;

constexpr const char* kNotFacts = "is not what characterize kept of a table";
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
    facts->hot_reason = "table.json beside the table tells no popularity of features";
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
  if (reads.empty()) facts->hot_reason = "table.json beside the table tells no popularity";
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
  // Of all features, or of those named.
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
  DedupReportOptions options;
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

Json SizesJson(const analysis::SizeFigures& sizes) {
  return {{"count", sizes.count}, {"mean", sizes.mean}, {"deviation", sizes.deviation},
          {"p5", sizes.p5},       {"p25", sizes.p25},   {"p50", sizes.p50},
          {"p75", sizes.p75},     {"p95", sizes.p95}};
}

// A number of another kind would be converted in silence, and one below 0 to a huge one.
uint64_t ParseCount(const Json& json) {
  if (!json.is_number_unsigned()) throw Error(ExitCode::kBadData, kNotFacts);
  return json.get<uint64_t>();
}

double ParseNumber(const Json& json) {
  const double value = json.get<double>();
  if (!(value >= 0) || !std::isfinite(value)) throw Error(ExitCode::kBadData, kNotFacts);
  return value;
}

analysis::SizeFigures ParseSizes(const Json& json) {
  analysis::SizeFigures sizes;
  sizes.count = ParseCount(json.at("count"));
  sizes.mean = ParseNumber(json.at("mean"));
  sizes.deviation = ParseNumber(json.at("deviation"));
  sizes.p5 = ParseNumber(json.at("p5"));
  sizes.p25 = ParseNumber(json.at("p25"));
  sizes.p50 = ParseNumber(json.at("p50"));
  sizes.p75 = ParseNumber(json.at("p75"));
  sizes.p95 = ParseNumber(json.at("p95"));
  return sizes;
}

// Members that go to text and back by their name.
const std::vector<std::pair<const char*, uint64_t TableFacts::*>> kCounts = {
    {"files", &TableFacts::files},
    {"stripes", &TableFacts::stripes},
    {"rows", &TableFacts::rows},
    {"sampled_rows", &TableFacts::sampled_rows}};
const std::vector<std::pair<const char*, double TableFacts::*>> kNumbers = {
    {"bytes", &TableFacts::bytes},
    {"feature_bytes", &TableFacts::feature_bytes},
    {"used_bytes", &TableFacts::used_bytes},
    {"stored_dense", &TableFacts::stored_dense},
    {"stored_sparse", &TableFacts::stored_sparse},
    {"used_dense", &TableFacts::used_dense},
    {"used_sparse", &TableFacts::used_sparse},
    {"derived", &TableFacts::derived}};
const std::vector<std::pair<const char*, std::optional<double> TableFacts::*>> kMaybe = {
    {"coverage", &TableFacts::coverage},
    {"used_coverage", &TableFacts::used_coverage},
    {"list_length_mean", &TableFacts::list_length_mean},
    {"list_length_p99", &TableFacts::list_length_p99},
    {"used_list_length_mean", &TableFacts::used_list_length_mean},
    {"used_list_length_p99", &TableFacts::used_list_length_p99},
    {"hot_bytes_ratio", &TableFacts::hot_bytes_ratio},
    {"duplication_now", &TableFacts::duplication_now},
    {"duplication_clustered", &TableFacts::duplication_clustered}};
const std::vector<std::pair<const char*, std::string TableFacts::*>> kTexts = {
    {"table", &TableFacts::table},
    {"hot_told_by", &TableFacts::hot_told_by},
    {"sample_reason", &TableFacts::sample_reason},
    {"hot_reason", &TableFacts::hot_reason},
    {"duplication_reason", &TableFacts::duplication_reason}};

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

std::string FactsJson(const TableFacts& facts) {
  Json json;
  for (const auto& [name, member] : kTexts) json[name] = facts.*member;
  for (const auto& [name, member] : kCounts) json[name] = facts.*member;
  for (const auto& [name, member] : kNumbers) json[name] = facts.*member;
  for (const auto& [name, member] : kMaybe)
    json[name] = facts.*member ? Json(*(facts.*member)) : Json();
  json["streams"] = SizesJson(facts.streams);
  json["reads"] = SizesJson(facts.reads);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

TableFacts ParseFacts(const std::string& text, const std::string& where) {
  TableFacts facts;
  try {
    const Json json = Json::parse(text);
    for (const auto& [name, member] : kTexts) facts.*member = json.at(name).get<std::string>();
    for (const auto& [name, member] : kCounts) facts.*member = ParseCount(json.at(name));
    for (const auto& [name, member] : kNumbers) facts.*member = ParseNumber(json.at(name));
    for (const auto& [name, member] : kMaybe)
      if (!json.at(name).is_null()) facts.*member = ParseNumber(json.at(name));
    facts.streams = ParseSizes(json.at("streams"));
    facts.reads = ParseSizes(json.at("reads"));
  } catch (const Json::exception&) {
    throw Error(ExitCode::kBadData, kNotFacts, where, "begin anew: --fresh");
  } catch (const Error& error) {
    throw error.Within(where);
  }
  return facts;
}

}  // namespace headrace::cli
