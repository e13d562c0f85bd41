// Lines of text with styles, as a layout makes them and a screen paints them, and the same as a
// text with or without escape sequences of colour.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::dashboards {

// What a piece of text is, not how it looks: screens with 16 colours, with none, and texts paint it
// in their own way. Nothing is said by a style alone.
enum class TextStyle : uint8_t {
  kPlain,
  kDim,      // labels and units
  kBold,     // the subject of a line; commands
  kLimit,    // what limits: the one accent
  kOwnTime,  // bars of an operator's own time
  kWants,    // time in which it wants a core
  kWarning,  // what every figure depends on
  kGood,     // badges, by severity
  kModerate,
  kHigh,
  kNeutral
};

struct StyledText {
  std::string text;
  TextStyle style = TextStyle::kPlain;
};

struct StyledLine {
  std::vector<StyledText> parts;
  bool selected = false;  // the whole line stands out

  StyledLine& Add(std::string text, TextStyle style = TextStyle::kPlain);
  // Cells that it takes.
  size_t Columns() const;
  std::string Text() const;
};

// The lines as one text, each with a line end and without blanks before it. `color`: with escape
// sequences.
std::string TextOf(const std::vector<StyledLine>& lines, bool color);

}  // namespace headrace::dashboards
