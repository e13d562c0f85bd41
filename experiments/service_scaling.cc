#include "experiments/service_scaling.h"

#include <algorithm>
#include <climits>
#include <utility>

namespace headrace::experiments {
namespace {

namespace service = reader::service;

reader::AutoscaleOptions OptionsFor(uint32_t least, uint32_t most) {
  reader::AutoscaleOptions options;
  options.least = static_cast<int>(least);
  options.most = static_cast<int>(most);
  options.startup_s = 2;  // a process on this machine, until one was observed
  return options;
}

}  // namespace

ServiceScaling::ServiceScaling(uint32_t least, uint32_t most, bool is_lockstep, uint64_t batch_rows,
                               ScalingRules rules)
    : rules_(std::move(rules)),
      is_lockstep_(is_lockstep),
      batch_rows_(std::max<uint64_t>(1, batch_rows)),
      most_(most),
      autoscaler_(OptionsFor(least, most), static_cast<int>(rules_.at_first.value_or(least))),
      wanted_(rules_.at_first.value_or(least)) {}

// Waste is what workers could have made in their time beyond what ranks took. How long they had no
// room does not say it: meanwhile the stages before still fill their queues. Nor does it in a
// moment in which ranks take what had been made before. Workers that drain make and send as well,
// but part of what they work on they gave back: what a worker can make is known by the others.
void ServiceScaling::ObserveWorkers(const service::DispatcherStatus& status,
                                    std::map<uint64_t, Seen>* now, reader::FleetObservation* seen) {
  double served_s = 0, busy_s = 0, made = 0;
  for (const service::WorkerStatus& one : status.workers) {
    if (one.is_silent) continue;
    if (!one.is_draining) ++seen->ready;
    const Seen is{0, 0, 0, one.made_rows, one.busy_ns, one.connected_ns};
    (*now)[one.instance] = is;
    const auto before = seen_.find(one.instance);
    if (before == seen_.end() || is.connected_ns < before->second.connected_ns) continue;
    served_s += static_cast<double>(is.connected_ns - before->second.connected_ns) / 1e9;
    if (one.is_draining) continue;
    busy_s += static_cast<double>(is.busy_ns - before->second.busy_ns) / 1e9;
    made += static_cast<double>(is.made_rows - before->second.made_rows);
  }
  seen->starting = std::max(0, static_cast<int>(std::min(wanted_, available_)) - seen->ready);
  seen->serving = seen->seconds > 0 ? served_s / seen->seconds : 0;
  if (made > 0 && busy_s > 0)
    batches_per_busy_s_ = made / static_cast<double>(batch_rows_) / busy_s;
  if (!seen->batches || !batches_per_busy_s_ || served_s <= 0) return;
  seen->waste_ratio = std::clamp(1 - *seen->batches / (*batches_per_busy_s_ * served_s), 0.0, 1.0);
}

reader::FleetObservation ServiceScaling::Observe(const service::DispatcherStatus& status,
                                                 int64_t now_ns) {
  reader::FleetObservation seen;
  seen.time_s = static_cast<double>(now_ns) / 1e9;
  seen.seconds = static_cast<double>(now_ns - observed_ns_) / 1e9;
  std::map<uint64_t, Seen> now;
  double rows = 0, worst = 0, sum = 0;
  int ranks = 0;
  for (const service::RankStatus& one : status.ranks) {
    if (!one.has_reported) continue;
    const Seen is{one.wait_ns, one.compute_ns, one.delivered_rows, 0, 0, 0};
    now[one.instance] = is;
    const auto before = seen_.find(one.instance);
    if (before == seen_.end() || is.rows < before->second.rows) continue;
    rows += static_cast<double>(is.rows - before->second.rows);
    const auto wait = static_cast<double>(is.wait_ns - before->second.wait_ns);
    const double spent = wait + static_cast<double>(is.compute_ns - before->second.compute_ns);
    ++ranks;
    // Without a step it waited all the time.
    const double starved = spent > 0 ? wait / spent : 1;
    sum += starved;
    worst = std::max(worst, starved);
  }
  if (ranks > 0 && status.is_running) {
    seen.batches = rows / static_cast<double>(batch_rows_);
    seen.starved_ratio = is_lockstep_ ? worst : sum / ranks;
  }
  ObserveWorkers(status, &now, &seen);
  seen_ = std::move(now);
  return seen;
}

// The first interval begins with the first rows, so that all of it counts. Before that nothing is
// known of the job: one that began with the dispatcher would be a part of one, and lost.
bool ServiceScaling::BeginObserving(const service::DispatcherStatus& status, int64_t now_ns) {
  const bool is_served = std::any_of(status.ranks.begin(), status.ranks.end(), [](const auto& one) {
    return one.has_reported && one.delivered_rows > 0;
  });
  if (!status.is_running || !is_served) return false;
  Observe(status, now_ns);
  observed_ns_ = now_ns;
  return true;
}

void ServiceScaling::Bound(uint32_t most) {
  autoscaler_.Bound(static_cast<int>(std::min<uint32_t>(most, INT_MAX)));
  most_ = std::min(most_, most);
  wanted_ = std::min(wanted_, most_);
}

std::optional<ScalingDecision> ServiceScaling::Watch(const service::DispatcherStatus& status,
                                                     int64_t now_ns) {
  if (observed_ns_ == 0 && !BeginObserving(status, now_ns)) return std::nullopt;
  if (now_ns - observed_ns_ < rules_.observe_ns) return std::nullopt;
  const reader::FleetObservation seen = Observe(status, now_ns);
  observed_ns_ = now_ns;
  reader::AutoscaleDecision decided;
  if (rules_.policy) {
    decided.wanted = rules_.policy(seen);
  } else {
    decided = autoscaler_.Observe(seen);
  }
  ScalingDecision decision;
  decision.from = wanted_;
  decision.to = std::min(static_cast<uint32_t>(std::max(1, decided.wanted)), most_);
  decision.limit = reader::Name(decided.limit);
  decision.reason = decided.reason;
  if (seen.batches && seen.seconds > 0) decision.batches_per_second = *seen.batches / seen.seconds;
  const bool is_news = !latest_ || latest_->limit != decision.limit || decision.to != decision.from;
  wanted_ = decision.to;
  latest_ = decision;
  return is_news ? latest_ : std::nullopt;
}

uint32_t DrainingWorkers(const service::DispatcherStatus& status) {
  return static_cast<uint32_t>(std::count_if(status.workers.begin(), status.workers.end(),
                                             [](const auto& one) { return one.is_draining; }));
}

std::vector<uint64_t> WorkersToDrain(const service::DispatcherStatus& status,
                                     const ScalingDecision& decision) {
  if (decision.to >= decision.from) return {};
  auto workers = status.workers;
  std::erase_if(workers, [](const auto& one) { return one.is_draining; });
  std::sort(workers.begin(), workers.end(),
            [](const auto& a, const auto& b) { return a.sent_units < b.sent_units; });
  workers.resize(std::min<size_t>(decision.from - decision.to, workers.size()));
  std::vector<uint64_t> peers;
  for (const service::WorkerStatus& worker : workers) peers.push_back(worker.peer);
  return peers;
}

}  // namespace headrace::experiments
