#include "analysis/fleet/fleet_scenarios.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr double kBatches = 300'000;  // about as many batches in one simulation
constexpr double kSearchBatches = 60'000;
constexpr double kLongest = 20, kShortest = 0.05;  // seconds of one run
constexpr double kSteps = 200;                     // least steps of each client in one simulation
// Share of a simulation after which the loss happens.
constexpr double kLossAt = 0.4;
constexpr int64_t kMostEvents = 20'000'000;  // the most events of one simulation
constexpr int kMostSimulated = 100'000;      // nodes: some KB each
constexpr int kOutputPlaces = 4;             // finished batches that wait in a worker

int Ceil(double value) { return static_cast<int>(std::min(1e6, std::ceil(value - 1e-9))); }

SimulatedNodes NodesOf(const RowCost& cost, const NodeType& type, const NodeFit& fit, int count) {
  SimulatedNodes nodes;
  nodes.name = type.name;
  nodes.count = count;
  nodes.cores = std::max(1, static_cast<int>(std::lround(type.cores)));
  // A fraction of a core is made up for by slower ones.
  double cpu_s = fit.cpu_s_per_row * nodes.cores / type.cores;
  double threads = nodes.cores;
  if (fit.cpu_s_per_row > 0)
    threads = nodes.cores * (1 + cost.figures.blocked_s / fit.cpu_s_per_row);
  for (const NodeBound& bound : fit.bounds) {
    // Cores that wait for memory are busy for longer; memory that is short holds fewer threads.
    if (bound.resource == NodeResource::kMemoryBandwidth)
      cpu_s = std::max(cpu_s, nodes.cores / bound.rows_per_s);
    if (bound.resource == NodeResource::kMemory) {
      threads = std::min(threads, bound.rows_per_s * (fit.cpu_s_per_row + cost.figures.blocked_s));
    }
  }
  nodes.threads = std::max(1, Ceil(threads)) + kOutputPlaces;
  nodes.batch_cpu_s = cpu_s * cost.batch_rows;
  nodes.batch_blocked_s = cost.figures.blocked_s * cost.batch_rows;
  nodes.batch_cv = cost.batch_cv;
  nodes.spread = kNodesDiffer;
  nodes.nic_bytes_per_s = type.nic_bytes_per_s.value_or(0);
  nodes.disk_bytes_per_s = type.disk_bytes_per_s.value_or(0);
  return nodes;
}

class Simulator {
 public:
  Simulator(const RowCost& cost, const NodesFile& nodes, const FleetPlan& plan, uint64_t seed,
            int64_t max_events)
      : cost_(cost), nodes_(nodes), plan_(plan), main_(plan.main_type()), left_(max_events) {
    result_.seed = seed;
    result_.rate = plan.shortage ? plan.shortage->most_rows_per_s : plan.target;
    result_.duration_s = Duration(kBatches, result_.rate);
    result_.at_s = kLossAt * result_.duration_s;
  }

  FleetSimulation Make() {
    if (plan_.nodes() > kMostSimulated) {
      result_.unavailable =
          fmt::format("it has {} nodes; at most {} are simulated", plan_.nodes(), kMostSimulated);
      return std::move(result_);
    }
    const SimulatedFleet fleet = Fleet(plan_.counts);
    result_.planned = Simulate(fleet, result_.duration_s);
    if (result_.planned.cut_short) {
      result_.unavailable = kTooManyEvents;
      return std::move(result_);
    }
    result_.planned_rows_per_s = result_.planned.batches_per_s * cost_.batch_rows;
    SimulatedFleet greedy = fleet;
    greedy.client_step_s = 0;
    // So long as the fleet, not the clients, needs for so many batches.
    const double own_rate = std::max(result_.rate, plan_.bounds.front().rows_per_s);
    const FleetOutcome most = Simulate(greedy, OwnDuration(kSearchBatches, own_rate));
    if (most.cut_short) {
      result_.no_most = kTooManyEvents;
    } else {
      result_.most_rows_per_s = most.batches_per_s * cost_.batch_rows;
    }
    if (result_.planned_rows_per_s < kTargetCarried * result_.rate) {
      const Search search = Missing(plan_.counts);
      result_.missing = search.count;
      result_.missing_tried = search.tried;
      result_.missing_cut = search.cut;
    }
    AddLosses();
    AddOthers(fleet);
    SayAssumptions(fleet);
    return std::move(result_);
  }

 private:
  // Nodes that were searched for.
  struct Search {
    std::optional<int> count;
    int tried = 0;     // with none of up to so many
    bool cut = false;  // a run of it took too many events
  };
  static constexpr const char* kTooManyEvents = "its simulation took too many events";

  // Long enough for so many batches at `rate`, and for each core to do several.
  double OwnDuration(double batches, double rate) const {
    const double each = cost_.batch_rows / rate;
    double work = 0;
    for (size_t t = 0; t < plan_.fits.size(); ++t) {
      if (plan_.counts[t] == 0) continue;
      const SimulatedNodes nodes = NodesOf(cost_, nodes_.types[t], plan_.fits[t], 1);
      work = std::max(work, nodes.batch_cpu_s + nodes.batch_blocked_s);
    }
    const double latency = nodes_.storage.latency_s + nodes_.dispatcher.latency_s;
    return std::clamp(std::max(batches * each, 20 * (work + latency)), kShortest,
                      std::max(kLongest, 40 * (work + latency)));
  }

  // Clients that hardly ask for anything are watched for many of their steps all the same.
  double Duration(double batches, double rate) const {
    return std::max(OwnDuration(batches, rate),
                    kSteps * cost_.batch_rows / rate * nodes_.clients.count);
  }

  SimulatedFleet Fleet(const std::vector<int>& counts) const {
    SimulatedFleet fleet = ToSimulate(cost_, nodes_, plan_, counts);
    fleet.detect_s = std::min(fleet.detect_s, result_.duration_s / 8);
    return fleet;
  }

  FleetOutcome Simulate(const SimulatedFleet& fleet, double duration,
                        const std::vector<Disturbance>& disturbances = {}) {
    FleetOutcome outcome = SimulateFleet(fleet, duration, result_.seed, disturbances,
                                         std::clamp<int64_t>(left_, 0, kMostEvents));
    left_ -= outcome.pushed_events;
    result_.events += outcome.events;
    return outcome;
  }

  // Least number of main nodes to add to `counts` so that the target is carried.
  Search Missing(const std::vector<int>& counts) {
    bool cut = false;
    const auto carries = [&](int more) {
      std::vector<int> larger = counts;
      larger[main_] += more;
      const FleetOutcome outcome = Simulate(Fleet(larger), Duration(kSearchBatches, result_.rate));
      cut = cut || outcome.cut_short;
      return !cut && outcome.batches_per_s * cost_.batch_rows >= kTargetCarried * result_.rate;
    };
    if (carries(0)) return {0, 0, false};
    int low = 0, high = 1;
    const int most = std::max(16, 2 * plan_.nodes());
    while (!cut && !carries(high)) {
      if (high >= most) return {std::nullopt, most, cut};
      low = high;
      high = std::min(most, high * 2);
    }
    while (!cut && high - low > 1) {
      const int middle = (low + high) / 2;
      (carries(middle) ? high : low) = middle;
    }
    if (cut) return {std::nullopt, low, true};
    return {high, low, false};
  }

  void Add(const std::string& key, const std::string& name, Disturbance disturbance) {
    FleetScenario scenario;
    scenario.key = key;
    scenario.name = name;
    scenario.spare_type = main_;
    disturbance.at_s = result_.at_s;
    scenario.disturbance = disturbance;
    const SimulatedFleet fleet = Fleet(plan_.counts);
    const FleetOutcome outcome = Simulate(fleet, result_.duration_s, {disturbance});
    Measure(outcome, &scenario);
    if (outcome.cut_short) scenario.unavailable = kTooManyEvents;
    if (!disturbance.lost.empty() && scenario.unavailable.empty()) {
      std::vector<int> left = plan_.counts;
      for (size_t t = 0; t < left.size(); ++t) left[t] -= disturbance.lost[t];
      // What was ready in the workers may hide the loss for as long as is simulated: what is left
      // is run by itself.
      const FleetOutcome steady = Simulate(Fleet(left), result_.duration_s);
      if (steady.cut_short) scenario.unavailable = kTooManyEvents;
      scenario.after_rows_per_s = steady.batches_per_s * cost_.batch_rows;
      scenario.after_stall_ratio = steady.stall_ratio;
      scenario.worst_stall_ratio = std::max(scenario.worst_stall_ratio, steady.stall_ratio);
      scenario.kept = scenario.after_rows_per_s >= kTargetCarried * result_.rate;
      if (!scenario.kept) scenario.back_s.reset();
      if (scenario.unavailable.empty()) {
        const Search search = Missing(left);
        scenario.spares = search.count;
        scenario.spares_tried = search.tried;
        scenario.spares_cut = search.cut;
      }
    }
    result_.scenarios.push_back(std::move(scenario));
  }

  void Measure(const FleetOutcome& outcome, FleetScenario* scenario) const {
    double before = 0, after = 0, stall = 0;
    int befores = 0, afters = 0;
    const double end = result_.duration_s;
    for (const FleetSlice& slice : outcome.slices) {
      const double width = end / static_cast<double>(outcome.slices.size());
      const double rows = slice.batches_per_s * cost_.batch_rows;
      if (slice.start_s >= 0.2 * end - 1e-9 && slice.start_s + width <= result_.at_s + 1e-9) {
        before += rows;
        ++befores;
      }
      if (slice.start_s + width > result_.at_s)
        scenario->worst_stall_ratio = std::max(scenario->worst_stall_ratio, slice.stall_ratio);
      if (slice.start_s >= 0.7 * end - 1e-9) {
        after += rows;
        stall += slice.stall_ratio;
        ++afters;
      }
    }
    if (befores > 0) scenario->before_rows_per_s = before / befores;
    if (afters > 0) {
      scenario->after_rows_per_s = after / afters;
      scenario->after_stall_ratio = stall / afters;
    }
    scenario->lost_rows = static_cast<double>(outcome.lost_batches) * cost_.batch_rows;
    scenario->kept = scenario->after_rows_per_s >= kTargetCarried * result_.rate;
    if (!scenario->kept) return;
    // The end of the last slice that was short by more than its batches' grain.
    double back = 0;
    for (const FleetSlice& slice : outcome.slices) {
      const double width = end / static_cast<double>(outcome.slices.size());
      if (slice.start_s + width <= result_.at_s || slice.start_s >= 0.7 * end) continue;
      if (slice.stall_ratio > std::max(kStallsAgain, 2 * outcome.stall_ratio))
        back = std::max(back, slice.start_s + width - result_.at_s);
    }
    scenario->back_s = back;
  }

  void AddLosses() {
    const std::vector<int>& counts = plan_.counts;
    const int all = plan_.nodes();
    const auto one_type = [&](size_t type, int lost) {
      Disturbance disturbance;
      disturbance.lost.assign(counts.size(), 0);
      disturbance.lost[type] = lost;
      return disturbance;
    };
    const auto words = [&](size_t type, int lost) {
      return fmt::format("{} x {} lost", lost, Printable(nodes_.types[type].name));
    };
    Add("one_node", words(main_, 1), one_type(main_, 1));
    const int twentieth = std::max(1, Ceil(0.05 * all));
    if (twentieth > 1) {
      Disturbance disturbance = one_type(main_, 0);
      int left = twentieth;
      for (size_t t = 0; t < counts.size(); ++t) {
        const int share = std::min({left, counts[t], Ceil(0.05 * counts[t])});
        disturbance.lost[t] = share;
        left -= share;
      }
      Add("five_percent", fmt::format("5 % of the nodes ({}) lost", twentieth - left), disturbance);
    }
    for (size_t t = 0; t < counts.size(); ++t) {
      const std::optional<int> rack = nodes_.types[t].rack;
      if (!rack || *rack <= 1 || counts[t] == 0) continue;
      const int lost = std::min(*rack, counts[t]);
      if (lost < 2) continue;  // is one node
      Add("rack", fmt::format("a rack ({} x {}) lost", lost, Printable(nodes_.types[t].name)),
          one_type(t, lost));
    }
    for (size_t t = 0; t < counts.size(); ++t) {
      if (counts[t] < 2 || counts[t] == all) continue;
      Add("type", fmt::format("every {} lost", Printable(nodes_.types[t].name)),
          one_type(t, counts[t]));
    }
  }

  void AddOthers(const SimulatedFleet& fleet) {
    Disturbance pause;
    pause.dispatcher_pause_s = result_.duration_s / 20;
    Add("dispatcher_pause",
        fmt::format("the dispatcher stops for {}", FormatDuration(pause.dispatcher_pause_s * 1e9)),
        pause);
    const bool bytes = fleet.storage_bytes_per_s > 0 && fleet.stored_bytes > 0;
    const bool requests = fleet.storage_requests_per_s > 0 && fleet.stored_requests > 0;
    if (fleet.local_storage || (!bytes && !requests)) return;
    Disturbance half;
    half.storage_factor = 0.5;
    Add("half_storage", "the storage at half its rate", half);
  }

  void SayAssumptions(const SimulatedFleet& fleet) {
    std::vector<std::string>& say = result_.assumptions;
    say.push_back(fmt::format(
        "costs of batches vary by {} (lognormal): from the spread between windows, as the store "
        "has no times of single batches",
        FormatPercent(cost_.batch_cv)));
    say.push_back(fmt::format("nodes of one type differ by {}", FormatPercent(kNodesDiffer)));
    say.push_back(
        fmt::format("clients know after {} that a worker is gone; lost work is done again",
                    FormatDuration(fleet.detect_s * 1e9)));
    if (fleet.storage_latency_s > 0)
      say.push_back(fmt::format("the storage's latency varies by {} (lognormal)",
                                FormatPercent(fleet.storage_latency_cv)));
  }

  const RowCost& cost_;
  const NodesFile& nodes_;
  const FleetPlan& plan_;
  size_t main_;
  int64_t left_;  // events that are still to be had
  FleetSimulation result_;
};

}  // namespace

SimulatedFleet ToSimulate(const RowCost& cost, const NodesFile& nodes, const FleetPlan& plan,
                          const std::vector<int>& counts) {
  SimulatedFleet fleet;
  for (size_t t = 0; t < counts.size(); ++t)
    fleet.nodes.push_back(NodesOf(cost, nodes.types[t], plan.fits[t], counts[t]));
  const double splits = cost.split_rows / cost.batch_rows;
  fleet.unit_batches = std::max(1, static_cast<int>(std::lround(std::min(splits, 1e6))));
  fleet.unit_requests = fleet.unit_batches / splits;
  fleet.stored_bytes = cost.figures.stored_bytes.value_or(0) * cost.batch_rows;
  fleet.stored_requests = cost.figures.stored_requests.value_or(0) * cost.batch_rows;
  fleet.sent_bytes = cost.figures.sent_bytes.value_or(0) * cost.batch_rows;
  fleet.local_storage = nodes.storage.local;
  fleet.storage_bytes_per_s = nodes.storage.bytes_per_s.value_or(0);
  fleet.storage_requests_per_s = nodes.storage.requests_per_s.value_or(0);
  fleet.storage_latency_s = cost.figures.stored_bytes ? nodes.storage.latency_s : 0;
  fleet.dispatcher_requests_per_s = nodes.dispatcher.requests_per_s.value_or(0);
  fleet.dispatcher_latency_s = nodes.dispatcher.latency_s;
  fleet.in_flight = nodes.dispatcher.in_flight;
  fleet.clients = nodes.clients.count;
  fleet.client_nic_bytes_per_s = nodes.clients.nic_bytes_per_s.value_or(0);
  fleet.client_buffer = nodes.clients.buffer_batches;
  const double rate = plan.shortage ? plan.shortage->most_rows_per_s : plan.target;
  fleet.client_step_s = cost.batch_rows * fleet.clients / rate;
  return fleet;
}

std::optional<FleetSimulation> SimulatePlan(const RowCost& cost, const NodesFile& nodes,
                                            const FleetPlan& plan, uint64_t seed,
                                            int64_t max_events) {
  if (plan.nodes() == 0) return std::nullopt;
  return Simulator(cost, nodes, plan, seed, max_events).Make();
}

}  // namespace headrace::analysis
