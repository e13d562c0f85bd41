#include "analysis/model/starved.h"

#include <algorithm>
#include <cmath>

#include "analysis/model/scale.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {

double LeastCostOnceBusy(double duty, double rate_ratio) {
  if (!(duty > 0) || !(rate_ratio > 1)) return 1;
  const double dearer = std::min({kMostOfStarved, kBusyThreads / duty, std::sqrt(rate_ratio)});
  return 1 / std::max(1.0, dearer);
}

Demands OnceBusy(const PipelineModel& model, const Demands& demands, double rate_ratio) {
  std::vector<Scale> scales;
  const Demands& now = model.demands();
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const int threads = model.current().parallelism[s];
    if (threads <= 0) continue;  // it runs on the consumer's threads
    const double duty = now.stage_cpu_s[s] * now.rate / threads;
    const double least = LeastCostOnceBusy(duty, rate_ratio);
    for (const size_t op : model.stages()[s].operators) {
      scales.push_back({Scaled::kAdded, op, -demands.operators[op].cpu_s * (1 - least)});
    }
  }
  return Apply(model, demands, scales);
}

}  // namespace headrace::analysis
