#include "base/toml_depth.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace {
namespace {

// The end of the text (TOML string) that begins at `at`, quotes included.
size_t SkipString(std::string_view text, size_t at, size_t* line) {
  const char quote = text[at];
  const bool escapes = quote == '"';
  const auto is_triple = [&](size_t i) {
    return i + 2 < text.size() && text[i] == quote && text[i + 1] == quote && text[i + 2] == quote;
  };
  if (!is_triple(at)) {
    for (++at; at < text.size() && text[at] != '\n'; ++at) {
      if (text[at] == quote) return at + 1;
      if (escapes && text[at] == '\\' && at + 1 < text.size() && text[at + 1] != '\n') ++at;
    }
    return at;
  }
  for (at += 3; at < text.size(); ++at) {
    if (text[at] == '\n') ++*line;
    if (is_triple(at)) {
      at += 3;
      // Up to two quotes may stand before the three that end it.
      for (int i = 0; i < 2 && at < text.size() && text[at] == quote; ++i) ++at;
      return at;
    }
    if (escapes && text[at] == '\\' && at + 1 < text.size()) {
      ++at;
      if (text[at] == '\n') ++*line;
    }
  }
  return at;
}

}  // namespace

void CheckTomlDepth(std::string_view text, const std::string& where, ExitCode code) {
  size_t line = 1;
  int dots = 0, brackets = 0;
  const auto refuse = [&](const std::string& what, const char* fix) {
    throw Error(code, what, fmt::format("{}:{}", where, line), fix);
  };
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = SkipString(text, at, &line);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    ++at;
    // Whatever may stand between the parts of a key counts on, so that no blank hides a dot.
    if (c == '.') {
      if (++dots > kMostTomlDots)
        refuse(fmt::format("a key of more than {} parts", kMostTomlDots + 1),
               "write a shorter key");
    } else if (c == '[' || c == '{') {
      dots = 0;
      if (++brackets > kMostTomlBrackets)
        refuse(fmt::format("more than {} brackets within each other", kMostTomlBrackets),
               "close the brackets, or nest less");
    } else if (c == ']' || c == '}') {
      dots = 0;
      brackets = std::max(0, brackets - 1);
    } else if (c == '\n' || c == '=' || c == ',') {
      dots = 0;
      if (c == '\n') ++line;
    }
  }
}

}  // namespace headrace
