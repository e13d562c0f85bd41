#include "dashboards/render/safe_text.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/error.h"

namespace headrace::dashboards {
namespace {

bool Obeyed(uint32_t c) {
  return (c >= 0x80 && c <= 0x9F) || c == 0x061C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF;
}

}  // namespace

std::string SafeText(const std::string& text) {
  const std::string valid = Printable(text, SIZE_MAX);
  std::string out;
  for (size_t i = 0; i < valid.size();) {
    const auto lead = static_cast<unsigned char>(valid[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint32_t c = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      c = c << 6 | (static_cast<unsigned char>(valid[i + k]) & 0x3Fu);
    }
    if (Obeyed(c)) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out.append(valid, i, length);
    }
    i += length;
  }
  return out;
}

Report SafeToPrint(Report report) {
  const auto make_safe = [](std::string* text) { *text = SafeText(*text); };
  make_safe(&report.title);
  make_safe(&report.first.badge);
  make_safe(&report.first.verdict);
  for (std::string& condition : report.first.conditions) make_safe(&condition);
  for (PicturePart& part : report.first.picture) make_safe(&part.name);
  for (PageLine& line : report.first.lines) make_safe(&line.text);
  for (Section& section : report.sections) {
    make_safe(&section.title);
    for (Sentence& sentence : section.sentences) {
      make_safe(&sentence.label);
      make_safe(&sentence.text);
    }
    for (Table& table : section.tables) {
      make_safe(&table.title);
      for (Column& column : table.columns) make_safe(&column.title);
      for (std::vector<Value>& row : table.rows) {
        for (Value& cell : row) {
          if (std::string* text = std::get_if<std::string>(&cell)) {
            make_safe(text);
            continue;
          }
          const Quantity& quantity = std::get<Quantity>(cell);
          if (!quantity.available()) {
            cell = Quantity::Unavailable(SafeText(quantity.reason()), quantity.unit());
          }
        }
      }
    }
  }
  return report;
}

}  // namespace headrace::dashboards
