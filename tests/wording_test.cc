// The words that people read: sentences of the program and of its documents do without phrases that
// trials showed to be read twice. Names in code, keys of JSON, and comments are not looked at.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace headrace {
namespace {

namespace fs = std::filesystem;

struct Phrase {
  const char* pattern;  // ECMAScript, at the bounds of words
  const char* better;
};

constexpr Phrase kPhrases[] = {
    {"told by", "source"},
    {"(is|are|was|were|not) told", "known, reported, measured"},
    {"(told|tells?|telling) (them |all )?apart", "separated, distinguished"},
    {"does not tell", "does not report"},
    {"do not tell", "do not show"},
    {"tells its", "reports its"},
    {"worth of more", "gain from one more"},
    {"limits then", "will limit it next"},
    {"the cores limits", "CPU cores are the limit"},
    {"the (trainer|consumer) limits", "the trainer is the limit"},
    {"as this should be", "normal"},
    {"as it should be", "normal"},
    {"borders? of (a|the) (stage|operator|batch|batches)", "boundary"},
    {"(stage|operator) borders?", "boundary"},
    {"relief", "fixing it"},
    {"witness(es)?", "second check"},
    {"dear(er|est)", "more expensive, most expensive"},
    {"dear", "expensive"},
    {"to be had", "available"},
    {"could have detected", "smallest change that it could detect"},
    {"would hardly decide", "the result would stay open"},
    {"and so is one", "it could be ... or ..."},
    {"says not what", "does not say what"},
    {"a operator", "an operator"},
    {"is it worth to", "is it worth making"},
    {"no matter of its result", "that does not depend on its result"},
    {"machine's mood", "how busy the machine is"},
    {"comes on top", "is added"},
    {"is that of a run", "belongs to a run"},
    {"rates without a share", "utilisation cannot be shown"},
    {"counted by the accounts", "counted by the instrumentation"},
    {"of whom nobody", "unknown"},
    {"gets? dearer", "costs more"},
    {"what is to spare", "what is free"},
    {"in the measure that", "as far as"},
    {"second-hand", "as cited by ..., with page and table"},
    {"more speed there", "a faster ... gains nothing"},
    {"the same holds", "this also applies"},
};

struct Found {
  std::string place, phrase, better;
};

std::vector<std::pair<std::regex, const Phrase*>> Patterns() {
  std::vector<std::pair<std::regex, const Phrase*>> patterns;
  for (const Phrase& phrase : kPhrases) {
    patterns.emplace_back(
        std::regex("\\b" + std::string(phrase.pattern) + "\\b", std::regex::icase), &phrase);
  }
  return patterns;
}

void Look(const std::string& text, const std::string& place,
          const std::vector<std::pair<std::regex, const Phrase*>>& patterns,
          std::vector<Found>* found) {
  for (const auto& [pattern, phrase] : patterns) {
    std::smatch match;
    if (std::regex_search(text, match, pattern))
      found->push_back({place, match.str(), phrase->better});
  }
}

// The prose of a line of code: its string literals that have a blank.
std::string Literals(const std::string& line) {
  static const std::regex kLiteral("\"((?:[^\"\\\\]|\\\\.)*)\"");
  std::string text;
  for (std::sregex_iterator it(line.begin(), line.end(), kLiteral), end; it != end; ++it) {
    if ((*it)[1].str().find(' ') != std::string::npos) text += (*it)[1].str() + " | ";
  }
  return text;
}

std::vector<std::string> LinesOf(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string Said(const std::vector<Found>& found) {
  std::string text;
  for (const Found& one : found) {
    text += one.place + ": \"" + one.phrase + "\"; better: " + one.better + "\n";
  }
  return text;
}

TEST(Wording, SentencesOfTheProgram) {
  const fs::path root = HEADRACE_SOURCE_DIR;
  const auto patterns = Patterns();
  std::vector<Found> found;
  size_t files = 0;
  for (const char* layer : {"analysis", "dashboards", "cli", "experiments", "collectors", "probes",
                            "reader", "workloads", "base"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / layer)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h" && extension != ".def") continue;
      ++files;
      const std::vector<std::string> lines = LinesOf(entry.path());
      for (size_t i = 0; i < lines.size(); ++i) {
        const size_t first = lines[i].find_first_not_of(' ');
        if (first == std::string::npos || lines[i].compare(first, 2, "//") == 0) continue;
        Look(Literals(lines[i]),
             fs::relative(entry.path(), root).string() + ":" + std::to_string(i + 1), patterns,
             &found);
      }
    }
  }
  EXPECT_GT(files, 500u) << "the tree was not found";
  EXPECT_TRUE(found.empty()) << Said(found);
}

TEST(Wording, APhraseIsFoundInASentenceAndNotInANameOrAComment) {
  const auto patterns = Patterns();
  std::vector<Found> found;
  Look(Literals(R"(  return "the rate is told by it";  // witness)"), "x", patterns, &found);
  EXPECT_EQ(found.size(), 2u) << Said(found);  // "is told" and "told by"
  found.clear();
  Look(Literals(R"(  program.Row("relief", "witness");)"), "x", patterns, &found);
  EXPECT_TRUE(found.empty()) << Said(found);
}

}  // namespace
}  // namespace headrace
