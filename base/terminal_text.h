// What terminals obey instead of showing it, and how it is shown: in this one place for every name
// on every page, line and error. Names come from files, command lines and other programs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

// The code point that begins at text[at] and its bytes (1 to 4); 0 bytes where it is not
// well-formed UTF-8 (Unicode 15, table 3-7).
struct CodePoint {
  uint32_t value = 0;
  size_t length = 0;
};
CodePoint CodePointAt(std::string_view text, size_t at);

// Control characters (C0, DELETE and C1), marks of writing direction (U+061C, U+200E, U+200F,
// U+202A to U+202E, U+2066 to U+2069), characters without width (U+200B to U+200D, U+2060 to
// U+2065, U+FEFF) and separators of lines (U+2028, U+2029): they move the cursor, recolour,
// reorder, hide or end text.
bool IsObeyed(uint32_t code_point);

// `text` with bytes below 0x20, DELETE and invalid UTF-8 as \xNN, and all else that is obeyed as
// \uNNNN, cut to `max_bytes`. One line, whatever `text` is.
std::string Printable(const std::string& text, size_t max_bytes = 200);

// The last guard before a terminal: a whole stream of text in portions, with all that is obeyed as
// \uNNNN, or \xNN for bytes that are no UTF-8, but for what makes up a page: line ends, colours
// (ESC [ numbers m), and a line drawn anew (carriage return, ESC [ K). In JSON, \uNNNN is the same
// string. Names still go through Printable, for their line ends.
class TerminalFilter {
 public:
  // What can be told of `text` and what was held back before: an unfinished character or colour is
  // held back.
  std::string Pass(std::string_view text);
  // What is still held back, when nothing follows.
  std::string Finish();

 private:
  std::string held_;
};

}  // namespace headrace
