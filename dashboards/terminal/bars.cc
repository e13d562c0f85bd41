#include "dashboards/terminal/bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace headrace::dashboards {
namespace {

constexpr size_t kParts = 8;  // of a cell
constexpr std::array<const char*, kParts> kPartOfCell = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr std::array<const char*, kParts> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kAsciiHeights = "_.:-=+*#";

size_t HeightOf(double value, double top) {
  if (!(top > 0) || !(value > 0)) return 0;
  const double share = std::min(1.0, value / top);
  return std::min(kParts - 1, static_cast<size_t>(share * static_cast<double>(kParts)));
}

// Means of neighbours, so that at most `width` values are left.
std::vector<std::optional<double>> Thinned(const std::vector<std::optional<double>>& values,
                                           size_t width) {
  if (values.size() <= width) return values;
  std::vector<std::optional<double>> cells(width);
  for (size_t cell = 0; cell < width; ++cell) {
    const size_t from = cell * values.size() / width, to = (cell + 1) * values.size() / width;
    double sum = 0, known = 0;
    for (size_t i = from; i < to; ++i) {
      if (!values[i]) continue;
      sum += *values[i];
      ++known;
    }
    if (known > 0) cells[cell] = sum / known;
  }
  return cells;
}

}  // namespace

std::string Bar(std::optional<double> ratio, size_t width, bool ascii) {
  if (!ratio || std::isnan(*ratio)) return std::string(width, ' ');
  const double share = std::clamp(*ratio, 0.0, 1.0);
  std::string bar;
  if (ascii) {
    size_t full = static_cast<size_t>(std::lround(share * static_cast<double>(width)));
    if (share > 0) full = std::max<size_t>(full, 1);
    return std::string(std::min(full, width), '#') +
           std::string(width - std::min(full, width), '.');
  }
  size_t parts = static_cast<size_t>(std::lround(share * static_cast<double>(width * kParts)));
  if (share > 0) parts = std::max<size_t>(parts, 1);
  for (size_t cell = 0; cell < width; ++cell) {
    const size_t filled = parts > cell * kParts ? std::min(kParts, parts - cell * kParts) : 0;
    bar += filled == kParts ? "█" : filled == 0 ? "░" : kPartOfCell[filled];
  }
  return bar;
}

std::string Spark(const std::vector<std::optional<double>>& values, size_t width, double top,
                  bool ascii) {
  const std::vector<std::optional<double>> cells = Thinned(values, width);
  if (top <= 0) {
    for (const auto& cell : cells) top = std::max(top, cell.value_or(0));
  }
  std::string spark(width - cells.size(), ' ');
  for (const auto& cell : cells) {
    if (!cell || std::isnan(*cell)) {
      spark += ' ';
    } else if (ascii) {
      spark += kAsciiHeights[HeightOf(*cell, top)];
    } else {
      spark += kHeights[HeightOf(*cell, top)];
    }
  }
  return spark;
}

std::string PercentCell(std::optional<double> ratio) {
  if (!ratio || std::isnan(*ratio)) return "    -";
  const double percent = 100 * std::clamp(*ratio, 0.0, 1.0);
  if (percent > 0 && percent < 0.5) return " <1 %";
  return fmt::format("{:3.0f} %", percent);
}

}  // namespace headrace::dashboards
