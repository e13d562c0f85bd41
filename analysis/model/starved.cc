#include "analysis/model/starved.h"

#include <algorithm>
#include <cmath>

#include "analysis/model/scale.h"
#include "analysis/run/known_loaders.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// Its threads are those of a pool.
bool SharesPool(const PipelineModel& model, size_t stage) {
  const KnownLoader* known = FindKnownLoader(model.run(), model.stages()[stage].name);
  return known != nullptr && known->pool != nullptr;
}

}  // namespace

double LeastCostOnceBusy(double duty, double rate_ratio) {
  if (!(duty > 0) || !(rate_ratio > 1)) return 1;
  const double dearer = std::min({kMostOfStarved, kBusyThreads / duty, std::sqrt(rate_ratio)});
  return 1 / std::max(1.0, dearer);
}

Demands OnceBusy(const PipelineModel& model, const Demands& demands, double rate_ratio) {
  std::vector<Scale> scales;
  const Demands& now = model.demands();
  bool pool = false;
  // A little more work ends little of the search for it.
  const double found = std::clamp((rate_ratio - 1) / kPoolIsBusy, 0.0, 1.0);
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const int threads = model.current().parallelism[s];
    if (threads <= 0) continue;  // it runs on the consumer's threads
    const double duty = now.stage_cpu_s[s] * now.rate / threads;
    double least = LeastCostOnceBusy(duty, rate_ratio);
    // A thread of a pool is woken for one element after the other, and looks for work for a while
    // before it sleeps, unless there is enough of it: that may be all of the CPU time outside
    // operators.
    if (SharesPool(model, s)) {
      pool = true;
      least = std::min(least, 1 - (1 - kPoolOnceBusy) * found);
    }
    for (const size_t op : model.stages()[s].operators) {
      scales.push_back({Scaled::kAdded, op, -demands.operators[op].cpu_s * (1 - least)});
    }
  }
  if (pool) scales.push_back({Scaled::kOther, 0, 1 - found});
  return Apply(model, demands, scales);
}

}  // namespace headrace::analysis
