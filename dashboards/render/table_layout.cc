#include "dashboards/render/table_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/units.h"

namespace headrace::dashboards {

bool IsNumber(const Value& value) { return std::holds_alternative<Quantity>(value); }

std::string CellText(const Value& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return Printable(*text);
  const Quantity& quantity = std::get<Quantity>(value);
  if (!quantity.available()) return "-";
  // Sources and intervals stand in the sentences and in JSON; a cell has room for the figure.
  switch (quantity.unit()) {
    case Unit::kRatio:
      return FormatPercent(quantity.value());
    case Unit::kNanoseconds:
      return FormatDuration(quantity.value());
    case Unit::kBytes:
      return FormatBytes(quantity.value());
    case Unit::kBytesPerSecond:
      return FormatBytesRate(quantity.value());
    case Unit::kPerSecond:
      return FormatRate(quantity.value(), "batches");
    case Unit::kRowsPerSecond:
      return FormatRate(quantity.value(), "rows");
    case Unit::kCores:
      return fmt::format("{:.2f} cores", quantity.value());
    default:
      return quantity.value() < 1000 ? fmt::format("{:.3g}", quantity.value())
                                     : FormatCount(quantity.value());
  }
}

std::vector<std::string> LayOut(const Table& table, int width) {
  std::vector<std::vector<std::string>> cells;
  std::vector<size_t> widths;
  std::vector<bool> numeric(table.columns.size(), false);
  for (const Column& column : table.columns) widths.push_back(column.title.size());
  std::set<std::string> reasons;
  for (const std::vector<Value>& row : table.rows) {
    cells.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      cells.back().push_back(CellText(row[i]));
      widths[i] = std::max(widths[i], cells.back().back().size());
      numeric[i] = numeric[i] || IsNumber(row[i]);
      if (const Quantity* quantity = std::get_if<Quantity>(&row[i])) {
        if (!quantity->available() && !quantity->reason().empty()) {
          reasons.insert(fmt::format("{}: {}", table.columns[i].title, quantity->reason()));
        }
      }
    }
  }
  size_t shown = 0, used = 0;
  while (shown < widths.size()) {
    const size_t next = used + widths[shown] + (shown > 0 ? 2 : 0);
    if (shown > 0 && next > static_cast<size_t>(width)) break;
    used = next;
    ++shown;
  }
  const auto line = [&](const auto& text_of) {
    std::string text;
    for (size_t i = 0; i < shown; ++i) {
      text += i > 0 ? "  " : "";
      text += numeric[i] ? fmt::format("{:>{}}", text_of(i), widths[i])
                         : fmt::format("{:<{}}", text_of(i), widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::vector<std::string> lines;
  lines.push_back(line([&](size_t i) { return table.columns[i].title; }));
  for (const std::vector<std::string>& row : cells) {
    lines.push_back(line([&](size_t i) { return row[i]; }));
  }
  for (const std::string& reason : reasons) {
    for (const std::string& part : Wrap("- " + reason, static_cast<size_t>(width)))
      lines.push_back(part);
  }
  if (shown < table.columns.size()) {
    std::string missing;
    for (size_t i = shown; i < table.columns.size(); ++i) {
      missing += (missing.empty() ? "" : ", ") + table.columns[i].title;
    }
    for (const std::string& part :
         Wrap(fmt::format("(no room for: {}; --format json has all)", missing),
              static_cast<size_t>(width))) {
      lines.push_back(part);
    }
  }
  return lines;
}

std::vector<std::string> Wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

}  // namespace headrace::dashboards
