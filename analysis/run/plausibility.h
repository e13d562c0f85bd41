// Plausibility: what a program wrote into its own accounts is a claim, not a measurement. Figures
// that contradict the kernel's counts of the program's threads and CPU time are not believed:
// reports withhold them with the reason, and no verdict uses them.
//
// The bounds are wide, because threads that live only between two readings must not make an honest
// pipeline look wrong: twice the threads that the kernel was seen to run, plus one per core, plus a
// quarter.
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

  // The doubt about entry `index`; "" also beyond the end.
  static std::string Of(const std::vector<std::string>& doubts, size_t index) {
    return index < doubts.size() ? doubts[index] : "";
  }
  bool any() const { return !lines.empty(); }
  // "" without doubts; "REASON (and 3 more)".
  std::string Summary() const;
};

Doubts FindDoubts(const RunView& run);

// Whether the run's threads could have made that many events. A count of losses beyond that is not
// believed.
bool IsPossibleCount(const RunView& run, int64_t count);

}  // namespace headrace::analysis
