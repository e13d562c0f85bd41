// The rates of the pipelines between the sides of a pair.
#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/comparison/pipeline_pair.h"
#include "analysis/model/limits/bounds.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr uint64_t kSimulationSeed = 20240612;

double Middle(double a, double b) { return a > 0 && b > 0 ? std::sqrt(a * b) : (a + b) / 2; }

double Pick(From from, double a, double b) {
  return from == From::kA ? a : from == From::kB ? b : Middle(a, b);
}

void SetServers(const PairResource& resource, From from, int* servers) {
  if (resource.servers_a == 0 || resource.servers_b == 0) return;
  *servers = from == From::kB ? resource.servers_b : resource.servers_a;
}

}  // namespace

std::vector<PipelinePair::Draw> PipelinePair::Draws(size_t count, uint64_t seed) const {
  Random random(seed);
  const auto one_of = [&](const Side& side, size_t run) {
    const std::vector<PairFigures>& drawn = side.drawn[run];
    return drawn.empty() ? &side.figures[run] : &drawn[random.Below(drawn.size())];
  };
  // Few runs show little of how much runs differ.
  const auto disturb = [&](PairFigures* figures, size_t runs) {
    const double deviation = kRunDeviation / std::sqrt(static_cast<double>(runs));
    const auto factor = [&] { return std::exp(deviation * random.Normal()); };
    for (PairFigures::Operator& op : figures->operators) {
      const double cost = factor();
      op.cpu_s *= cost;
      op.blocked_s *= cost;
    }
    for (PairFigures::Resource& resource : figures->resources) {
      const double cost = factor();
      resource.hold_s *= cost;
      resource.limiter_s *= cost;
    }
    figures->unattributed_s *= factor();
    figures->consumer_s *= factor();
    if (runs == 1) figures->rate *= factor();
  };
  std::vector<Draw> draws;
  for (size_t d = 0; d < count; ++d) {
    std::vector<const PairFigures*> a, b;
    for (size_t i = 0; i < a_.figures.size(); ++i) {
      const size_t run = random.Below(a_.figures.size());
      a.push_back(one_of(a_, run));
      if (paired()) b.push_back(one_of(b_, run));
    }
    for (size_t i = 0; !paired() && i < b_.figures.size(); ++i) {
      b.push_back(one_of(b_, random.Below(b_.figures.size())));
    }
    Draw draw{MeanOf(a), MeanOf(b)};
    disturb(&draw.a, a.size());
    disturb(&draw.b, b.size());
    draws.push_back(std::move(draw));
  }
  return draws;
}

PairFigures PipelinePair::Between(const std::vector<From>& from, const Draw& draw) const {
  PairFigures result = draw.a;
  for (size_t i = 0; i < operators_.size(); ++i) {
    const From side = from[operator_changes_[i]];
    const PairFigures::Operator &a = draw.a.operators[i], &b = draw.b.operators[i];
    PairFigures::Operator& op = result.operators[i];
    op.cpu_s = Pick(side, a.cpu_s, b.cpu_s);
    op.blocked_s = Pick(side, a.blocked_s, b.blocked_s);
  }
  for (size_t r = 0; r < resources_.size(); ++r) {
    const PairFigures::Resource &a = draw.a.resources[r], &b = draw.b.resources[r];
    PairFigures::Resource& resource = result.resources[r];
    double part = 0;  // of the way from A to B
    for (size_t u = 0; u < resources_[r].users.size(); ++u) {
      const From side = from[operator_changes_[resources_[r].users[u]]];
      part += resources_[r].weights[u] * (side == From::kA ? 0 : side == From::kB ? 1 : 0.5);
    }
    if (resources_[r].users.empty()) part = 0.5;
    if (!resources_[r].device) {
      resource.hold_s = a.hold_s + part * (b.hold_s - a.hold_s);
      continue;
    }
    const From side = from[*device_changes_[r]];
    resource.hold_s = Pick(side, a.hold_s, b.hold_s);
    resource.limiter_s = Pick(side, a.limiter_s, b.limiter_s);
    resource.work = a.work + part * (b.work - a.work);
  }
  const From unattributed = from[*unattributed_change_], consumer = from[*consumer_change_];
  result.unattributed_s = Pick(unattributed, draw.a.unattributed_s, draw.b.unattributed_s);
  result.consumer_s = Pick(consumer, draw.a.consumer_s, draw.b.consumer_s);
  result.consumer_cpu_s = Pick(consumer, draw.a.consumer_cpu_s, draw.b.consumer_cpu_s);
  result.consumer_operators_s =
      Pick(consumer, draw.a.consumer_operators_s, draw.b.consumer_operators_s);
  result.cores = Pick(from[*cores_change_], draw.a.cores, draw.b.cores);
  result.slowness = 0;
  if (speed_change_ && from[*speed_change_] != From::kMiddle) {
    result.slowness = from[*speed_change_] == From::kA ? draw.a.slowness : draw.b.slowness;
  }
  return result;
}

// The demands of one batch, for a pipeline in this side's shape.
Demands PipelinePair::DemandsOf(const Side& side, const PairFigures& figures) const {
  const PipelineModel& model = *side.models[0];
  Demands demands;
  demands.rows = side.rows;
  demands.operators.resize(model.operators().size());
  demands.stage_s.resize(model.stages().size());
  demands.stage_cpu_s.resize(model.stages().size());
  demands.resources.resize(model.resources().size());
  for (size_t i = 0; i < operators_.size(); ++i) {
    const double cpu_s = CpuOf(figures, i), blocked_s = BlockedOf(figures, i);
    const size_t place = side.places[i];
    if (place == kNoStage) continue;
    demands.operators[place].cpu_s += side.rows * cpu_s;
    demands.operators[place].blocked_s += side.rows * blocked_s;
    demands.operators[place].busy_s += side.rows * (cpu_s + blocked_s);
    const size_t stage = model.operators()[place].stage;
    demands.stage_s[stage] += side.rows * (cpu_s + blocked_s);
    demands.stage_cpu_s[stage] += side.rows * cpu_s;
  }
  for (size_t r = 0; r < resources_.size(); ++r) {
    if (side.links[r] == kNoStage) continue;
    const PairFigures::Resource& resource = figures.resources[r];
    Demands::Resource& demand = demands.resources[side.links[r]];
    const double work = resources_[r].device ? resource.work : 1;
    demand.hold_s = side.rows * work * resource.hold_s;
    demand.limiter_s = side.rows * work * resource.limiter_s;
  }
  for (const double stage_cpu_s : demands.stage_cpu_s) demands.cpu_s += stage_cpu_s;
  demands.consumer_s = side.rows * figures.consumer_s;
  demands.consumer_cpu_s = side.rows * figures.consumer_cpu_s;
  demands.unattributed_cpu_s = side.rows * figures.unattributed_s + demands.consumer_cpu_s;
  demands.cpu_s += demands.unattributed_cpu_s;
  for (size_t i = 0; i < model.operators().size(); ++i) {
    if (model.operators()[i].stage != kNoStage) continue;
    demands.operators[i].cpu_s = side.rows * figures.consumer_operators_s;
    break;
  }
  return demands;
}

Settings PipelinePair::SettingsOf(const Side& side, const std::vector<From>& from,
                                  double cores) const {
  const PipelineModel& model = *side.models[0];
  Settings settings = model.current();
  settings.cores = cores;
  if (!same_stages_) return settings;
  const PipelineModel &a = *a_.models[0], &b = *b_.models[0];
  const Settings now_a = a.current(), now_b = b.current();
  for (size_t s = 0; s < settings.parallelism.size(); ++s) {
    size_t at_a = 0, at_b = 0;
    while (a.stages()[at_a].name != model.stages()[s].name) ++at_a;
    while (b.stages()[at_b].name != model.stages()[s].name) ++at_b;
    if (thread_changes_[at_a]) {
      settings.parallelism[s] = from[*thread_changes_[at_a]] == From::kB ? now_b.parallelism[at_b]
                                                                         : now_a.parallelism[at_a];
    }
    if (queues_change_) {
      settings.queue_capacity[s] = from[*queues_change_] == From::kB ? now_b.queue_capacity[at_b]
                                                                     : now_a.queue_capacity[at_a];
    }
  }
  if (queues_change_) {
    settings.order_window =
        from[*queues_change_] == From::kB ? now_b.order_window : now_a.order_window;
  }
  return settings;
}

std::vector<const PipelinePair::Side*> PipelinePair::ShapesOf(const std::vector<From>& from) const {
  if (shape_change_ && from[*shape_change_] == From::kA) return {&a_};
  if (shape_change_ && from[*shape_change_] == From::kB) return {&b_};
  return {&a_, &b_};
}

double PipelinePair::Simulated(const std::vector<From>& from, int64_t steps) const {
  const PairFigures figures = Between(from, middle_);
  const std::vector<const Side*> shapes = ShapesOf(from);
  double sum = 0;
  for (const Side* side : shapes) {
    const PipelineModel& model = *side->models[0];
    const Demands demands = DemandsOf(*side, figures);
    const Settings settings = SettingsOf(*side, from, figures.cores);
    SimulatedPipeline pipeline = model.Simulated(settings, demands);
    std::vector<Limit> limits = Bounds(model, demands, settings);
    for (size_t r = 0; r < resources_.size(); ++r) {
      if (!device_changes_[r] || side->links[r] == kNoStage) continue;
      const int before = pipeline.resources[side->links[r]].servers;
      SetServers(resources_[r], from[*device_changes_[r]],
                 &pipeline.resources[side->links[r]].servers);
      for (Limit& limit : limits) {
        if (limit.kind->ResourceOf(limit) != side->links[r]) continue;
        limit.bound *= static_cast<double>(pipeline.resources[side->links[r]].servers) / before;
      }
    }
    const double least = LeastBound(limits);
    const std::optional<double> rate = SimulatedRate(pipeline, steps, kSimulationSeed);
    sum += std::log(std::max(kLeastFigure, rate && *rate > 0 ? std::min(*rate, least) : least) *
                    side->rows);
  }
  return sum / static_cast<double>(shapes.size());
}

double PipelinePair::Bounded(const std::vector<From>& from, const Draw& draw,
                             double sharpness) const {
  const PairFigures figures = Between(from, draw);
  const std::vector<const Side*> shapes = ShapesOf(from);
  double sum = 0;
  for (const Side* side : shapes) {
    const PipelineModel& model = *side->models[0];
    const Settings settings = SettingsOf(*side, from, figures.cores);
    std::vector<Limit> limits = Bounds(model, DemandsOf(*side, figures), settings);
    double least = std::numeric_limits<double>::infinity();
    for (Limit& limit : limits) {
      const bool shared = limit.kind->ResourceOf(limit).has_value();
      for (size_t r = 0; shared && r < resources_.size(); ++r) {
        if (!device_changes_[r] || side->links[r] != limit.index) continue;
        int servers = model.resources()[limit.index].servers;
        const int before = servers;
        SetServers(resources_[r], from[*device_changes_[r]], &servers);
        limit.bound *= static_cast<double>(servers) / before;
      }
      least = std::min(least, limit.bound);
    }
    double soft = 0;
    for (const Limit& limit : limits) soft += std::pow(least / limit.bound, sharpness);
    sum += std::log(std::max(kLeastFigure, least * side->rows)) - std::log(soft) / sharpness;
  }
  return sum / static_cast<double>(shapes.size());
}

double PipelinePair::MovesPerStep() const {
  int64_t moves = int64_t{1} << 40;
  const int64_t before = moves;
  constexpr int64_t kSteps = 40;
  const PipelineModel& model = *a_.models[0];
  SimulatedRate(model.Simulated(model.current(), DemandsOf(a_, middle_.a)), kSteps, kSimulationSeed,
                &moves);
  return std::max(1.0, static_cast<double>(before - moves) / kSteps);
}

}  // namespace headrace::analysis
