#include "cli/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commit.h"  // generated: HEADRACE_COMMIT
#include "collectors/store/embedded_sql.h"
#include "probes/account/account.h"

namespace headrace::cli {
namespace {

// What this build can do and the library it does it with: pairs of "bpf" and "libbpf 1.1.2".
// HEADRACE_FEATURES is "bpf:libbpf 1.1.2|io_uring:liburing 2.3" (cli/CMakeLists.txt).
std::vector<std::pair<std::string, std::string>> Features() {
  std::vector<std::pair<std::string, std::string>> features;
  std::istringstream text(HEADRACE_FEATURES);
  for (std::string word; std::getline(text, word, '|');) {
    const size_t colon = word.find(':');
    features.emplace_back(word.substr(0, colon), word.substr(colon + 1));
  }
  return features;
}

void PrintJson(size_t schema) {
  nlohmann::ordered_json json;
  json["schema"] = "headrace.version/1";
  json["version"] = HEADRACE_VERSION;
  json["commit"] = HEADRACE_COMMIT;
  json["build_type"] = HEADRACE_BUILD_TYPE;
  json["compiler"] = HEADRACE_COMPILER;
  json["architecture"] = HEADRACE_ARCHITECTURE;
  json["sanitizers"] = HEADRACE_SANITIZERS;
  for (const auto& [name, library] : Features()) json["features"][name] = library;
  json["store_schema"] = schema;
  json["account_abi"] = HR_ACCOUNT_ABI;
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

void PrintVersion(bool json) {
  const size_t schema = collectors::SchemaFiles().size();
  if (json) return PrintJson(schema);
  std::vector<std::string> features;
  for (const auto& [name, library] : Features()) {
    features.push_back(fmt::format("{} ({})", name, library));
  }
  const std::string sanitizers = HEADRACE_SANITIZERS;
  fmt::print("headrace {}\n", HEADRACE_VERSION);
  fmt::print("commit        {}\n", HEADRACE_COMMIT);
  fmt::print("build         {}, {}, {}{}\n", HEADRACE_BUILD_TYPE, HEADRACE_COMPILER,
             HEADRACE_ARCHITECTURE, sanitizers.empty() ? "" : ", sanitizers: " + sanitizers);
  fmt::print("features      {}\n", fmt::join(features, ", "));
  fmt::print("store schema  {}\n", schema);
  fmt::print("segment ABI   {}\n", HR_ACCOUNT_ABI);
}

}  // namespace headrace::cli
