// CPU time that operator accounts take in the program's own threads, estimated from what they
// counted: what one visit and one batch take was measured apart from any run
// (docs/measurements.md).
#pragma once
#include <algorithm>
#include <string_view>

namespace headrace {

// Of the reader's operators, and of programs that call the library themselves (account_bench).
inline constexpr double kVisitNs = 22;
// Of PyTorch's DataLoader with the import hook, in all its processes together.
inline constexpr double kHookedBatchNs = 15'000;

// The operator whose elements are those batches: the import hook's, in the trainer's process.
inline bool ReceivesHookedBatches(std::string_view kind, std::string_view stage) {
  return kind == "receive" && stage == "receiver";
}

// Nanoseconds that `visits` of operators took, or the `hooked_batches` that a trainer received,
// which cost more and hold what their visits cost. Never less as either grows.
inline double InstrumentationNs(double visits, double hooked_batches) {
  return std::max(hooked_batches * kHookedBatchNs, visits * kVisitNs);
}

}  // namespace headrace
