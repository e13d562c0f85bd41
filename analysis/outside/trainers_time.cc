#include "analysis/outside/trainers_time.h"

#include "analysis/outside/python_places.h"
#include "analysis/outside/ranks_seen.h"

namespace headrace::analysis {

std::optional<BesideTraining> BesideTrainingOf(const RunView& run) {
  const std::optional<RanksSeen> ranks = FindRanks(run);
  return Larger(BesideTrainingByFunctions(run),
                Exchanging(ranks ? ExchangeRatio(*ranks).value_or(0) : 0));
}

}  // namespace headrace::analysis
