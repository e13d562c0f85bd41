#include "analysis/model/python_threads.h"

#include <algorithm>

#include "analysis/thresholds.h"

namespace headrace::analysis {

bool MayShareInterpreter(const PipelineModel& model, size_t stage) {
  const std::vector<size_t>& operators = model.stages()[stage].operators;
  const bool threads = std::any_of(operators.begin(), operators.end(), [&](size_t op) {
    return model.operators()[op].kind == kThreadCall;
  });
  const Demands& demands = model.demands();
  const double cores = demands.stage_cpu_s[stage] * demands.rate;
  return threads && demands.stage_cpu_s[stage] > kComputes * demands.stage_s[stage] &&
         std::min(cores, model.cores_used().value_or(0)) < 2 - kOneCore;
}

}  // namespace headrace::analysis
