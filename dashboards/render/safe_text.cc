#include "dashboards/render/safe_text.h"

#include <cstdint>

#include "base/terminal_text.h"

namespace headrace::dashboards {
Report SafeToPrint(Report report) {
  const auto make_safe = [](std::string* text) { *text = Printable(*text, SIZE_MAX); };
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
            cell = Quantity::Unavailable(Printable(quantity.reason(), SIZE_MAX), quantity.unit());
          }
        }
      }
    }
  }
  return report;
}

}  // namespace headrace::dashboards
