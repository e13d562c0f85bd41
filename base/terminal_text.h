// Characters that a terminal obeys instead of showing them, and how they are shown. Names come from
// files, command lines and other programs; every name on every page, line and error goes through
// here.
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

// The last guard before a terminal, for a whole stream of text in portions. It escapes everything
// that a terminal obeys as \uNNNN, or \xNN for bytes that are not UTF-8, except what a page needs:
// line ends, colours (ESC [ numbers m), and redrawing a line (carriage return, ESC [ K). In JSON,
// \uNNNN is the same string. Names must still go through Printable, because of line ends.
class TerminalFilter {
 public:
  // The filtered text of what was held back before and `text`; an unfinished character or colour at
  // the end is held back.
  std::string Pass(std::string_view text);
  // The filtered text of what is still held back; call when nothing follows.
  std::string Finish();

 private:
  std::string held_;
};

}  // namespace headrace
