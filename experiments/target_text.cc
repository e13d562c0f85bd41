#include "experiments/target_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace headrace::experiments {

double ParseTarget(const std::string& text, double rows_per_batch) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  std::string unit(end);
  unit.erase(std::remove(unit.begin(), unit.end(), ' '), unit.end());
  const bool rows = unit == "rows/s";
  if (end == text.c_str() || !std::isfinite(value) || value <= 0 ||
      (!unit.empty() && !rows && unit != "batches/s")) {
    throw Error(ExitCode::kUsage, fmt::format("'{}' is not a rate", Printable(text)), "--target",
                "try 500, 500batches/s or 282000rows/s");
  }
  if (!rows) return value;
  if (rows_per_batch <= 0) {
    throw Error(ExitCode::kInconclusive, "the rows of a batch are not known", "--target",
                "give the target in batches/s");
  }
  return value / rows_per_batch;
}

}  // namespace headrace::experiments
