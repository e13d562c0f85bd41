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
    {"experiments",
     {"analysis/", "collectors/", "dashboards/", "probes/", "reader/", "workloads/"}},
    {"cli",
     {"analysis/", "collectors/", "dashboards/", "experiments/", "probes/", "reader/",
      "workloads/"}},
};

// Folders of analysis/ -> those that they may include, besides themselves. Each answers one
// question with the answers of those before it.
const std::map<std::string, std::set<std::string>> kAnalysisMayInclude = {
    {"statistics", {}},
    {"run", {"statistics"}},
    {"outside", {"statistics", "run"}},
    {"model", {"statistics", "run"}},
    {"program", {"statistics", "run", "model"}},
    {"fleet", {"statistics", "run", "model", "program"}},
    {"tuning", {"statistics", "run", "model", "program"}},
    {"comparison", {"statistics", "run", "model", "outside"}},
    {"advice", {"statistics", "run", "model", "program", "outside"}},
    {"study", {"statistics", "run", "model", "program", "advice"}},
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

TEST(Layers, FoldersOfAnalysisBuildOnTheOnesBeforeThem) {
  const fs::path root = HEADRACE_SOURCE_DIR;
  const std::regex include(R"re(^\s*#include "analysis/(?!thresholds)(?:([a-z]+)/)?)re");
  std::set<std::string> seen;
  for (const fs::path& file : SourcesBelow(root / "analysis")) {
    const std::string name = fs::relative(file, root).string();
    if (name.starts_with("analysis/thresholds.")) continue;  // every folder's, and sees none
    const std::string folder = fs::relative(file, root / "analysis").begin()->string();
    const auto allowed = kAnalysisMayInclude.find(folder);
    ASSERT_NE(allowed, kAnalysisMayInclude.end()) << name << " lies in no folder of the table";
    seen.insert(folder);
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      EXPECT_TRUE(match[1] == folder || allowed->second.contains(match[1]))
          << name << ": analysis/" << folder << " may not include " << line;
    }
  }
  EXPECT_EQ(seen.size(), kAnalysisMayInclude.size()) << "a folder of the table is gone";
}

// A unit is a header and its source. A header that another one includes must not need that one, or
// neither can be read or changed alone.
TEST(Layers, NoUnitsIncludeEachOtherInACircle) {
  const fs::path root = HEADRACE_SOURCE_DIR;
  const std::regex include(R"re(^\s*#include "([^"]+)\.h")re");
  std::map<std::string, std::set<std::string>> includes;  // unit -> units
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const fs::path& file : SourcesBelow(root / folder)) {
      const std::string unit = fs::relative(file, root).replace_extension().string();
      std::set<std::string>& of_unit = includes[unit];
      std::ifstream in(file);
      for (std::string line; std::getline(in, line);) {
        std::smatch match;
        if (std::regex_search(line, match, include) && match[1] != unit) of_unit.insert(match[1]);
      }
    }
  }
  // Units that include nothing that is left are taken away until none is: those that stay are in a
  // circle, or include one.
  for (bool changed = true; changed;) {
    std::set<std::string> done;
    for (const auto& [unit, others] : includes) {
      bool free = true;
      for (const std::string& other : others) free = free && !includes.contains(other);
      if (free) done.insert(unit);
    }
    for (const std::string& unit : done) includes.erase(unit);
    changed = !done.empty();
  }
  // Those of the rest that no other of them includes are in no circle either.
  for (bool changed = true; changed;) {
    std::set<std::string> included;
    for (const auto& [unit, others] : includes) included.insert(others.begin(), others.end());
    changed = std::erase_if(includes,
                            [&](const auto& entry) { return !included.contains(entry.first); }) > 0;
  }
  std::string circle;
  for (const auto& [unit, others] : includes) {
    for (const std::string& other : others) {
      if (includes.contains(other)) circle += "  " + unit + " includes " + other + "\n";
    }
  }
  EXPECT_TRUE(includes.empty()) << circle;
}

TEST(Layers, HeavyHeadersStayInSourceFiles) {
  const fs::path root = HEADRACE_SOURCE_DIR;
  const std::regex heavy(R"re(#include <(nlohmann/(?!json_fwd)|CLI/|toml\+\+|sqlite3|grpc))re");
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
