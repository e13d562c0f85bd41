#include "base/terminal_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace headrace {
namespace {

// Unicode 15, table 3-7 (well-formed UTF-8).
TEST(CodePoint, IsOfWellFormedUtf8Only) {
  for (int lead = 0x80; lead < 0x100; ++lead) {
    for (int second = 0; second < 0x100; ++second) {
      std::string text = {static_cast<char>(lead), static_cast<char>(second)};
      if (lead >= 0xE0) text += '\x80';
      if (lead >= 0xF0) text += '\x80';
      const int low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
      const int high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
      const bool is_good = lead >= 0xC2 && lead <= 0xF4 && second >= low && second <= high;
      EXPECT_EQ(CodePointAt(text, 0).length == text.size(), is_good)
          << std::hex << lead << " " << second;
    }
  }
}

TEST(Printable, SpellsOutWhatATerminalObeys) {
  const struct {
    const char* text;
    const char* shown;
  } cases[] = {
      {"a\x1b[2Jb", "a\\x1b[2Jb"},
      {"tab\tline\nend\r\x7f", "tab\\x09line\\x0aend\\x0d\\x7f"},
      {"c1 \u0080\u0085\u009b\u009f", "c1 \\u0080\\u0085\\u009b\\u009f"},
      {"\u061c\u200e\u200f", "\\u061c\\u200e\\u200f"},
      {"abc\u202agnp\u202e.exe", "abc\\u202agnp\\u202e.exe"},
      {"x\u2066y\u2067z\u2068\u2069", "x\\u2066y\\u2067z\\u2068\\u2069"},
      {"in\u200bvisible\u2060\ufeff", "in\\u200bvisible\\u2060\\ufeff"},
      {"\u2028\u2029", "\\u2028\\u2029"},
      {"bad \xff \xc2", "bad \\xff \\xc2"},
      {"d\u00e9codage \u5317 \U0001F600 \u00a0", "d\u00e9codage \u5317 \U0001F600 \u00a0"}};
  for (const auto& c : cases) EXPECT_EQ(Printable(c.text), c.shown);
}

TEST(Printable, IsCut) { EXPECT_EQ(Printable("abcdef", 3), "abc..."); }

std::string Filtered(const std::string& text, size_t portion) {
  TerminalFilter filter;
  std::string out;
  for (size_t i = 0; i < text.size(); i += portion) out += filter.Pass(text.substr(i, portion));
  return out + filter.Finish();
}

TEST(TerminalFilter, LetsPagesThroughAndNothingElse) {
  const struct {
    const char* text;
    const char* shown;
  } cases[] = {
      {"one\ntwo \u00e9\u5317\U0001F600\n", "one\ntwo \u00e9\u5317\U0001F600\n"},
      {"\x1b[1;31mred\x1b[0m\x1b[m", "\x1b[1;31mred\x1b[0m\x1b[m"},
      {"\r\x1b[K50 %", "\r\x1b[K50 %"},
      {"over\rwritten", "over\\u000dwritten"},
      {"\x1b[2J\x1b]0;title\a", "\\u001b[2J\\u001b]0;title\\u0007"},
      {"\x1b[?25l\x1b[1;1H", "\\u001b[?25l\\u001b[1;1H"},
      {"\x1b[11111111111111111111111111111111111m", "\\u001b[11111111111111111111111111111111111m"},
      {"a\tb\x7f\u009b2J\u202e\u2066\u061c", "a\\u0009b\\u007f\\u009b2J\\u202e\\u2066\\u061c"},
      {"bad \xff\xc2 \xe2\x80", "bad \\xff\\xc2 \\xe2\\x80"},
      {"end \x1b", "end \\x1b"},
      {"end \r", "end \\x0d"},
  };
  // Wherever the text is cut, the same comes out.
  for (const auto& c : cases)
    for (const size_t portion : {1, 2, 3, 5, 1000})
      EXPECT_EQ(Filtered(c.text, portion), c.shown) << c.shown << " in portions of " << portion;
}

}  // namespace
}  // namespace headrace
