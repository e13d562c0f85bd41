#include "workloads/coread_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"

namespace headrace::workloads {
namespace {

constexpr const char* kCoreadSchema = "headrace.coread/1";

}  // namespace

void AppendCoread(const std::string& path, const reader::PipelineSpec& spec) {
  nlohmann::ordered_json line = {{"schema", kCoreadSchema},
                                 {"table", Printable(spec.table, SIZE_MAX)},
                                 {"features", nlohmann::ordered_json::array()},
                                 {"weight", 1}};
  for (const reader::dwrf::FeatureRequest& feature : spec.projection.features)
    line["features"].push_back(reader::dwrf::FeatureName(feature));
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const int fd = OpenGrowingFile(path, O_APPEND);
  // One write: appends are whole.
  const ssize_t written = ::write(fd, text.data(), text.size());
  const int error = errno;
  ::close(fd);
  if (written < 0) throw ErrnoError(error, "append to", path);
  if (static_cast<size_t>(written) != text.size())
    throw Error(ExitCode::kResources, "the line could not be written whole", path,
                "make room, and remove its last line");
}

std::vector<CoreadJob> LoadCoread(const std::string& path) {
  std::vector<CoreadJob> jobs;
  std::istringstream lines(ReadWholeFile(path));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto refuse = [&](const std::string& what) {
      throw Error(ExitCode::kBadData, what, fmt::format("{}:{}", path, number),
                  "a line is what 'headrace run --log-reads' writes");
    };
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("schema") || json["schema"] != kCoreadSchema)
      refuse(fmt::format("is not JSON of schema {}", kCoreadSchema));
    CoreadJob job;
    if (!json.contains("features") || !json["features"].is_array()) refuse("has no features");
    for (const auto& feature : json["features"]) {
      if (!feature.is_string()) refuse("a feature is not a text");
      job.features.push_back(feature.get<std::string>());
    }
    if (json.contains("weight")) {
      if (!json["weight"].is_number() || !(json["weight"].get<double>() > 0))
        refuse("the weight is not a number above 0");
      job.weight = json["weight"].get<double>();
    }
    jobs.push_back(std::move(job));
  }
  if (jobs.empty())
    throw Error(ExitCode::kBadData, "logs no job", path,
                "make one with 'headrace run PIPELINE --log-reads FILE'");
  return jobs;
}

std::map<std::string, std::vector<reader::dwrf::MapKey>> PopularOrder(
    const std::vector<CoreadJob>& jobs,
    const std::map<std::string, std::vector<reader::dwrf::MapKey>>& features) {
  struct Use {
    double weight = 0;
    std::vector<uint32_t> jobs;  // ascending
  };
  std::unordered_map<std::string, Use> uses;
  for (uint32_t j = 0; j < jobs.size(); ++j) {
    for (const std::string& name : jobs[j].features) {
      Use& use = uses[name];
      if (!use.jobs.empty() && use.jobs.back() == j) continue;
      use.weight += jobs[j].weight;
      use.jobs.push_back(j);
    }
  }
  std::map<std::string, std::vector<reader::dwrf::MapKey>> orders;
  for (const auto& [map, keys] : features) {
    std::vector<std::pair<const Use*, reader::dwrf::MapKey>> used;
    for (const reader::dwrf::MapKey& key : keys) {
      const auto use = uses.find(reader::dwrf::FeatureName({map, key}));
      if (use != uses.end()) used.emplace_back(&use->second, key);
    }
    std::sort(used.begin(), used.end(), [](const auto& a, const auto& b) {
      if (a.first->weight != b.first->weight) return a.first->weight > b.first->weight;
      if (a.first->jobs != b.first->jobs) return a.first->jobs < b.first->jobs;
      return a.second < b.second;
    });
    for (const auto& [use, key] : used) orders[map].push_back(key);
  }
  return orders;
}

}  // namespace headrace::workloads
