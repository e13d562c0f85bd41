#include "analysis/study/sheet.h"

#include <algorithm>
#include <cmath>

#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

SizeFigures SizesOf(std::vector<double> bytes) {
  SizeFigures sizes;
  sizes.count = bytes.size();
  if (bytes.empty()) return sizes;
  std::sort(bytes.begin(), bytes.end());
  sizes.mean = Mean(bytes);
  sizes.deviation = std::sqrt(Variance(bytes));
  sizes.p5 = Quantile(bytes, 0.05);
  sizes.p25 = Quantile(bytes, 0.25);
  sizes.p50 = Quantile(bytes, 0.5);
  sizes.p75 = Quantile(bytes, 0.75);
  sizes.p95 = Quantile(bytes, 0.95);
  return sizes;
}

const SheetFigure* Sheet::Find(const std::string& key) const {
  for (const FigurePart& part : parts)
    for (const SheetFigure& figure : part.figures)
      if (figure.key == key) return &figure;
  return nullptr;
}

}  // namespace headrace::analysis
