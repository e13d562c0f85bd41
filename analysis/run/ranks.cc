#include "analysis/run/ranks.h"

#include <algorithm>
#include <cmath>

namespace headrace::analysis {

int RanksOf(const RunView& run) {
  constexpr int64_t kMost = 4096;
  int64_t ranks = 1;
  for (const OperatorRow& op : run.operators) {
    if (op.kind != "consumer") continue;
    for (const StageRow& stage : run.stages) {
      if (stage.name == op.stage) ranks = std::max(ranks, stage.last_parallelism_count);
    }
  }
  return static_cast<int>(std::min(ranks, kMost));
}

int EachRank(const RunView& run, int workers) {
  if (workers <= 0) return workers;
  return std::max(1, static_cast<int>(std::lround(double(workers) / RanksOf(run))));
}

}  // namespace headrace::analysis
