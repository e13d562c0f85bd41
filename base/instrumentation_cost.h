// CPU time that operator accounts take in the program's own threads, estimated from what they
// counted: what one visit and one batch take was measured apart from any run
// (docs/measurements.md).
#pragma once
#include <algorithm>

namespace headrace {

// Of the reader's operators, and of programs that call the library themselves (account_bench).
inline constexpr double kVisitNs = 22;
// Of PyTorch's DataLoader with the import hook, in all its processes together.
inline constexpr double kHookedBatchNs = 15'000;

// `hooked_batches`: that a DataLoader's workers made and the trainer received. Their cost holds
// that of their visits. Of sums that grow this grows.
inline double InstrumentationNs(double visits, double hooked_batches) {
  return std::max(hooked_batches * kHookedBatchNs, visits * kVisitNs);
}

}  // namespace headrace
