#include "analysis/comparison/pair_figures.h"

#include <algorithm>
#include <cmath>

namespace headrace::analysis {

PairFigures MeanOf(const std::vector<const PairFigures*>& figures) {
  PairFigures mean = *figures.at(0);
  const double each = 1 / static_cast<double>(figures.size());
  const auto average = [&](auto&& field) {
    double sum = 0;
    for (const PairFigures* one : figures) sum += field(*const_cast<PairFigures*>(one));
    field(mean) = sum * each;
  };
  for (size_t i = 0; i < mean.operators.size(); ++i) {
    average([i](PairFigures& f) -> double& { return f.operators[i].cpu_s; });
    average([i](PairFigures& f) -> double& { return f.operators[i].blocked_s; });
    average([i](PairFigures& f) -> double& { return f.operators[i].bytes; });
  }
  for (size_t r = 0; r < mean.resources.size(); ++r) {
    average([r](PairFigures& f) -> double& { return f.resources[r].hold_s; });
    average([r](PairFigures& f) -> double& { return f.resources[r].limiter_s; });
    average([r](PairFigures& f) -> double& { return f.resources[r].work; });
  }
  average([](PairFigures& f) -> double& { return f.unattributed_s; });
  average([](PairFigures& f) -> double& { return f.consumer_s; });
  average([](PairFigures& f) -> double& { return f.consumer_cpu_s; });
  average([](PairFigures& f) -> double& { return f.consumer_operators_s; });
  average([](PairFigures& f) -> double& { return f.cores; });
  double logs = 0;
  for (const PairFigures* one : figures) logs += std::log(std::max(one->rate, kLeastFigure));
  mean.rate = std::exp(logs * each);
  return mean;
}

PairFigures MeanOf(const std::vector<PairFigures>& figures) {
  std::vector<const PairFigures*> all;
  for (const PairFigures& one : figures) all.push_back(&one);
  return MeanOf(all);
}

}  // namespace headrace::analysis
