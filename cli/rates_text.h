// A rate in batches and rows, as plan and tune print it.
#pragma once
#include <string>

namespace headrace::cli {

// "179 batches/s (11.5 krows/s)", with `between` after the first rate ("179 batches/s [160, 190]
// (...)"). The rate in rows is left out if the run recorded no rows (`rows_per_batch` 0).
std::string RatesText(double batches_per_second, double rows_per_batch,
                      const std::string& between = "");

}  // namespace headrace::cli
