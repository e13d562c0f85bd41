#include "analysis/comparison/pipeline_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "analysis/model/limits/bounds.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

constexpr size_t kWindowDraws = 12;  // draws of resampled windows for each run
constexpr uint64_t kSimulationSeed = 20240612;
constexpr double kLeast = 1e-12;  // seconds: nothing

double Middle(double a, double b) { return a > 0 && b > 0 ? std::sqrt(a * b) : (a + b) / 2; }

double Pick(From from, double a, double b) {
  return from == From::kA ? a : from == From::kB ? b : Middle(a, b);
}

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
  for (const PairFigures* one : figures) logs += std::log(std::max(one->rate, kLeast));
  mean.rate = std::exp(logs * each);
  return mean;
}

PairFigures MeanOf(const std::vector<PairFigures>& figures) {
  std::vector<const PairFigures*> all;
  for (const PairFigures& one : figures) all.push_back(&one);
  return MeanOf(all);
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

// Where most operators got dearer or cheaper alike, that is the cores' doing (their load, clock,
// caches), not the operators': their CPU times are taken at the middle of both speeds, and the
// speed is a thing of its own.
void PipelinePair::FindSpeed() {
  double all_s = 0;
  for (size_t i = 0; i < operators_.size(); ++i) {
    all_s += middle_.a.operators[i].cpu_s + middle_.b.operators[i].cpu_s;
  }
  std::vector<size_t> counted;
  std::vector<double> moved;
  for (size_t i = 0; i < operators_.size(); ++i) {
    const double a = middle_.a.operators[i].cpu_s, b = middle_.b.operators[i].cpu_s;
    if (a <= 0 || b <= 0 || a + b < kOperatorCounts * all_s) continue;
    counted.push_back(i);
    moved.push_back(std::log(b / a));
  }
  if (static_cast<double>(moved.size()) < kOperatorsForCoreSpeed || !splits_cpu()) return;
  const double common = Quantile(moved, 0.5);
  std::vector<size_t> agree;
  for (const size_t i : counted) {
    const double one = std::log(middle_.b.operators[i].cpu_s / middle_.a.operators[i].cpu_s);
    if (one * common > 0 &&
        std::abs(one - common) < std::max(kNearCoreSpeed, std::abs(common) / 3)) {
      agree.push_back(i);
    }
  }
  if (std::abs(common) < kCoreSpeedMoved ||
      static_cast<double>(agree.size()) < kOperatorsAgree * static_cast<double>(moved.size()) ||
      !DifferBy([&](const PairFigures& f) {
        double sum_s = 0;
        for (const size_t i : agree) sum_s += f.operators[i].cpu_s;
        return sum_s;
      })) {
    return;
  }
  speed_change_ = changes_.size();
  changes_.push_back(
      {AttributedTo::kCoreSpeed, 0, "speed of the cores", 1.0, std::exp(-common), true});
  for (Side* side : {&a_, &b_}) {
    const double slowness = side == &a_ ? -common / 2 : common / 2;
    const auto normalise = [&](PairFigures* figures) {
      figures->slowness = slowness;
      for (PairFigures::Operator& op : figures->operators) op.cpu_s *= std::exp(-slowness);
    };
    for (PairFigures& figures : side->figures) normalise(&figures);
    for (std::vector<PairFigures>& drawn : side->drawn) {
      for (PairFigures& figures : drawn) normalise(&figures);
    }
  }
  middle_ = {MeanOf(a_.figures), MeanOf(b_.figures)};
}

double PipelinePair::CpuOf(const PairFigures& figures, size_t i) const {
  return figures.operators[i].cpu_s * std::exp(figures.slowness);
}

// Whether the logarithms of two sides' values differ by more than runs of one side do: what is
// assumed of runs and what those at hand show, weighted by their number.
bool PipelinePair::Differ(const std::vector<double>& a, const std::vector<double>& b,
                          const std::vector<std::vector<double>>& drawn_a,
                          const std::vector<std::vector<double>>& drawn_b) const {
  const auto log_of = [](double value) { return std::log(std::max(value, kLeast)); };
  std::vector<double> logs_a, logs_b;
  for (const double value : a) logs_a.push_back(log_of(value));
  for (const double value : b) logs_b.push_back(log_of(value));
  const double difference = Mean(logs_b) - Mean(logs_a);
  if (difference == 0) return false;
  // Variance of one run's logarithm, from resampling its windows; mean over the runs of a side.
  const auto within = [&](const std::vector<std::vector<double>>& runs) {
    double sum = 0;
    for (const std::vector<double>& draws : runs) {
      std::vector<double> logs;
      for (const double value : draws) logs.push_back(log_of(value));
      sum += Variance(logs);
    }
    return runs.empty() ? 0 : sum / static_cast<double>(runs.size());
  };
  const double prior_a = kRunDeviation * kRunDeviation + within(drawn_a);
  const double prior_b = kRunDeviation * kRunDeviation + within(drawn_b);
  const double runs_a = static_cast<double>(a.size()), runs_b = static_cast<double>(b.size());
  const auto pooled = [](double prior, double seen, double runs) {
    return (kRunDeviationRuns * prior + (runs - 1) * seen) / (kRunDeviationRuns + runs - 1);
  };
  double variance;
  if (paired()) {
    std::vector<double> differences;
    for (size_t i = 0; i < a.size(); ++i) differences.push_back(logs_b[i] - logs_a[i]);
    variance = pooled(prior_a + prior_b, Variance(differences), runs_a) / runs_a;
  } else {
    variance = pooled(prior_a, Variance(logs_a), runs_a) / runs_a +
               pooled(prior_b, Variance(logs_b), runs_b) / runs_b;
  }
  return std::abs(difference) > kSidesDiffer * std::sqrt(variance);
}

bool PipelinePair::DifferBy(const std::function<double(const PairFigures&)>& value) const {
  std::vector<double> a, b;
  std::vector<std::vector<double>> drawn_a, drawn_b;
  for (size_t i = 0; i < a_.figures.size(); ++i) {
    a.push_back(value(a_.figures[i]));
    drawn_a.emplace_back();
    for (const PairFigures& one : a_.drawn[i]) drawn_a.back().push_back(value(one));
  }
  for (size_t i = 0; i < b_.figures.size(); ++i) {
    b.push_back(value(b_.figures[i]));
    drawn_b.emplace_back();
    for (const PairFigures& one : b_.drawn[i]) drawn_b.back().push_back(value(one));
  }
  return Differ(a, b, drawn_a, drawn_b);
}

PairChange& PipelinePair::AddChange(AttributedTo what, size_t index, std::string name) {
  changes_.push_back({what, index, std::move(name), {}, {}, false});
  return changes_.back();
}

void PipelinePair::FindDeviceChanges() {
  for (size_t r = 0; r < resources_.size(); ++r) {
    device_changes_.push_back(std::nullopt);
    const PairResource& resource = resources_[r];
    if (!resource.device && resource.servers_a == resource.servers_b) continue;
    device_changes_.back() = changes_.size();
    PairChange& change =
        AddChange(resource.device ? AttributedTo::kDevice : AttributedTo::kLock, r, resource.name);
    if (!resource.device) {
      change.a = resource.servers_a;
      change.b = resource.servers_b;
      change.differs = resource.servers_a > 0 && resource.servers_b > 0;
      continue;
    }
    change.a = std::max(middle_.a.resources[r].hold_s, middle_.a.resources[r].limiter_s);
    change.b = std::max(middle_.b.resources[r].hold_s, middle_.b.resources[r].limiter_s);
    change.differs =
        resource.servers_a != resource.servers_b || DifferBy([r](const PairFigures& f) {
          return std::max(f.resources[r].hold_s, f.resources[r].limiter_s);
        });
  }
}

// Of two sides with the same stages.
void PipelinePair::FindSettingChanges() {
  const PipelineModel &a = *a_.models[0], &b = *b_.models[0];
  const Settings now_a = a.current(), now_b = b.current();
  std::vector<double> queues_a, queues_b;
  for (size_t s = 0; s < a.stages().size(); ++s) {
    thread_changes_.push_back(std::nullopt);
    for (size_t t = 0; t < b.stages().size(); ++t) {
      if (b.stages()[t].name != a.stages()[s].name) continue;
      queues_a.push_back(now_a.queue_capacity[s]);
      queues_b.push_back(now_b.queue_capacity[t]);
      if (now_a.parallelism[s] == now_b.parallelism[t]) continue;
      thread_changes_[s] = changes_.size();
      PairChange& change = AddChange(AttributedTo::kThreads, s, a.stages()[s].name);
      change.a = now_a.parallelism[s];
      change.b = now_b.parallelism[t];
      change.differs = true;
    }
  }
  if (queues_a == queues_b && now_a.order_window == now_b.order_window) return;
  queues_change_ = changes_.size();
  AddChange(AttributedTo::kQueues, 0, "queues").differs = true;
}

void PipelinePair::FindChanges() {
  const auto differ = [&](const std::function<double(const PairFigures&)>& value) {
    return DifferBy(value);
  };
  for (size_t i = 0; i < operators_.size(); ++i) {
    operator_changes_.push_back(changes_.size());
    PairChange& change = AddChange(AttributedTo::kOperator, i, operators_[i].name);
    if (operators_[i].in_a != operators_[i].in_b) {
      change.differs = true;
      continue;
    }
    // As if the devices were as fast on both sides.
    const double devices_s = (BlockedOf(middle_.a, i) - middle_.a.operators[i].blocked_s +
                              BlockedOf(middle_.b, i) - middle_.b.operators[i].blocked_s) /
                             2;
    change.differs = differ([&](const PairFigures& f) {
                       return f.operators[i].cpu_s + f.operators[i].blocked_s + devices_s;
                     }) ||
                     differ([i](const PairFigures& f) { return f.operators[i].cpu_s; });
  }
  for (size_t r = 0; r < resources_.size(); ++r) {
    const bool both = resources_[r].servers_a > 0 && resources_[r].servers_b > 0;
    const bool device = resources_[r].device;
    BlameUsers(r, both && differ([&](const PairFigures& f) {
                    return device ? f.resources[r].work : f.resources[r].hold_s;
                  }));
  }
  unattributed_change_ = changes_.size();
  AddChange(AttributedTo::kUnattributed, 0, "unattributed").differs =
      differ([](const PairFigures& f) { return f.unattributed_s; });
  consumer_change_ = changes_.size();
  PairChange& consumer = AddChange(AttributedTo::kConsumer, 0, "consumer");
  consumer.a = middle_.a.consumer_s;
  consumer.b = middle_.b.consumer_s;
  consumer.differs = differ([](const PairFigures& f) { return f.consumer_s; }) ||
                     differ([](const PairFigures& f) { return f.consumer_cpu_s; });
  FindDeviceChanges();
  cores_change_ = changes_.size();
  PairChange& cores = AddChange(AttributedTo::kCores, 0, "cores left by others");
  cores.a = middle_.a.cores;
  cores.b = middle_.b.cores;
  cores.differs = std::abs(std::log(middle_.a.cores / middle_.b.cores)) > kSameCoresLeft &&
                  differ([](const PairFigures& f) { return f.cores; });
  if (same_stages_) FindSettingChanges();
}

// Who holds a lock for how long is not recorded, nor who asks how much of a device. Where it is
// more, those of its users are taken to be the cause that cost more, by as much; where none does,
// all of them.
void PipelinePair::BlameUsers(size_t r, bool differs) {
  PairResource& resource = resources_[r];
  const PairFigures::Resource &all_a = middle_.a.resources[r], &all_b = middle_.b.resources[r];
  const double more = resource.device ? all_b.work - all_a.work : all_b.hold_s - all_a.hold_s;
  double sum = 0;
  for (const size_t i : resource.users) {
    const PairFigures::Operator &a = middle_.a.operators[i], &b = middle_.b.operators[i];
    const double cost = b.cpu_s + b.blocked_s - a.cpu_s - a.blocked_s;
    const bool same_way = changes_[operator_changes_[i]].differs && cost * more > 0;
    resource.weights.push_back(same_way ? std::abs(cost) : 0);
    sum += resource.weights.back();
  }
  for (size_t u = 0; u < resource.users.size(); ++u) {
    double& weight = resource.weights[u];
    weight = sum > 0 ? weight / sum : resource.shares[u];
    if (sum <= 0 && differs) changes_[operator_changes_[resource.users[u]]].differs = true;
  }
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

namespace {

void SetServers(const PairResource& resource, From from, int* servers) {
  if (resource.servers_a == 0 || resource.servers_b == 0) return;
  *servers = from == From::kB ? resource.servers_b : resource.servers_a;
}

}  // namespace

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
    sum +=
        std::log(std::max(kLeast, rate && *rate > 0 ? std::min(*rate, least) : least) * side->rows);
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
    sum += std::log(std::max(kLeast, least * side->rows)) - std::log(soft) / sharpness;
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
