#include "experiments/study_files.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "experiments/json_fault.h"

namespace headrace::experiments {
namespace {

using analysis::TableFacts;
using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "headrace.study/1";
constexpr const char* kNotFacts = "is not what characterize kept of a table";

// Nothing where it is no JSON.
Json Parse(const std::string& text) {
  return FindJsonFault(text) ? Json(nullptr) : Json::parse(text);
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

const std::vector<std::pair<const char*, std::optional<double> RungPairs::*>> kBudget = {
    {"memory_bytes", &RungPairs::memory_bytes}, {"unbounded_bytes", &RungPairs::unbounded_bytes}};

std::optional<int64_t> RunId(const Json& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  const auto run_id = json.get<uint64_t>();
  if (run_id == 0 || run_id > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  return static_cast<int64_t>(run_id);
}

}  // namespace

std::string InputsJson(const StudyInputs& inputs) {
  Json json = {{"schema", kSchema}};
  json["inputs"] = inputs;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<StudyInputs> ParseInputs(const std::string& text) {
  const Json json = Parse(text);
  if (!json.is_object() || !json.contains("schema") || json["schema"] != kSchema ||
      !json.contains("inputs") || !json["inputs"].is_object())
    return std::nullopt;
  StudyInputs inputs;
  for (const auto& [name, value] : json["inputs"].items())
    if (value.is_string()) inputs[name] = value.get<std::string>();
  return inputs;
}

std::string RunJson(int64_t run_id) { return Json{{"run_id", run_id}}.dump() + "\n"; }

int64_t ParseRun(const std::string& text) {
  const Json json = Parse(text);
  const std::optional<int64_t> run_id =
      json.is_object() && json.contains("run_id") ? RunId(json["run_id"]) : std::nullopt;
  if (!run_id) throw Error(ExitCode::kBadData, "is not what characterize kept of a run");
  return *run_id;
}

std::string PairsJson(const RungPairs& pairs) {
  Json json = Json::object();
  if (!pairs.left_out.empty()) json["left_out"] = pairs.left_out;
  if (!pairs.runs.empty()) json["pairs"] = pairs.runs;
  for (const auto& [name, member] : kBudget)
    if (pairs.*member) json[name] = *(pairs.*member);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

RungPairs ParsePairs(const std::string& text) {
  const Error damaged(ExitCode::kBadData, "is not what characterize kept of pairs");
  const Json json = Parse(text);
  RungPairs pairs;
  if (!json.is_object()) throw damaged;
  if (json.contains("left_out")) {
    if (!json["left_out"].is_string()) throw damaged;
    pairs.left_out = json["left_out"].get<std::string>();
  }
  if (json.contains("pairs")) {
    if (!json["pairs"].is_array()) throw damaged;
    for (const Json& pair : json["pairs"]) {
      if (!pair.is_array() || pair.size() != 2) throw damaged;
      const std::optional<int64_t> a = RunId(pair[0]), b = RunId(pair[1]);
      if (!a || !b) throw damaged;
      pairs.runs.emplace_back(*a, *b);
    }
  }
  for (const auto& [name, member] : kBudget) {
    if (!json.contains(name)) continue;
    if (!json[name].is_number()) throw damaged;
    pairs.*member = json[name].get<double>();
    if (!(*(pairs.*member) > 0) || !std::isfinite(*(pairs.*member))) throw damaged;
  }
  if (pairs.runs.empty() == pairs.left_out.empty()) throw damaged;
  return pairs;
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
    const Json json = Parse(text);
    for (const auto& [name, member] : kTexts) facts.*member = json.at(name).get<std::string>();
    for (const auto& [name, member] : kCounts) facts.*member = ParseCount(json.at(name));
    for (const auto& [name, member] : kNumbers) facts.*member = ParseNumber(json.at(name));
    for (const auto& [name, member] : kMaybe)
      if (!json.at(name).is_null()) facts.*member = ParseNumber(json.at(name));
    facts.streams = ParseSizes(json.at("streams"));
    facts.reads = ParseSizes(json.at("reads"));
  } catch (const Json::exception&) {
    throw Error(ExitCode::kBadData, kNotFacts, where, "start again with --fresh");
  } catch (const Error& error) {
    throw error.Within(where);
  }
  return facts;
}

GeneratedTable ParseGenerated(const std::string& text) {
  const Json json = Parse(text);
  GeneratedTable table;
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return table;
  table.model = json["name"].get<std::string>();
  if (!json.contains("feature_fraction") || !json["feature_fraction"].is_number()) return table;
  const double ratio = json["feature_fraction"].get<double>();
  if (ratio > 0 && ratio <= 1) table.feature_ratio = ratio;
  return table;
}

}  // namespace headrace::experiments
