#include "dashboards/terminal/text_columns.h"

#include <algorithm>
#include <iterator>

#include "base/terminal_text.h"

namespace headrace::dashboards {
namespace {

struct CodeRange {
  uint32_t first, last;
};

// Combining marks and selectors of variants (Unicode 15, the blocks that hold nothing else).
constexpr CodeRange kNoColumn[] = {{0x0300, 0x036F}, {0x0483, 0x0489},  {0x0591, 0x05BD},
                                   {0x0610, 0x061A}, {0x064B, 0x065F},  {0x1AB0, 0x1AFF},
                                   {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF},  {0xFE00, 0xFE0F},
                                   {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};
// Wide characters (East Asian Width W and F, Unicode Annex 11), and pictures.
constexpr CodeRange kTwoColumns[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
                                     {0x3400, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97F},
                                     {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                                     {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                                     {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

template <size_t n>
bool In(const CodeRange (&ranges)[n], uint32_t code_point) {
  return std::any_of(std::begin(ranges), std::end(ranges), [&](const CodeRange& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

struct Glyph {
  std::string_view bytes;
  size_t columns;
};

std::vector<Glyph> GlyphsOf(std::string_view text) {
  std::vector<Glyph> glyphs;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = CodePointAt(text, at);
    const size_t length = std::max<size_t>(1, point.length);
    glyphs.push_back({text.substr(at, length), point.length == 0 ? 1 : ColumnsOf(point.value)});
    at += length;
  }
  return glyphs;
}

}  // namespace

size_t ColumnsOf(uint32_t code_point) {
  if (code_point < 0x300) return 1;
  if (In(kNoColumn, code_point)) return 0;
  return In(kTwoColumns, code_point) ? 2 : 1;
}

size_t TextColumns(std::string_view text) {
  size_t columns = 0;
  for (const Glyph& glyph : GlyphsOf(text)) columns += glyph.columns;
  return columns;
}

std::string FitName(const std::string& text, size_t columns) {
  const std::vector<Glyph> glyphs = GlyphsOf(text);
  size_t all = 0;
  for (const Glyph& glyph : glyphs) all += glyph.columns;
  if (all <= columns) return text + std::string(columns - all, ' ');
  if (columns < 5) return std::string(columns, '.');
  // A third of the room for the end of the name.
  const size_t tail_room = (columns - 2) / 3, head_room = columns - 2 - tail_room;
  std::string head, tail;
  size_t used = 0, i = 0;
  for (; i < glyphs.size() && used + glyphs[i].columns <= head_room; ++i) {
    head += glyphs[i].bytes;
    used += glyphs[i].columns;
  }
  size_t end_used = 0;
  for (size_t j = glyphs.size(); j > i && end_used + glyphs[j - 1].columns <= tail_room; --j) {
    tail.insert(0, glyphs[j - 1].bytes);
    end_used += glyphs[j - 1].columns;
  }
  return head + ".." + tail + std::string(columns - 2 - used - end_used, ' ');
}

std::string RightAlign(const std::string& text, size_t columns) {
  const size_t used = TextColumns(text);
  return used >= columns ? text : std::string(columns - used, ' ') + text;
}

std::vector<std::string> WrapColumns(const std::string& text, size_t columns) {
  columns = std::max<size_t>(columns, 2);
  std::vector<std::string> lines;
  std::string line;
  size_t used = 0;
  const auto end_line = [&] {
    lines.push_back(line);
    line.clear();
    used = 0;
  };
  for (size_t at = 0; at <= text.size();) {
    const size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    at = space + 1;
    if (word.empty()) continue;
    const size_t width = TextColumns(word);
    if (used > 0 && used + 1 + width > columns) end_line();
    if (used > 0) {
      line += ' ';
      ++used;
    }
    if (used + width <= columns) {
      line += word;
      used += width;
      continue;
    }
    for (const Glyph& glyph : GlyphsOf(word)) {
      if (used + glyph.columns > columns) end_line();
      line += glyph.bytes;
      used += glyph.columns;
    }
  }
  if (!line.empty() || lines.empty()) lines.push_back(line);
  return lines;
}

std::string InAscii(const std::string& text) {
  std::string out;
  for (const Glyph& glyph : GlyphsOf(text)) {
    const bool ascii = glyph.bytes.size() == 1 && static_cast<unsigned char>(glyph.bytes[0]) < 0x80;
    out += ascii ? std::string(glyph.bytes) : std::string(glyph.columns, '?');
  }
  return out;
}

}  // namespace headrace::dashboards
