// ASCII text as files, kernels and networks send it: whatever the locale, and no more than ASCII.
#pragma once
#include <string>
#include <string_view>

namespace headrace {

// Takes the next complete line off the front of `text`; false when there is none left.
inline bool NextLine(std::string_view* text, std::string_view* line) {
  const size_t end = text->find('\n');
  if (end == std::string_view::npos) return false;
  *line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return true;
}

// 'A' to 'Z' as small letters, all else as it is.
inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace headrace
