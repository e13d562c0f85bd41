// A rate in batches and rows, as plan and tune print it.
#pragma once
#include <string>

namespace headrace::cli {

// "179 batches/s (11.5 krows/s)", with `between` behind the first ("179 batches/s [160, 190]
// (...)"). Without rows where the run recorded none, so that their number is unknown
// (`rows_per_batch` 0).
std::string RatesText(double batches_per_second, double rows_per_batch,
                      const std::string& between = "");

}  // namespace headrace::cli
