// The include rule of docs/architecture.md: each folder sees itself, the folders listed for it, and
// base.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace headrace {
namespace {

namespace fs = std::filesystem;

// Folder -> path prefixes it may include, besides itself and base/.
const std::map<std::string, std::vector<std::string>> kMayInclude = {
    {"base", {}},
    {"probes", {}},
    {"collectors", {"probes/"}},
    {"reader", {"probes/account/"}},
    {"analysis", {"collectors/store/"}},
    {"dashboards", {"analysis/", "collectors/store/"}},
    {"workloads", {"reader/", "probes/account/"}},
    {"cli", {"analysis/", "collectors/", "dashboards/", "probes/", "reader/", "workloads/"}},
};

std::vector<fs::path> SourcesBelow(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (extension == ".cc" || extension == ".h") files.push_back(entry.path());
  }
  return files;
}

TEST(Layers, EveryIncludeObeysTheTable) {
  const fs::path root = HEADRACE_SOURCE_DIR;
  const std::regex include(R"re(^\s*#include "([^"]+)")re");
  size_t seen = 0;
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const fs::path& file : SourcesBelow(root / folder)) {
      std::ifstream in(file);
      int number = 0;
      for (std::string line; std::getline(in, line);) {
        ++number;
        std::smatch match;
        if (!std::regex_search(line, match, include)) continue;
        ++seen;
        const std::string target = match[1];
        bool ok = target.starts_with("base/") || target.starts_with(folder + "/");
        for (const std::string& prefix : allowed) ok = ok || target.starts_with(prefix);
        // A header that is installed names the one beside it, as both lie together anywhere.
        if (target.find('/') == std::string::npos) ok = fs::exists(file.parent_path() / target);
        EXPECT_TRUE(ok) << fs::relative(file, root).string() << ":" << number << ": " << folder
                        << "/ may not include " << target;
      }
    }
  }
  EXPECT_GT(seen, 50u) << "the walk found too few includes to mean anything";
}

TEST(Layers, HeavyHeadersStayInSourceFiles) {
  const fs::path root = HEADRACE_SOURCE_DIR;
  const std::regex heavy(R"re(#include <(nlohmann/|CLI/|toml\+\+|sqlite3|grpc))re");
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const fs::path& file : SourcesBelow(root / folder)) {
      if (file.extension() != ".h") continue;
      std::ifstream in(file);
      for (std::string line; std::getline(in, line);) {
        EXPECT_FALSE(std::regex_search(line, heavy))
            << fs::relative(file, root).string() << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace headrace
