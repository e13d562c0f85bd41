// ResourceLadder: the rate that each resource alone would allow, from the cores to the consumer, so
// that one sees at once what the limit is, what the next one is, and what has room.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/bottleneck.h"
#include "base/quantity.h"

namespace headrace::analysis {

struct Rung {
  std::string name;     // "cores", "stage decode (2 threads)", "memory bandwidth"
  std::string kind;     // "cores", "stage", "lock", "device", "order", "consumer", "network", ...
  Quantity attainable;  // batches per second, with its interval; or why it is not known
  Quantity used_ratio;  // observed rate / attainable, or the share in use
  bool binding = false;
  std::string note;  // where the figure comes from: "accounted bytes, in and out of operators"
};

// The rows of `bottleneck` and those that the model has no row for: memory bandwidth, network,
// memory (it has no rate; its reason says how many more threads fit). Lowest attainable rate first,
// rows without a rate last.
std::vector<Rung> ResourceLadder(const PipelineModel& model, const Bottleneck& bottleneck);

}  // namespace headrace::analysis
