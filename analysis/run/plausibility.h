// Plausibility: what a program wrote into its own accounts is its word, not a measurement. Figures
// that cannot be true, against what the kernel says of its threads and CPU time, are not believed:
// reports withhold them with the reason, and no verdict is made of them.
//
// Bounds are wide: twice the threads the kernel was seen to run and one a core, a quarter on top.
// Threads that live between two looks at the process must not make an honest pipeline a liar.
#pragma once
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Why figures are not believed; "" where they are. The vectors run parallel to those of the run.
struct Doubts {
  std::vector<std::string> operators, queues, resources;
  std::string steps;
  std::vector<std::string> lines;  // each reason once, in the run's order

  // Of one entry; "" also beyond the end.
  static std::string Of(const std::vector<std::string>& doubts, size_t index) {
    return index < doubts.size() ? doubts[index] : "";
  }
  bool any() const { return !lines.empty(); }
  // "" without doubts; "REASON (and 3 more)".
  std::string Summary() const;
};

Doubts FindDoubts(const RunView& run);

// Events beyond what the threads of the run could have made: a count of losses that is none.
bool IsPossibleCount(const RunView& run, int64_t count);

}  // namespace headrace::analysis
