// --target: a wanted rate, as people write it.
#pragma once
#include <string>

namespace headrace::experiments {

// "500", "500 batches/s", "282000rows/s": batches per second. Throws Error kUsage for anything
// else, kInconclusive for rows where `rows_per_batch` is 0: not known.
double ParseTarget(const std::string& text, double rows_per_batch);

}  // namespace headrace::experiments
