#include "analysis/run/pipeline_setting.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string_view>

namespace headrace::analysis {
namespace {

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

// Up to a '#' outside quotes.
std::string_view WithoutComment(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#') {
      return line.substr(0, i);
    }
  }
  return line;
}

std::string Unquoted(std::string_view value) {
  value = Trimmed(value);
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
      value.back() == value.front()) {
    value = value.substr(1, value.size() - 2);
  }
  return std::string(value);
}

// Calls `line` with the section's name ("transform" for [[transform]]), the key and the value of
// each assignment; with an empty key for each heading.
using OnLine =
    std::function<void(std::string_view section, std::string_view key, std::string_view value)>;
void EachLine(std::string_view text, const OnLine& on_line) {
  std::string_view section;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = Trimmed(WithoutComment(text.substr(at, end - at)));
    at = end + 1;
    if (line.size() >= 2 && line.front() == '[' && line.back() == ']') {
      section = line;
      while (!section.empty() && section.front() == '[') section.remove_prefix(1);
      while (!section.empty() && section.back() == ']') section.remove_suffix(1);
      section = Trimmed(section);
      on_line(section, "", "");
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    on_line(section, Trimmed(line.substr(0, equals)), Trimmed(line.substr(equals + 1)));
  }
}

// The value of `key` in "{ key = value, ... }".
std::optional<std::string> OfInlineTable(std::string_view table, std::string_view key) {
  if (table.size() < 2 || table.front() != '{' || table.back() != '}') return std::nullopt;
  table = table.substr(1, table.size() - 2);
  while (!table.empty()) {
    const size_t comma = std::min(table.find(','), table.size());
    const std::string_view entry = table.substr(0, comma);
    table.remove_prefix(std::min(comma + 1, table.size()));
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    if (Trimmed(entry.substr(0, equals)) == key) return Unquoted(entry.substr(equals + 1));
  }
  return std::nullopt;
}

// The last "WORD=VALUE" among the blank-separated words of a command line.
std::optional<std::string> OfCommand(std::string_view command, const std::string& word) {
  std::optional<std::string> found;
  const std::string wanted = word + "=";
  for (size_t at = command.find(wanted); at != std::string_view::npos;
       at = command.find(wanted, at + 1)) {
    if (at > 0 && command[at - 1] != ' ' && command[at - 1] != '=') continue;
    const size_t begin = at + wanted.size();
    const size_t end = std::min(command.find(' ', begin), command.size());
    found = Unquoted(command.substr(begin, end - begin));
  }
  return found;
}

// The word after `option`, or after "option=".
std::optional<std::string> OptionOf(std::string_view command, const std::string& option) {
  for (size_t at = command.find(option); at != std::string_view::npos;
       at = command.find(option, at + 1)) {
    const size_t begin = at + option.size();
    if (at > 0 && command[at - 1] != ' ') continue;
    if (begin >= command.size() || (command[begin] != ' ' && command[begin] != '=')) continue;
    const size_t end = std::min(command.find(' ', begin + 1), command.size());
    return std::string(command.substr(begin + 1, end - begin - 1));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> SettingOf(const RunRow& run, const std::string& key) {
  if (auto set = OfCommand(run.command, key)) return set;
  const size_t dot = key.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  const std::string section = key.substr(0, dot), name = key.substr(dot + 1);
  const size_t inner = section.rfind('.');
  std::optional<std::string> found;
  EachLine(run.pipeline_text,
           [&](std::string_view in, std::string_view assigned, std::string_view value) {
             if (assigned.empty()) return;
             if (in == section && assigned == name) {
               found = Unquoted(value);
             } else if (in.empty() && assigned == section) {
               if (auto of = OfInlineTable(value, name)) found = of;
             } else if (inner != std::string::npos && in == section.substr(0, inner) &&
                        assigned == section.substr(inner + 1)) {
               if (auto of = OfInlineTable(value, name)) found = of;
             }
           });
  return found;
}

std::vector<std::string> TransformsOf(const RunRow& run) {
  std::vector<std::string> ops;
  EachLine(run.pipeline_text,
           [&](std::string_view in, std::string_view assigned, std::string_view value) {
             if (in == "transform" && assigned == "op") ops.push_back(Unquoted(value));
           });
  return ops;
}

std::optional<int> EpochsOf(const RunRow& run) {
  if (run.pipeline_text.empty()) return std::nullopt;
  std::optional<std::string> text = OptionOf(run.command, "--epochs");
  if (!text) text = OfCommand(run.command, "source.epochs");
  if (!text) text = SettingOf(run, "source.epochs");
  if (!text) return 1;
  int epochs = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), epochs);
  if (error != std::errc() || epochs < 0) return std::nullopt;
  return epochs;
}

}  // namespace headrace::analysis
