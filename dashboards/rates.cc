#include "dashboards/rates.h"

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "dashboards/json_number.h"

namespace headrace::dashboards {

std::string RatesText(double batches_per_second, double rows_per_batch,
                      const std::string& between) {
  const std::string batches = FormatRate(batches_per_second, "batches") + between;
  if (!(rows_per_batch > 0)) return batches;
  return batches + " (" + FormatRate(batches_per_second * rows_per_batch, "rows") + ")";
}

nlohmann::ordered_json RatesJson(const std::optional<double>& batches_per_second,
                                 double rows_per_batch) {
  std::optional<double> rows;
  if (batches_per_second && rows_per_batch > 0) rows = *batches_per_second * rows_per_batch;
  return {{"batches_per_second", NumberOrNull(batches_per_second)},
          {"rows_per_second", NumberOrNull(rows)}};
}

}  // namespace headrace::dashboards
