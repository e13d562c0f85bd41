#include "dashboards/terminal/styled_text.h"

#include <utility>

#include "dashboards/terminal/text_columns.h"

namespace headrace::dashboards {
namespace {

// Empty: as the text around it.
const char* ColorOf(TextStyle style) {
  switch (style) {
    case TextStyle::kPlain:
      return "";
    case TextStyle::kDim:
      return "\x1b[2m";
    case TextStyle::kBold:
      return "\x1b[1m";
    case TextStyle::kLimit:
      return "\x1b[1;31m";
    case TextStyle::kOwnTime:
      return "\x1b[34m";
    case TextStyle::kWants:
    case TextStyle::kWarning:
      return "\x1b[33m";
    case TextStyle::kGood:
      return "\x1b[30;42m";
    case TextStyle::kModerate:
      return "\x1b[30;43m";
    case TextStyle::kHigh:
      return "\x1b[1;97;41m";
    case TextStyle::kNeutral:
      return "\x1b[7m";
  }
  return "";
}

}  // namespace

StyledLine& StyledLine::Add(std::string text, TextStyle style) {
  if (text.empty()) return *this;
  if (!parts.empty() && parts.back().style == style) {
    parts.back().text += text;
  } else {
    parts.push_back({std::move(text), style});
  }
  return *this;
}

size_t StyledLine::Columns() const {
  size_t columns = 0;
  for (const StyledText& part : parts) columns += TextColumns(part.text);
  return columns;
}

std::string StyledLine::Text() const {
  std::string text;
  for (const StyledText& part : parts) text += part.text;
  return text;
}

std::string TextOf(const std::vector<StyledLine>& lines, bool color) {
  std::string out;
  for (const StyledLine& line : lines) {
    std::string text = line.Text();
    if (color) {
      text.clear();
      for (const StyledText& part : line.parts) {
        const std::string code = ColorOf(part.style);
        text += code.empty() ? part.text : code + part.text + "\x1b[0m";
      }
    } else {
      text.erase(text.find_last_not_of(' ') + 1);
    }
    out += text + "\n";
  }
  return out;
}

}  // namespace headrace::dashboards
