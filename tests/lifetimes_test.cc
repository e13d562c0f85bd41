// A loop or a reference over part of a temporary: `for (x : file->ReadStripe(s)->FlatKeys(node))`.
// The temporary that ReadStripe returned is destroyed before the first turn of the loop (C++20;
// C++23 keeps it alive). g++ 12 finds what lies in the function's own frame (-Wdangling-pointer, an
// error here); nothing in it or in clang 14 follows a shared_ptr, and address sanitizers see only
// what runs. So every source is read: no range of a loop and no bound reference, span or view may
// reach, through what one call returned by value, for what a later `->` or a later call returned.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {
namespace {

namespace fs = std::filesystem;

// What declarations say of functions of a name. A name may have several.
struct Returns {
  bool value = false;      // an object of its own, which a caller may have to keep
  bool reference = false;  // a reference, pointer, span or view of something that lives elsewhere
};
using Functions = std::map<std::string, Returns, std::less<>>;

// The text with comments blanked and literals emptied; lines keep their numbers.
std::string WithoutTexts(const std::string& source) {
  std::string out;
  for (size_t i = 0; i < source.size();) {
    const std::string_view rest = std::string_view(source).substr(i);
    size_t end = 0;
    if (rest.starts_with("//")) {
      end = std::min(rest.find('\n'), rest.size());
    } else if (rest.starts_with("/*")) {
      end = std::min(rest.find("*/"), rest.size() - 2) + 2;
    } else if (rest.starts_with("R\"")) {
      const std::string close = ")" + std::string(rest.substr(2, rest.find('(') - 2)) + "\"";
      end = std::min(rest.find(close), rest.size() - close.size()) + close.size();
      out += "\"\"";
    } else if (rest[0] == '"' || (rest[0] == '\'' && (i == 0 || !std::isalnum(source[i - 1])))) {
      for (end = 1; end < rest.size() && rest[end] != rest[0]; ++end) end += rest[end] == '\\';
      end = std::min(end + 1, rest.size());
      out += "\"\"";
    } else {
      out += rest[0];
      ++i;
      continue;
    }
    for (const char c : rest.substr(0, end)) out += c == '\n' ? "\n" : "";
    i += end;
  }
  return out;
}

// A view is as little an owner as a reference is.
bool IsView(const std::string& type) {
  return type.back() == '&' || type.back() == '*' || type.find("span<") != std::string::npos ||
         type.find("_view") != std::string::npos;
}

void AddFunctions(const std::string& text, Functions* functions) {
  static const std::regex declaration(
      R"(([A-Za-z_][\w:]*(?:<[^;{}()=]*>)?(?: const)?[ \n]*[&*]*)[ \n]+[&*]*(?:\w+::)*(\w+)\()");
  static const std::set<std::string> not_types = {"return", "throw", "new",  "else",
                                                  "case",   "const", "goto", "co_return"};
  for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
    std::string type = (*it)[1];
    if (not_types.contains(type)) continue;
    // "const T &Name(" puts the mark beside the name.
    const std::string whole = it->str();
    const size_t name = whole.rfind((*it)[2].str() + "(");
    if (name > 0 && (whole[name - 1] == '&' || whole[name - 1] == '*')) type += whole[name - 1];
    while (type.back() == ' ' || type.back() == '\n') type.pop_back();
    Returns& returns = (*functions)[(*it)[2]];
    (IsView(type) ? returns.reference : returns.value) = true;
  }
}

// Functions of the standard library that return by value; its other members (at, front, value, get)
// refer to their object.
const std::set<std::string, std::less<>> kStandardValues = {
    "string", "path",        "format", "to_string",   "substr",   "filename", "filename",   "stem",
    "str",    "parent_path", "vector", "make_shared", "absolute", "lock",     "make_unique"};

// Library functions that return by reference or pointer, even if a function of the same name is
// declared here.
const std::set<std::string, std::less<>> kLibraryReferences = {"CreateMessage", "get"};

bool ReturnsValue(const Functions& functions, std::string_view name) {
  if (kLibraryReferences.contains(name)) return false;
  const auto known = functions.find(name);
  if (known != functions.end()) return known->second.value && !known->second.reference;
  // Names in PascalCase are ours, and a name without a declaration is a type's: a constructor.
  return std::isupper(static_cast<unsigned char>(name[0])) || kStandardValues.contains(name);
}

size_t Matching(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (std::string_view("([{").find(text[i]) != std::string_view::npos) ++depth;
    if (std::string_view(")]}").find(text[i]) != std::string_view::npos && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// One step of `a(x)->b.c()`: its name, whether it is called, and what joins it to the step before.
struct Step {
  std::string name;
  bool called = false;
  bool arrow = false;
};

// Nothing for an expression that is no such chain (a sum, a condition, a list).
std::vector<Step> Chain(std::string_view text) {
  static const std::regex arguments(R"(^<[\w:<>*& ,]*>(\(|::))");
  std::vector<Step> steps;
  size_t i = 0;
  const auto blank = [&] {
    while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i]))) ++i;
  };
  for (bool arrow = false;; arrow = text[i - 1] == '>') {
    blank();
    Step step;
    step.arrow = arrow;
    for (; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (text[i] == '<' && std::regex_search(std::string(text.substr(i)), arguments)) {
        i = text.find_first_of("(", i);
        const size_t scope = text.rfind("::", i);
        if (scope != std::string_view::npos && text[scope - 1] == '>')
          step.name = text.substr(scope + 2, i - scope - 2);
        break;
      }
      if (!std::isalnum(c) && c != '_' && c != ':') break;
      step.name += text[i];
    }
    if (const size_t scope = step.name.rfind("::"); scope != std::string::npos)
      step.name.erase(0, scope + 2);
    if (step.name.empty()) return {};
    blank();
    while (i < text.size() && (text[i] == '(' || text[i] == '[')) {
      step.called = step.called || text[i] == '(';
      const size_t close = Matching(text, i);
      if (close == std::string_view::npos) return {};
      i = close + 1;
      blank();
    }
    steps.push_back(step);
    if (i == text.size()) return steps;
    if (text[i] == '.') {
      ++i;
    } else if (text.substr(i).starts_with("->")) {
      i += 2;
    } else {
      return {};
    }
  }
}

// Whether what the expression gives lies in an object that is gone when the expression is done.
bool Dangles(const Functions& functions, std::string_view expression) {
  const bool dereferenced = expression.starts_with('*');
  const std::vector<Step> steps = Chain(expression.substr(dereferenced ? 1 : 0));
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].called || !ReturnsValue(functions, steps[i].name)) continue;
    // The last value made in the chain is what lives on, with the members named of it.
    bool value_again = false, reaches_in = dereferenced;
    for (size_t k = i + 1; k < steps.size(); ++k) {
      if (steps[k].called && ReturnsValue(functions, steps[k].name)) value_again = true;
      reaches_in = reaches_in || steps[k].arrow || steps[k].called;
    }
    if (!value_again && reaches_in) return true;
  }
  return false;
}

// The ranges of loops, and what references and views are bound to, with their places in the text.
std::vector<std::pair<size_t, std::string>> Bound(const std::string& text) {
  std::vector<std::pair<size_t, std::string>> found;
  static const std::regex loop(R"(\bfor \()");
  for (std::sregex_iterator it(text.begin(), text.end(), loop), end; it != end; ++it) {
    const auto open = static_cast<size_t>(it->position()) + it->length() - 1;
    const size_t close = Matching(text, open);
    if (close == std::string::npos) continue;
    size_t colon = std::string::npos;
    int depth = 0;
    for (size_t i = open + 1; i < close; ++i) {
      if (std::string_view("([{").find(text[i]) != std::string_view::npos) ++depth;
      if (std::string_view(")]}").find(text[i]) != std::string_view::npos) --depth;
      if (text[i] == ';') colon = std::string::npos;
      if (depth == 0 && text[i] == ':' && text[i - 1] != ':' && text[i + 1] != ':' &&
          colon == std::string::npos)
        colon = i;
    }
    if (colon == std::string::npos) continue;
    found.emplace_back(colon, text.substr(colon + 1, close - colon - 1));
  }
  static const std::regex binding(
      R"((?:[&*]|span<[^=;(){}]*>|string_view) ?(?:\w+|\[[\w, ]*\]) =\s([^;{}]*);)");
  for (std::sregex_iterator it(text.begin(), text.end(), binding), end; it != end; ++it)
    found.emplace_back(static_cast<size_t>(it->position(1)), (*it)[1]);
  return found;
}

std::string Trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(" \n"));
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

std::vector<std::string> Findings(const Functions& functions, const std::string& text) {
  std::vector<std::string> findings;
  for (const auto& [at, expression] : Bound(text)) {
    if (!Dangles(functions, Trimmed(expression))) continue;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
    findings.push_back(std::to_string(line) + ": " + Trimmed(expression));
  }
  return findings;
}

const char* const kDeclarations = R"(
  std::shared_ptr<const Stripe> ReadStripe(size_t index, ReadFigures* figures = nullptr) const;
  std::span<const FlatKey> FlatKeys(uint32_t map_node) const;
  const Schema& schema() const;
  static Registry& Global();
  const std::map<int, int>& entries() const;
  PipelineSpec LoadPipeline(const std::string& path);
  std::vector<Pair> All() const;
  std::vector<std::string> ColumnNames() const;
)";

TEST(Lifetimes, LoopsAndReferencesIntoATemporaryAreFound) {
  Functions functions;
  AddFunctions(kDeclarations, &functions);
  struct Case {
    const char* text;
    bool found;
  };
  const Case cases[] = {
      {"for (const dwrf::FlatKey& key : file->ReadStripe(s)->FlatKeys(node)) keys.insert(key);",
       true},
      {"for (auto& [a, b] : file->ReadStripe(s)->flat_keys) f(a);", true},
      {"for (const int x : *Load(path)) f(x);", true},
      {"for (const int x : LoadPipeline(p).spec().stages) f(x);", true},
      {"const auto& keys = file->ReadStripe(0)->flat_keys;", true},
      {"const std::span<const FlatKey> keys = file->ReadStripe(0)->FlatKeys(node);", true},
      {"std::string_view name = LoadPipeline(p).name.substr(1).c_str();", true},
      {"const char* text = fmt::format(\"\", x).c_str();", true},
      // Members of a temporary, and values made from it, live as long as the reference does.
      {"for (const Stage& stage : reader::LoadPipeline(path).stages) f(stage);", false},
      {"for (const auto& x : Comparer(a, b, c ? d : e).All()) f(x);", false},
      {"for (const auto& name : file->ReadStripe(0)->ColumnNames()) f(name);", false},
      {"for (const auto& [n, e] : Registry<Command>::Global().entries()) f(n);", false},
      {"for (uint32_t child : file->schema().root().children) f(child);", false},
      {"for (size_t i = 0; i < file->ReadStripe(0)->rows; ++i) f(i);", false},
      {"const auto& schema = file->schema();", false},
      {"const auto stripe = file->ReadStripe(0);", false},
      {"const std::string& keys = a && b ? c->keys : d.keys;", false},
  };
  for (const Case& c : cases) EXPECT_EQ(!Findings(functions, c.text).empty(), c.found) << c.text;
}

TEST(Lifetimes, NoSourceLoopsOrRefersIntoATemporary) {
  const fs::path root = HEADRACE_SOURCE_DIR;
  std::map<std::string, std::string> texts;
  Functions functions;
  for (const char* folder : {"base", "probes", "reader", "collectors", "analysis", "dashboards",
                             "workloads", "cli", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      const std::string name = fs::relative(entry.path(), root).string();
      texts[name] = WithoutTexts(text.str());
      AddFunctions(texts[name], &functions);
    }
  }
  size_t bound = 0;
  for (const auto& [name, text] : texts) {
    bound += Bound(text).size();
    for (const std::string& finding : Findings(functions, text))
      ADD_FAILURE()
          << name << ":" << finding
          << "\n  the object that a call returned is gone before this is used: keep it in "
             "a variable";
  }
  EXPECT_GT(bound, 2000u) << "too few loops and references were found to mean anything";
}

}  // namespace
}  // namespace headrace
