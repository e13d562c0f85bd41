#include "dashboards/render/table_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/units.h"

namespace headrace::dashboards {

bool IsNumber(const Value& value) { return std::holds_alternative<Quantity>(value); }

namespace {

std::string FigureText(const Quantity& quantity) {
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

// One end of an interval of that width, in the unit of the figure before it where that is not
// scaled.
std::string EndText(double end, Unit unit, double width) {
  // An interval narrower than two points says nothing in whole points: "[38, 38]".
  if (unit == Unit::kRatio) return fmt::format("{:.{}f}", 100 * end, width < 0.02 ? 1 : 0);
  if (unit == Unit::kNanoseconds) return FormatDuration(end);
  if (unit == Unit::kBytes) return FormatBytes(end);
  return end < 1000 ? fmt::format("{:.3g}", end) : FormatCount(end);
}

// The columns of each block, and those that found no room in theirs.
struct Placed {
  std::vector<std::vector<size_t>> blocks{{}};
  std::vector<size_t> dropped;
};
Placed PlaceColumns(const Table& table, const std::vector<size_t>& widths, size_t width) {
  Placed placed;
  size_t total = 0;
  for (const size_t column_width : widths) total += column_width + 2;
  const bool split = table.second_block > 0 && total > width + 2;
  size_t used = 0;
  bool full = false;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (split && i == table.second_block) {
      placed.blocks.push_back({0});
      used = widths[0];
      full = false;
    }
    std::vector<size_t>& block = placed.blocks.back();
    const size_t next = used + widths[i] + (block.empty() ? 0 : 2);
    full = full || (!block.empty() && next > width);
    if (full) {
      placed.dropped.push_back(i);
      continue;
    }
    used = next;
    block.push_back(i);
  }
  return placed;
}

}  // namespace

std::string CellText(const Value& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return Printable(*text);
  const Quantity& quantity = std::get<Quantity>(value);
  if (!quantity.available()) return "-";
  // Sources stand in the sentences and in a column of their own.
  if (!quantity.has_interval()) return FigureText(quantity);
  const double width = quantity.high() - quantity.low();
  return fmt::format("{} [{}, {}]", FigureText(quantity),
                     EndText(quantity.low(), quantity.unit(), width),
                     EndText(quantity.high(), quantity.unit(), width));
}

std::vector<std::string> LayOut(const Table& table, int width) {
  std::vector<std::vector<std::string>> cells;
  std::vector<size_t> widths;
  std::vector<bool> numeric(table.columns.size(), false);
  for (const Column& column : table.columns) widths.push_back(column.title.size());
  std::map<std::string, std::set<size_t>> reasons;  // columns that lack something for it
  for (const std::vector<Value>& row : table.rows) {
    cells.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      cells.back().push_back(CellText(row[i]));
      widths[i] = std::max(widths[i], cells.back().back().size());
      numeric[i] = numeric[i] || IsNumber(row[i]);
      if (const Quantity* quantity = std::get_if<Quantity>(&row[i])) {
        if (!quantity->available() && !quantity->reason().empty()) {
          reasons[quantity->reason()].insert(i);
        }
      }
    }
  }
  const Placed placed = PlaceColumns(table, widths, static_cast<size_t>(width));
  std::vector<std::string> lines;
  for (const std::vector<size_t>& block : placed.blocks) {
    const auto line = [&](const auto& text_of) {
      std::string text;
      for (const size_t i : block) {
        text += i == block.front() ? "" : "  ";
        text += numeric[i] ? fmt::format("{:>{}}", text_of(i), widths[i])
                           : fmt::format("{:<{}}", text_of(i), widths[i]);
      }
      text.erase(text.find_last_not_of(' ') + 1);
      return text;
    };
    if (&block != &placed.blocks.front()) lines.emplace_back();
    lines.push_back(line([&](size_t i) { return table.columns[i].title; }));
    for (const std::vector<std::string>& row : cells) {
      lines.push_back(line([&](size_t i) { return row[i]; }));
    }
  }
  for (const auto& [reason, columns] : reasons) {
    std::string titles;
    for (const size_t i : columns) {
      titles += (titles.empty() ? "" : ", ") + table.columns[i].title;
    }
    for (const std::string& part :
         Wrap(fmt::format("- {}: {}", titles, reason), static_cast<size_t>(width))) {
      lines.push_back(part);
    }
  }
  if (!placed.dropped.empty()) {
    std::string missing;
    for (const size_t i : placed.dropped) {
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
    // A word that is wider than a line is broken, between characters.
    while (word.size() > width && width > 0) {
      size_t end = width;
      while (end > 1 && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) --end;
      if (!lines.back().empty()) lines.emplace_back();
      lines.back() = word.substr(0, end);
      word.erase(0, end);
    }
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

}  // namespace headrace::dashboards
