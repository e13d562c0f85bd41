// What differs between the sides of a pair, by more than runs of one side do.
#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/comparison/pipeline_pair.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {

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

// Whether the logarithms of two sides' values differ by more than runs of one side do: what is
// assumed of runs and what those at hand show, weighted by their number.
bool PipelinePair::Differ(const std::vector<double>& a, const std::vector<double>& b,
                          const std::vector<std::vector<double>>& drawn_a,
                          const std::vector<std::vector<double>>& drawn_b) const {
  const auto log_of = [](double value) { return std::log(std::max(value, kLeastFigure)); };
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

}  // namespace headrace::analysis
