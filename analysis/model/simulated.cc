// PipelineModel: itself as what Simulate() runs.
#include <algorithm>
#include <cmath>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

// The work of one firing of stage `s`; `overhead`: CPU time on top of that of operators.
void PipelineModel::AddSimulatedOperators(const StageModel& model, size_t s, const Demands& demands,
                                          double overhead, double firings, double cv,
                                          SimulatedStage* stage) const {
  for (size_t i : model.operators) {
    const Demands::Operator& op = demands.operators[i];
    SimulatedOperator simulated;
    simulated.name = operators_[i].name;
    simulated.cpu_s = op.cpu_s * (1 + overhead) / firings;
    simulated.blocked_s = op.blocked_s / firings;
    simulated.cv = cv;
    for (size_t r = 0; r < resources_.size(); ++r) {
      for (const auto& [user, share] : resources_[r].users) {
        if (user != i || simulated.resource >= 0 || resources_[r].counted_s) continue;
        const double hold = demands.resources[r].hold_s * share / firings;
        simulated.resource = static_cast<int>(r);
        simulated.held_blocked_s = std::min(simulated.blocked_s, hold);
        simulated.held_cpu_s = std::min(simulated.cpu_s, hold - simulated.held_blocked_s);
        simulated.blocked_s -= simulated.held_blocked_s;
        simulated.cpu_s -= simulated.held_cpu_s;
      }
    }
    stage->operators.push_back(simulated);
  }
  if (model.on_consumer) {  // what its operators leave out
    SimulatedOperator rest;
    rest.cpu_s = demands.stage_cpu_s[s];
    rest.blocked_s = demands.stage_s[s] - demands.stage_cpu_s[s];
    for (size_t i : model.operators) {
      rest.cpu_s -= demands.operators[i].cpu_s;
      rest.blocked_s -= demands.operators[i].blocked_s;
    }
    rest.cpu_s = std::max(0.0, rest.cpu_s) * (1 + overhead) / firings;
    rest.blocked_s = std::max(0.0, rest.blocked_s) / firings;
    rest.cv = cv;
    stage->operators.push_back(rest);
  }
}

SimulatedPipeline PipelineModel::Simulated(const Settings& settings, const Demands& demands) const {
  SimulatedPipeline pipeline;
  pipeline.cores = cores_known_ ? SharedCores(settings, demands) : 1e6;
  // What it computes on the cores is a part of its step.
  pipeline.consumer_s = demands.consumer_s - ConsumerComputeCpu(demands) + demands.order_wait_s;
  pipeline.consumer_cpu_s = demands.consumer_cpu_s;
  pipeline.consumer_cv = consumer_cv_;
  double cpu = 0;
  for (double stage_cpu : demands.stage_cpu_s) cpu += stage_cpu;
  const double overhead =
      cpu > 0 ? std::max(0.0, demands.unattributed_cpu_s - demands.consumer_cpu_s) / cpu : 0;
  for (const ResourceModel& resource : resources_) {
    pipeline.resources.push_back({resource.name, resource.servers});
  }
  // Elements and firings finer than kFinest to a batch are simulated several at a time.
  constexpr double kFinest = 8;
  const auto grain = [](double per_batch) { return std::max(1.0, per_batch / kFinest); };
  for (size_t s = 0; s < stages_.size(); ++s) {
    const StageModel& model = stages_[s];
    const double together = grain(model.firings);
    const double firings = std::max(model.firings / together, 1e-6);
    const bool on_consumer = settings.parallelism[s] <= 0;
    SimulatedStage stage{model.name, std::max(1, settings.parallelism[s]), 1, {}};
    stage.queue_capacity = std::max(
        1, static_cast<int>(std::lround(settings.queue_capacity[s] / grain(model.elements))));
    stage.emit = model.elements / grain(model.elements) / firings;
    stage.ordered = ordered_;
    stage.window =
        settings.order_window > 0
            ? std::max(1, static_cast<int>(std::lround(settings.order_window / together)))
            : 0;
    stage.inputs.emplace();
    for (size_t input : model.inputs) {
      const double elements = stages_[input].elements;
      stage.inputs->push_back({input, elements / grain(elements) / firings});
    }
    // One cv for each operator, so that all of them together vary as the stage does.
    double sum = 0, squares = 0;
    for (size_t i : model.operators) {
      const double cost = demands.operators[i].cpu_s + demands.operators[i].blocked_s;
      sum += cost;
      squares += cost * cost;
    }
    const double cv = model.cv / std::sqrt(together) * (squares > 0 ? sum / std::sqrt(squares) : 1);
    // Its work is a part of the consumer's step.
    if (on_consumer) {
      pipeline.consumer_cpu_s += demands.stage_cpu_s[s] * (1 + overhead) / consumers_;
      pipeline.consumer_s +=
          std::max(0.0, demands.stage_s[s] - demands.stage_cpu_s[s]) / consumers_;
      stage.operators.push_back({});
      pipeline.stages.push_back(std::move(stage));
      continue;
    }
    AddSimulatedOperators(model, s, demands, overhead, firings, cv, &stage);
    if (stage.operators.empty()) stage.operators.push_back({});
    pipeline.stages.push_back(std::move(stage));
  }
  if (!stages_.empty()) {
    const double elements = stages_.back().elements;
    pipeline.consumer_take = elements / grain(elements);
  }
  return pipeline;
}

}  // namespace headrace::analysis
