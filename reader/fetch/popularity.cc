#include "reader/fetch/popularity.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace headrace::reader {

std::vector<std::string> PopularFeaturesOf(const std::string& text, const std::string& path) {
  std::map<std::string, double> weights;
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const nlohmann::json job = nlohmann::json::parse(line, nullptr, false);
    const bool good = job.is_object() && job.contains("features") && job["features"].is_array() &&
                      (!job.contains("weight") || job["weight"].is_number()) &&
                      std::all_of(job["features"].begin(), job["features"].end(),
                                  [](const nlohmann::json& name) { return name.is_string(); });
    if (!good) {
      throw Error(ExitCode::kBadData, R"(is not {"features": ["sparse:17", ...], "weight": 1})",
                  fmt::format("{}:{}", path, number));
    }
    for (const nlohmann::json& name : job["features"])
      weights[name.get<std::string>()] += job.value("weight", 1.0);
  }
  std::vector<std::string> names;
  for (const auto& [name, weight] : weights) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return weights[a] > weights[b];
  });
  return names;
}

std::vector<std::string> PopularFeatures(const std::string& path) {
  return PopularFeaturesOf(ReadWholeFile(path), path);
}

std::vector<uint32_t> StreamsOf(const dwrf::FeaturePlan& feature) {
  std::vector<uint32_t> streams;
  if (!feature.in_stripe) return streams;
  const auto add = [&](uint32_t stream) {
    if (stream != dwrf::NodePlan::kNone) streams.push_back(stream);
  };
  add(feature.map_present);
  add(feature.in_map);
  for (const dwrf::NodePlan* node : {&feature.value, &feature.item, &feature.weight}) {
    for (const uint32_t stream :
         {node->present, node->data, node->length, node->dictionary, node->in_dictionary}) {
      // Nodes that the feature's kind does not have are as they were made, without streams.
      add(stream);
    }
  }
  return streams;
}

std::set<std::string> FeaturesThatFit(const std::vector<std::string>& popular,
                                      const dwrf::StripePlan& plan, double stripes,
                                      uint64_t budget_bytes) {
  std::map<std::string, const dwrf::FeaturePlan*> features;
  for (const dwrf::FeaturePlan& feature : plan.features) features[feature.name] = &feature;
  std::set<std::string> kept;
  std::set<uint32_t> counted;  // streams that features share
  double left = static_cast<double>(budget_bytes);
  for (const std::string& name : popular) {
    const auto place = features.find(name);
    if (place == features.end()) continue;
    double bytes = 0;
    const std::vector<uint32_t> streams = StreamsOf(*place->second);
    for (const uint32_t stream : streams) {
      if (counted.count(stream) == 0)
        bytes += stripes * static_cast<double>(plan.streams[stream].length);
    }
    if (bytes > left) continue;
    left -= bytes;
    kept.insert(name);
    counted.insert(streams.begin(), streams.end());
  }
  return kept;
}

}  // namespace headrace::reader
