#include "cli/rates_text.h"

#include "base/units.h"

namespace headrace::cli {

std::string RatesText(double batches_per_second, double rows_per_batch,
                      const std::string& between) {
  const std::string batches = FormatRate(batches_per_second, "batches") + between;
  if (!(rows_per_batch > 0)) return batches;
  return batches + " (" + FormatRate(batches_per_second * rows_per_batch, "rows") + ")";
}

}  // namespace headrace::cli
