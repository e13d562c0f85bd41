// Bars and sparklines made of characters: blocks in UTF-8, or signs of ASCII.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace headrace::dashboards {

// A bar of `width` cells, filled to `ratio` (below 0: empty, above 1: full). A ratio above 0 fills
// at least one cell in eight parts of it, so that little is never drawn as nothing. Unknown:
// blanks.
std::string Bar(std::optional<double> ratio, size_t width, bool ascii);

// A sparkline of `width` cells over `values`, the oldest left. Several values that share a cell are
// drawn as their mean; fewer values than cells stand at the right. `top` is the value of a full
// cell; 0: the largest of the values. A cell without a known value is blank: a gap is never joined.
std::string Spark(const std::vector<std::optional<double>>& values, size_t width, double top,
                  bool ascii);

// A share in exactly five cells: " 97 %", "100 %", " <1 %", "    -" where it is unknown.
std::string PercentCell(std::optional<double> ratio);

}  // namespace headrace::dashboards
