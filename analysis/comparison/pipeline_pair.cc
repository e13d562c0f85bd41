#include "analysis/comparison/pipeline_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/thresholds.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

constexpr size_t kWindowDraws = 12;  // draws of resampled windows for each run

double Units(const RunView& run) {
  return run.steps.rows_count > 0
             ? static_cast<double>(run.steps.rows_count) /
                   static_cast<double>(std::max<int64_t>(1, run.steps.steps_count))
             : 1;
}

// The name, where each operator of both runs has one of its own; else with its stage.
std::string KeyOf(const PipelineModel& model, size_t op, bool unique) {
  const OperatorRow& row = model.run().operators[op];
  return unique ? row.name : row.stage + "/" + row.name;
}

bool UniqueNames(const PipelineModel& model) {
  std::set<std::string> names;
  for (const OperatorModel& op : model.operators()) {
    if (!names.insert(op.name).second) return false;
  }
  return true;
}

}  // namespace

PipelinePair::PipelinePair(std::span<const RunView> a, std::span<const RunView> b, uint64_t seed) {
  for (const RunView& run : a) a_.models.push_back(std::make_unique<PipelineModel>(run));
  for (const RunView& run : b) b_.models.push_back(std::make_unique<PipelineModel>(run));
  bool rows = true;
  for (const Side* side : {&a_, &b_}) {
    for (const auto& model : side->models) rows = rows && model->run().steps.rows_count > 0;
  }
  if (!rows) unit_ = "batch";
  a_.rows = rows ? Units(a_.models[0]->run()) : 1;
  b_.rows = rows ? Units(b_.models[0]->run()) : 1;
  Match();
  MatchResources();
  Place(&a_, true);
  Place(&b_, false);
  for (PairResource& resource : resources_) {
    double sum = 0;
    for (const double share : resource.shares) sum += share;
    for (double& share : resource.shares) share /= sum > 0 ? sum : 1;
  }
  FindShape();
  Random random(seed);
  for (Side* side : {&a_, &b_}) {
    for (const auto& model : side->models) {
      side->figures.push_back(Read(*model, model->demands()));
      std::vector<PairFigures>& drawn = side->drawn.emplace_back();
      const std::vector<size_t>& steady = model->steady_windows();
      if (steady.size() < 3) continue;
      const size_t block = steady.size() >= 12 ? 2 : 1;
      for (size_t i = 0; i < kWindowDraws; ++i) {
        std::vector<size_t> windows = BlockResample(steady.size(), block, random);
        for (size_t& window : windows) window = steady[window];
        drawn.push_back(Read(*model, model->Estimate(windows)));
      }
    }
  }
  middle_ = {MeanOf(a_.figures), MeanOf(b_.figures)};
  FindSpeed();
  FindChanges();
}

bool PipelinePair::splits_cpu() const {
  for (const Side* side : {&a_, &b_}) {
    for (const auto& model : side->models) {
      if (!model->splits_cpu()) return false;
    }
  }
  return true;
}

// In the order of side A; those of side B alone behind the one that they follow there.
void PipelinePair::Match() {
  const PipelineModel &a = *a_.models[0], &b = *b_.models[0];
  const bool unique = UniqueNames(a) && UniqueNames(b);
  const auto find = [&](const std::string& name) {
    return std::find_if(operators_.begin(), operators_.end(),
                        [&](const PairOperator& op) { return op.name == name; });
  };
  for (size_t i = 0; i < a.operators().size(); ++i) {
    if (a.operators()[i].stage == kNoStage) continue;
    operators_.push_back({KeyOf(a, i, unique), a.run().operators[i].stage, true, false});
  }
  size_t behind = 0;
  for (size_t i = 0; i < b.operators().size(); ++i) {
    if (b.operators()[i].stage == kNoStage) continue;
    const std::string key = KeyOf(b, i, unique);
    const auto known = find(key);
    if (known != operators_.end()) {
      known->in_b = true;
      known->stage = b.run().operators[i].stage;
      behind = static_cast<size_t>(known - operators_.begin()) + 1;
      continue;
    }
    operators_.insert(operators_.begin() + static_cast<long>(behind),
                      {key, b.run().operators[i].stage, false, true});
    ++behind;
  }
  for (const PairOperator& op : operators_) {
    if (op.in_a && op.in_b) continue;
    notes_.push_back(fmt::format("operator {} of stage {} is in {} only: all of its cost counts",
                                 Printable(op.name), Printable(op.stage), op.in_a ? "A" : "B"));
  }
}

void PipelinePair::MatchResources() {
  const auto add = [&](const PipelineModel& model, bool is_a) {
    for (const ResourceModel& resource : model.resources()) {
      const bool device = resource.kind != "lock";
      auto known = std::find_if(resources_.begin(), resources_.end(), [&](const PairResource& one) {
        return one.name == resource.name && one.device == device;
      });
      if (known == resources_.end()) {
        resources_.push_back({resource.name, device, 0, 0});
        known = resources_.end() - 1;
      }
      (is_a ? known->servers_a : known->servers_b) = resource.servers;
    }
  };
  add(*a_.models[0], true);
  add(*b_.models[0], false);
  for (const PairResource& resource : resources_) {
    if (resource.servers_a > 0 && resource.servers_b > 0) continue;
    notes_.push_back(fmt::format("{} {} was seen in {} only", resource.device ? "device" : "lock",
                                 Printable(resource.name), resource.servers_a > 0 ? "A" : "B"));
  }
}

// Where each operator stands in the side's first model; one that the side does not have counts as
// a part of the one before it, or of the first.
void PipelinePair::Place(Side* side, bool is_a) {
  const PipelineModel& model = *side->models[0];
  const bool unique = UniqueNames(*a_.models[0]) && UniqueNames(*b_.models[0]);
  std::map<std::string, size_t> index;
  std::optional<size_t> first;
  for (size_t i = 0; i < model.operators().size(); ++i) {
    if (model.operators()[i].stage == kNoStage) continue;
    index[KeyOf(model, i, unique)] = i;
    if (!first) first = i;
  }
  size_t last = first.value_or(kNoStage);
  for (PairOperator& op : operators_) {
    if (is_a ? op.in_a : op.in_b) last = index.at(op.name);
    side->places.push_back(last);
  }
  for (size_t r = 0; r < resources_.size(); ++r) {
    side->links.push_back(kNoStage);
    for (size_t m = 0; m < model.resources().size(); ++m) {
      const ResourceModel& resource = model.resources()[m];
      if (resource.name != resources_[r].name ||
          (resource.kind != "lock") != resources_[r].device) {
        continue;
      }
      side->links.back() = m;
      for (size_t i = 0; i < operators_.size(); ++i) {
        if (!(is_a ? operators_[i].in_a : operators_[i].in_b)) continue;
        std::vector<size_t>& users = resources_[r].users;
        for (const auto& [user, share] : resource.users) {
          if (user != side->places[i]) continue;
          const size_t u =
              static_cast<size_t>(std::find(users.begin(), users.end(), i) - users.begin());
          if (u == users.size()) {
            users.push_back(i);
            resources_[r].shares.push_back(0);
          }
          resources_[r].shares[u] += share;
        }
      }
    }
  }
}

void PipelinePair::FindShape() {
  const PipelineModel &a = *a_.models[0], &b = *b_.models[0];
  std::set<std::string> stages_a, stages_b;
  for (const StageModel& stage : a.stages()) stages_a.insert(stage.name);
  for (const StageModel& stage : b.stages()) stages_b.insert(stage.name);
  same_stages_ = stages_a == stages_b;
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (!operators_[i].in_a || !operators_[i].in_b) continue;
    same_stages_ = same_stages_ &&
                   a.run().operators[a_.places[i]].stage == b.run().operators[b_.places[i]].stage;
  }
  std::string what;
  const auto add = [&](const char* text) {
    what += fmt::format("{}{}", what.empty() ? "" : ", ", text);
  };
  if (!same_stages_) add("which stages their operators run in");
  if (std::abs(std::log(a_.rows / b_.rows)) > kSameBatchRows) add("how many rows a batch has");
  if (a.ordered() != b.ordered()) add("whether batches keep their order");
  if (what.empty()) return;
  shape_change_ = changes_.size();
  PairChange change{AttributedTo::kShape, 0, what, {}, {}, true};
  if (same_stages_ && a.ordered() == b.ordered()) {
    change.a = a_.rows;
    change.b = b_.rows;
  }
  changes_.push_back(change);
}

PairFigures PipelinePair::Read(const PipelineModel& model, const Demands& demands) const {
  const bool unique = UniqueNames(*a_.models[0]) && UniqueNames(*b_.models[0]);
  const double units = unit_ == "row" ? Units(model.run()) : 1;
  PairFigures figures;
  figures.rate = demands.rate * units;
  figures.cores = model.cores_available();
  figures.consumer_s = demands.consumer_s / units;
  figures.consumer_cpu_s = demands.consumer_cpu_s / units;
  figures.unattributed_s =
      std::max(0.0, demands.unattributed_cpu_s - demands.consumer_cpu_s) / units;
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < model.operators().size(); ++i) {
    if (model.operators()[i].stage == kNoStage) {
      figures.consumer_operators_s += demands.operators[i].cpu_s / units;
    } else {
      index[KeyOf(model, i, unique)] = i;
    }
  }
  const double steps = static_cast<double>(std::max<int64_t>(1, model.run().steps.steps_count));
  figures.operators.resize(operators_.size());
  figures.resources.resize(resources_.size());
  for (size_t i = 0; i < operators_.size(); ++i) {
    const auto at = index.find(operators_[i].name);
    if (at == index.end()) continue;
    const Demands::Operator& op = demands.operators[at->second];
    figures.operators[i] = {op.cpu_s / units, op.blocked_s / units, op.bytes_in / units};
  }
  for (size_t r = 0; r < resources_.size(); ++r) {
    const ResourceModel* resource = nullptr;
    size_t m = 0;
    for (; m < model.resources().size() && resource == nullptr; ++m) {
      const ResourceModel& one = model.resources()[m];
      if (one.name == resources_[r].name && (one.kind != "lock") == resources_[r].device) {
        resource = &one;
      }
    }
    if (resource == nullptr) continue;
    --m;
    const Demands::Resource& demand = demands.resources[m];
    if (!resources_[r].device) {
      figures.resources[r] = {demand.hold_s / units, 0, 0};
      continue;
    }
    const double requests =
        resource->account
            ? static_cast<double>(model.run().resources[*resource->account].acquisitions_count) /
                  steps
            : 0;
    const double work = demand.bytes > 0 ? demand.bytes : requests > 0 ? requests : 1;
    figures.resources[r] = {demand.hold_s / work, demand.limiter_s / work, work / units};
    for (size_t u = 0; u < resources_[r].users.size(); ++u) {
      const size_t i = resources_[r].users[u];
      if (index.contains(operators_[i].name)) {
        figures.operators[i].blocked_s -= resources_[r].shares[u] * demand.hold_s / units;
      }
    }
  }
  return figures;
}

double PipelinePair::CpuOf(const PairFigures& figures, size_t i) const {
  return figures.operators[i].cpu_s * std::exp(figures.slowness);
}

double PipelinePair::BlockedOf(const PairFigures& figures, size_t i) const {
  double blocked_s = figures.operators[i].blocked_s;
  for (size_t r = 0; r < resources_.size(); ++r) {
    if (!resources_[r].device) continue;
    const PairFigures::Resource& device = figures.resources[r];
    for (size_t u = 0; u < resources_[r].users.size(); ++u) {
      if (resources_[r].users[u] == i) {
        blocked_s += resources_[r].shares[u] * device.work * device.hold_s;
      }
    }
  }
  return std::max(0.0, blocked_s);
}

}  // namespace headrace::analysis
