// What people read is plain English (CONTRIBUTING.md): no string of the programs and no paragraph
// of the documents has one of these phrases. Each of them was printed once and made a reader stop.
// Comments in code are not read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace {
namespace {

namespace fs = std::filesystem;

struct Wording {
  const char*
      phrase;  // ECMAScript, matched in lower case at a word's beginning; begins with letters
  const char* better;
  std::vector<std::string> but = {};  // beginnings of paths where it is the right word
};

// Where a process that takes batches is meant, which need not be a trainer.
const std::vector<std::string> kConsumers = {
    "reader/",         "probes/",          "cli/consume.cc",  "docs/accounts.md",
    "docs/batches.md", "docs/delivery.md", "docs/outside.md", "docs/pipeline.md",
    "docs/python.md",  "docs/testing.md"};
// Where the segment of shared memory is meant, and its format.
const std::vector<std::string> kSegments = {"docs/accounts.md", "docs/architecture.md",
                                            "docs/collector.md", "docs/testing.md"};

const std::vector<Wording> kWordings = {
    // Words of ours for what has a name.
    {"accounts?\\b(?! for)", "instrumentation, counter", kSegments},
    {"accounting level", "measurement level"},
    {"border(s|ed)?\\b(?!-)(?! ?=)", "boundary", {"docs/transforms.md", "reader/transforms/"}},
    {"dear(er|est)?\\b", "expensive, costly"},
    {"grades?\\b", "severity"},
    {"how it was told", "source, how it was measured"},
    {"recalled\\b", "unverified"},
    {"relie(f|fs|ve|ved|ves|ving)\\b", "fix, speeding up"},
    {"rights\\b", "privileges, capabilities"},
    {"second-hand\\b", "secondary source"},
    {"the consumer\\b", "the trainer", kConsumers},
    {"consumer wait\\b", "trainer wait"},
    {"told by\\b", "source"},
    {"witness(es|ed)?\\b", "second check"},
    {"worth of\\b", "gain from"},

    // What limits, and what a change gives.
    {"cores limit(s)?\\b", "CPU cores are the limit"},
    {"gains? nothing", "does not help"},
    {"gains? hardly", "gains almost nothing"},
    {"gain is hardly", "gain is almost"},
    {"hardly more\\b", "barely more"},
    {"is (it )?worth to\\b", "is worth doing"},
    {"limits? then\\b", "what will limit it next"},
    {"limited then\\b", "what will limit it next"},
    {"limited by \\S+ then\\b", "then limited by"},
    {"more gain less\\b", "more would gain less than"},
    {"no setting that fits", "no setting within the budget"},
    {"worth nothing\\b", "do not help"},
    {"would hardly decide", "would probably not decide it"},

    // What is not known.
    {"and so is one\\b", "it could be A or B"},
    {"could have detected", "smallest change this comparison could detect"},
    {"does not tell\\b", "does not report"},
    {"nobody saw\\b", "unknown, not observed"},
    {"not told\\b", "unknown, not separated"},
    {"says? not\\b", "does not say"},
    {"tells (no|its|not)\\b", "reports no, does not report"},
    {"to be had\\b", "available"},
    {"what could not be[^ ]", "what could not be measured"},
    {"without one this is\\b", "normal without one"},

    {"t(old|ells?|elling) (them |all )?apart", "separated, distinguished"},
    {"in the measure that", "as far as"},
    {"more speed there", "a faster ... does not help"},
    {"rates without a share", "utilisation cannot be shown"},

    // One statement a sentence, with a subject and a verb.
    {"a operator\\b", "an operator"},
    {"all the same\\b", "anyway, even so"},
    {"anew\\b", "again"},
    {"at the edge of", "about as much as"},
    {"came of it", "its result"},
    {"ever after\\b", "from then on"},
    {"nothing is to be gained", "nothing more is gained"},
    {"are no (batch|such|reason|exchange|row)\\b", "are not"},
    {"as it should be", "normal"},
    {"at a whim", "at random"},
    {"bear it\\b", "can carry the load"},
    {"beside the wanted", "besides what is wanted"},
    {"comes on top", "is added"},
    {"does so, with", "runs with"},
    {"for want of", "for lack of"},
    {"has it said", "says"},
    {"may be had\\b", "available"},
    {"of no use\\b", "cannot be used"},
    {"taken with care", "treated with caution"},
    {"the same holds", "this also applies"},
    {"the weather", "any reason"},
    {"what (it|the model) errs", "its error, the model's error"},
    {"worth a word", "mentioned"},
    {"from there on", "from this value on"},
    {"in turns\\b", "alternately"},
    {"in vain\\b", "unused"},
    {"is no "
     "(tier|choice|number|setting|object|table|knob|address|such|hardware|rate|checkpoint|socket|"
     "ring|child|share|text|row|lock|outlier|room|code|program|smallint|headrace|reason)\\b",
     "is not a"},
    {"loosen\\b", "raise"},
    {"mend(s|ed|ing)?\\b", "fix"},
    {"more than need be", "more than needed"},
    {"no matter of\\b", "unrelated to"},
    {"not a matter of\\b", "does not affect"},
    {"nowhere to write", "not a place to write to"},
    {"round and round", "again and again"},
    {"so (many|often|long) (rows|pairs|times|of|at most|before|for|batches|no|\\[|\\()",
     "this many"},
    {"somebody else's", "another program's"},
    {"stands? still", "stopped"},
    {"surely\\b", "certainly, clearly"},
    {"the machine's mood", "the machine's state"},
    {"to spare\\b", "spare, left"},
    {"turns? the order", "reverses the order"},
    {"were it free", "if it cost nothing"},
    {"what limits is", "the limit is"},
    {"which change by less than", "(each changed by less than N)"},
};

// A literal that is the name of something: a probe, as users and databases have it.
const std::vector<std::string> kNames = {"operator accounts", "account clock"};

// Text with the line that each of its characters is on; blanks are single.
class Prose {
 public:
  void Add(char c, int line) {
    if (c == '`') literal_ = !literal_;
    if (literal_ || c == '`') c = '#';
    if (std::isspace(static_cast<unsigned char>(c))) c = ' ';
    if (c == ' ' && (text_.empty() || text_.back() == ' ')) return;
    text_ += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    lines_.push_back(line);
  }
  const std::string& text() const { return text_; }
  int LineAt(size_t at) const { return lines_[at]; }
  void Clear() {
    text_.clear();
    lines_.clear();
    literal_ = false;
  }

 private:
  std::string text_;
  std::vector<int> lines_;
  bool literal_ = false;  // between backticks: a name
};

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// What stands for itself: paths, addresses and options are not words.
std::string WithoutPaths(std::string text) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find(' ', begin);
    if (end == std::string::npos) end = text.size();
    const std::string_view word(text.data() + begin, end - begin);
    if (word.find('/') != std::string_view::npos || word.find("--") != std::string_view::npos ||
        word.find(".md") != std::string_view::npos || word.find(".h") != std::string_view::npos) {
      std::fill(text.begin() + static_cast<std::ptrdiff_t>(begin),
                text.begin() + static_cast<std::ptrdiff_t>(end), '#');
    }
    begin = end + 1;
  }
  return text;
}

// The letters that a phrase begins with: looked for first, as regular expressions are slow.
std::string Beginning(const std::string& phrase) {
  size_t end = 0;
  while (end < phrase.size() &&
         (std::isalpha(static_cast<unsigned char>(phrase[end])) || phrase[end] == ' ')) {
    ++end;
  }
  // What may be absent, or is one of several.
  if (end < phrase.size() && (phrase[end] == '?' || phrase[end] == '*')) --end;
  return phrase.substr(0, end);
}

struct Rule {
  const Wording* wording;
  std::string beginning;
  std::regex regex;
};

std::vector<Rule> Rules() {
  std::vector<Rule> rules;
  for (const Wording& wording : kWordings) {
    rules.push_back({&wording, Beginning(wording.phrase),
                     std::regex(wording.phrase, std::regex::ECMAScript | std::regex::optimize)});
  }
  return rules;
}

class Reader {
 public:
  // What is found wrong in a piece of text: "file:line: 'phrase': better".
  void Check(const std::string& file, const Prose& prose) {
    ++pieces_;
    const std::string text = WithoutPaths(prose.text());
    if (std::find(kNames.begin(), kNames.end(), text) != kNames.end()) return;
    for (const Rule& rule : rules_) {
      const std::vector<std::string>& but = rule.wording->but;
      if (std::any_of(but.begin(), but.end(),
                      [&](const std::string& path) { return file.starts_with(path); })) {
        continue;
      }
      for (size_t at = text.find(rule.beginning); at != std::string::npos;
           at = text.find(rule.beginning, at + 1)) {
        if (at > 0 && (IsWordCharacter(text[at - 1]) || text[at - 1] == '-')) continue;
        if (rule.beginning == "is no " && at >= 6 && text.compare(at - 6, 6, "there ") == 0)
          continue;
        std::smatch match;
        if (!std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), match,
                               rule.regex, std::regex_constants::match_continuous)) {
          continue;
        }
        found_.push_back(file + ":" + std::to_string(prose.LineAt(at)) + ": '" + match.str() +
                         "': better '" + rule.wording->better + "'");
      }
    }
  }

  const std::vector<std::string>& found() const { return found_; }
  size_t pieces() const { return pieces_; }

 private:
  std::vector<Rule> rules_ = Rules();
  std::vector<std::string> found_;
  size_t pieces_ = 0;
};

std::string Contents(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The literals of a source, those that follow each other as one. One without a blank is a name.
class Literals {
 public:
  Literals(std::string file, std::string source, bool python, Reader* reader)
      : file_(std::move(file)), source_(std::move(source)), python_(python), reader_(reader) {}

  void Read() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\n' || std::isspace(static_cast<unsigned char>(c))) {
        Step();
      } else if (Comment()) {
        continue;
      } else if (!python_ && source_.compare(at_, 3, "R\"(") == 0) {
        Step(3);
        Until(")\"");
      } else if (!python_ && source_.compare(at_, 4, "R\"re") == 0) {
        End();
        Step(5);
        while (at_ < source_.size() && source_.compare(at_, 4, ")re\"") != 0) Step();
        Step(4);
      } else if (python_ &&
                 (source_.compare(at_, 3, "\"\"\"") == 0 || source_.compare(at_, 3, "'''") == 0)) {
        const std::string quotes = source_.substr(at_, 3);
        Step(3);
        Until(quotes);
        End();
      } else if (c == '"' || (c == '\'' && python_)) {
        Step();
        Quoted(c);
      } else if (c == '\'' && !IsWordCharacter(at_ > 0 ? source_[at_ - 1] : ' ')) {
        Character();
      } else {
        // A prefix of a literal ends nothing: f"..." in a row of literals.
        if (!(python_ && IsWordCharacter(c) && at_ + 1 < source_.size() &&
              (source_[at_ + 1] == '"' || source_[at_ + 1] == '\''))) {
          End();
        }
        Step();
      }
    }
    End();
  }

 private:
  void Step(size_t characters = 1) {
    for (size_t i = 0; i < characters && at_ < source_.size(); ++i) {
      if (source_[at_++] == '\n') ++line_;
    }
  }

  bool Comment() {
    if (python_ ? source_[at_] == '#' : source_.compare(at_, 2, "//") == 0) {
      while (at_ < source_.size() && source_[at_] != '\n') Step();
      return true;
    }
    if (!python_ && source_.compare(at_, 2, "/*") == 0) {
      const size_t end = source_.find("*/", at_ + 2);
      Step((end == std::string::npos ? source_.size() : end + 2) - at_);
      return true;
    }
    if (!python_ && source_.compare(at_, 8, "#include") == 0) {
      while (at_ < source_.size() && source_[at_] != '\n') Step();
      return true;
    }
    return false;
  }

  void Until(const std::string& end) {
    while (at_ < source_.size() && source_.compare(at_, end.size(), end) != 0) {
      prose_.Add(source_[at_], line_);
      Step();
    }
    Step(end.size());
  }

  void Quoted(char quote) {
    while (at_ < source_.size() && source_[at_] != quote && source_[at_] != '\n') {
      if (source_[at_] == '\\') {
        Step();
        if (at_ < source_.size()) prose_.Add(source_[at_] == 'n' ? ' ' : source_[at_], line_);
      } else {
        prose_.Add(source_[at_], line_);
      }
      Step();
    }
    Step();
  }

  void Character() {
    End();
    Step();
    while (at_ < source_.size() && source_[at_] != '\'' && source_[at_] != '\n') {
      Step(source_[at_] == '\\' ? 2 : 1);
    }
    Step();
  }

  void End() {
    if (prose_.text().find(' ') != std::string::npos) reader_->Check(file_, prose_);
    prose_.Clear();
  }

  std::string file_;
  std::string source_;
  bool python_;
  Reader* reader_;
  size_t at_ = 0;
  int line_ = 1;
  Prose prose_;
};

// Paragraphs of a Markdown page, without blocks of code and what stands between backticks.
void ReadMarkdown(const std::string& file, const fs::path& path, Reader* reader) {
  std::ifstream in(path);
  Prose prose;
  bool code = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const size_t first = line.find_first_not_of(' ');
    const bool fence = first != std::string::npos && line.compare(first, 3, "```") == 0;
    if (fence) code = !code;
    if (fence || code || first == std::string::npos || first >= 4) {
      reader->Check(file, prose);
      prose.Clear();
      continue;
    }
    for (const char c : line) prose.Add(c, number);
    prose.Add(' ', number);
  }
  reader->Check(file, prose);
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(Wording, StringsOfTheProgramsAreWordsOfTheField) {
  const fs::path root = HEADRACE_SOURCE_DIR;
  Reader reader;
  for (const char* folder : {"analysis", "base", "cli", "collectors", "dashboards", "experiments",
                             "probes", "reader", "workloads"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      const bool python = extension == ".py";
      if (!python && extension != ".cc" && extension != ".h" && extension != ".def") continue;
      Literals(fs::relative(entry.path(), root).string(), Contents(entry.path()), python, &reader)
          .Read();
    }
  }
  EXPECT_GT(reader.pieces(), 3000u) << "the walk found too few literals to mean anything";
  EXPECT_TRUE(reader.found().empty()) << Joined(reader.found());
}

TEST(Wording, DocumentsAreWordsOfTheField) {
  const fs::path root = HEADRACE_SOURCE_DIR;
  Reader reader;
  ReadMarkdown("README.md", root / "README.md", &reader);
  for (const auto& entry : fs::directory_iterator(root / "docs")) {
    const std::string name = fs::relative(entry.path(), root).string();
    // Records of what was measured, in the words of their day, and of what was said of programs,
    // some of which train nothing.
    if (entry.path().extension() != ".md" || name == "docs/measurements.md" ||
        name == "docs/accuracy-real.md") {
      continue;
    }
    ReadMarkdown(name, entry.path(), &reader);
  }
  EXPECT_GT(reader.pieces(), 500u) << "the walk found too few paragraphs to mean anything";
  EXPECT_TRUE(reader.found().empty()) << Joined(reader.found());
}

TEST(Wording, APhraseIsFoundWhereItIsSplitAndNowhereElse) {
  const std::string better = "': better '";
  const auto found = [](const std::string& source, bool python) {
    Reader reader;
    Literals("x", source, python, &reader).Read();
    return reader.found();
  };
  EXPECT_EQ(found("f(\"a \"\n  \"relief for\"\n  \" all\");", false).size(), 1u);
  EXPECT_EQ(found("f(\"the cores\"\n  \" limit it\");", false),
            std::vector<std::string>{"x:1: 'cores limit" + better + "CPU cores are the limit'"});
  EXPECT_EQ(found("x = (\"a relief\" f\" for {all}\")", true).size(), 1u);
  EXPECT_EQ(found("\"\"\"A relief\n for all.\"\"\"", true).size(), 1u);
  for (const char* source : {"// a relief \"", "f(\"see docs/accounts.md\");", "f(\"relief\");",
                             "x = 1'000; f(\"a belief\");", "c = '\"'; // a relief"}) {
    EXPECT_TRUE(found(source, false).empty()) << source;
  }
}

}  // namespace
}  // namespace headrace
