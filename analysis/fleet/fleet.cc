#include "analysis/fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/fleet/fleet_program.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/infinite.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr double kLeastTarget = 1e-3, kMostTarget = 1e12;  // rows per second

// What is shared, as capacity over cost per row.
struct Shared {
  FleetResource resource;
  double capacity;
  double per_row;
  double whole() const { return capacity / per_row; }
};

std::optional<double> PerRow(FleetResource resource, const RowFigures& row, double split_rows) {
  switch (resource) {
    case FleetResource::kStorageBandwidth:
      return row.stored_bytes;
    case FleetResource::kStorageRequests:
      return row.stored_requests;
    case FleetResource::kClientNic:
      return row.sent_bytes;
    case FleetResource::kDispatcher:
      return 1 / split_rows;
    case FleetResource::kNodes:
      break;
  }
  return std::nullopt;
}

std::vector<Shared> SharedOf(const RowCost& cost, const NodesFile& nodes) {
  std::vector<Shared> shared;
  const auto add = [&](FleetResource resource, const std::optional<double>& capacity) {
    const std::optional<double> per_row = PerRow(resource, cost.figures, cost.split_rows);
    if (capacity && per_row && *per_row > 0) shared.push_back({resource, *capacity, *per_row});
  };
  add(FleetResource::kStorageBandwidth, nodes.storage.bytes_per_s);
  add(FleetResource::kStorageRequests, nodes.storage.requests_per_s);
  if (nodes.clients.nic_bytes_per_s) {
    add(FleetResource::kClientNic, *nodes.clients.nic_bytes_per_s * nodes.clients.count);
  }
  add(FleetResource::kDispatcher, nodes.dispatcher.requests_per_s);
  return shared;
}

std::string Amount(FleetResource resource, double per_second) {
  const bool bytes =
      resource == FleetResource::kStorageBandwidth || resource == FleetResource::kClientNic;
  return bytes ? FormatBytesRate(per_second) : FormatRate(per_second, "requests");
}

const char* OptionOf(FleetResource resource) {
  switch (resource) {
    case FleetResource::kStorageBandwidth:
      return "[storage] bandwidth";
    case FleetResource::kStorageRequests:
      return "[storage] iops";
    case FleetResource::kClientNic:
      return "[clients] nic";
    case FleetResource::kDispatcher:
      return "[dispatcher] requests_per_second";
    case FleetResource::kNodes:
      break;
  }
  return "[[node]] max";
}

class Planner {
 public:
  Planner(const RowCost& cost, const NodesFile& nodes)
      : cost_(cost), nodes_(nodes), shared_(SharedOf(cost, nodes)) {
    for (const NodeType& type : nodes.types) {
      plan_.fits.push_back(FitNode(cost, type, nodes));
      if (!std::isfinite(plan_.fits.back().rows_per_s)) {
        throw Error(ExitCode::kInconclusive,
                    fmt::format("nothing that the run recorded limits a node '{}'",
                                Printable(type.name, 60)),
                    "fleet", "record a run that counts CPU time or bytes");
      }
    }
  }

  FleetPlan Make(double target, bool is_demand) {
    plan_.target = target;
    plan_.target_is_demand = is_demand;
    FindShortage();
    const double rate = plan_.shortage ? plan_.shortage->most_rows_per_s : target;
    FleetProblem problem = Problem(rate);
    const auto counts = SolveFleet(problem, &plan_.program, &plan_.lp);
    plan_.counts = counts.value_or(std::vector<int>(nodes_.types.size(), 0));
    if (!counts && !plan_.shortage) {
      plan_.shortage = FleetShortage{FleetResource::kNodes, 0, 1,
                                     "no whole numbers of the available nodes carry it",
                                     Fix(FleetResource::kNodes)};
    }
    ReadCost(rate);
    ReadBounds(rate);
    ReadSure(problem);
    ReadNextNode();
    ReadAlternatives(rate);
    ReadPresent();
    return std::move(plan_);
  }

 private:
  double Planned(const Shared& shared) const { return shared.whole() * (1 - nodes_.headroom); }

  void FindShortage() {
    double least = kInfinite;
    const Shared* tightest = nullptr;
    for (const Shared& shared : shared_) {
      if (Planned(shared) >= least) continue;
      least = Planned(shared);
      tightest = &shared;
    }
    double all_nodes = 0;
    for (size_t t = 0; t < nodes_.types.size(); ++t) {
      const double rate = plan_.fits[t].rows_per_s;
      if (rate > 0) all_nodes += rate * nodes_.types[t].max_count.value_or(kMostNodes);
    }
    const double most = std::min(least, all_nodes);
    if (most >= plan_.target * (1 - 1e-9)) return;
    FleetShortage shortage;
    shortage.most_rows_per_s = most;
    shortage.short_ratio = 1 - most / plan_.target;
    if (least <= all_nodes) {
      shortage.resource = tightest->resource;
      shortage.text = fmt::format(
          "it needs {} of {}, and {} is available{}: {} too little. The most is {}",
          Amount(tightest->resource, plan_.target * tightest->per_row),
          FleetResourceName(tightest->resource), Amount(tightest->resource, tightest->capacity),
          nodes_.headroom > 0
              ? fmt::format(" ({} with {} left free)",
                            Amount(tightest->resource, tightest->capacity * (1 - nodes_.headroom)),
                            FormatPercent(nodes_.headroom))
              : "",
          FormatPercent(shortage.short_ratio), FormatRate(most, "rows"));
    } else {
      shortage.text = fmt::format("all available nodes do {}, {} short", FormatRate(most, "rows"),
                                  FormatPercent(shortage.short_ratio));
    }
    shortage.fix = Fix(shortage.resource);
    plan_.shortage = shortage;
  }

  std::string Fix(FleetResource resource) const {
    const bool all_limited =
        std::all_of(nodes_.types.begin(), nodes_.types.end(),
                    [](const NodeType& type) { return type.max_count.has_value(); });
    const std::string more = resource != FleetResource::kNodes || all_limited
                                 ? fmt::format("raise {}", OptionOf(resource))
                                 : fmt::format(
                                       "name a faster [[node]] (a plan has at most {} of "
                                       "each)",
                                       kMostNodes);
    return fmt::format("lower {}, or {}", plan_.target_is_demand ? "[clients] demand" : "--target",
                       more);
  }

  FleetProblem Problem(double rate) const {
    FleetProblem problem;
    // What was just found to be the most must not fail by its last bit.
    problem.target = plan_.shortage ? rate * (1 - 1e-9) : rate;
    for (size_t t = 0; t < nodes_.types.size(); ++t) {
      const NodeType& type = nodes_.types[t];
      problem.types.push_back({type.name, plan_.fits[t].rows_per_s, type.price_per_hour,
                               plan_.fits[t].watts, type.max_count});
    }
    for (const Shared& shared : shared_)
      problem.limits.push_back({FleetResourceName(shared.resource), Planned(shared)});
    return problem;
  }

  void ReadCost(double rate) {
    double planned = 0, watts = 0;
    std::string without;
    for (size_t t = 0; t < nodes_.types.size(); ++t)
      planned += plan_.counts[t] * plan_.fits[t].rows_per_s;
    for (size_t t = 0; t < nodes_.types.size(); ++t) {
      if (plan_.counts[t] == 0) continue;
      const NodeFit& fit = plan_.fits[t];
      plan_.price_per_hour += plan_.counts[t] * nodes_.types[t].price_per_hour;
      if (!fit.watts_idle) {
        without = nodes_.types[t].name;
        continue;
      }
      // Work goes to whoever asks for it: all nodes are equally busy.
      const double share = planned > 0 ? std::min(1.0, rate / planned) : 0;
      watts +=
          plan_.counts[t] * (*fit.watts_idle + share * fit.rows_per_s * *fit.watts_per_row_per_s);
    }
    const double hours = rate > 0 ? 1e6 / rate / 3600 : 0;  // for a million rows
    plan_.price_per_million_rows = plan_.price_per_hour * hours;
    if (!without.empty()) {
      plan_.no_watts = fmt::format("'{}' has no watts_idle and watts_peak", without);
      return;
    }
    plan_.watts = watts;
    plan_.watt_hours_per_million_rows = watts * hours;
  }

  // Rows per second of all nodes, with all of them; by draw.
  std::vector<double> NodesDrawn(const std::vector<int>& counts) const {
    std::vector<double> sum(plan_.fits.front().full_draws.size(), 0);
    for (size_t t = 0; t < counts.size(); ++t) {
      for (size_t d = 0; d < sum.size() && counts[t] > 0; ++d)
        sum[d] += counts[t] * plan_.fits[t].full_draws[d];
    }
    return sum;
  }

  double NodesWhole(const std::vector<int>& counts) const {
    double sum = 0;
    for (size_t t = 0; t < counts.size(); ++t) {
      if (counts[t] > 0) sum += counts[t] * plan_.fits[t].full_rows_per_s;
    }
    return sum;
  }

  std::vector<double> SharedDrawn(const Shared& shared) const {
    const size_t draws = plan_.fits.front().full_draws.size();
    std::vector<double> drawn(draws, shared.whole());
    for (size_t d = 0; d < draws && d < cost_.draws.size(); ++d) {
      const auto per_row = PerRow(shared.resource, cost_.draws[d], cost_.split_rows);
      if (per_row && *per_row > 0) drawn[d] = shared.capacity / *per_row;
    }
    return drawn;
  }

  void ReadBounds(double rate) {
    std::vector<std::vector<double>> drawn;
    const double planned_nodes = [&] {
      double sum = 0;
      for (size_t t = 0; t < plan_.counts.size(); ++t)
        sum += plan_.counts[t] * plan_.fits[t].rows_per_s;
      return sum;
    }();
    FleetBound nodes;
    nodes.rows_per_s = NodesWhole(plan_.counts);
    nodes.planned = planned_nodes;
    plan_.bounds.push_back(nodes);
    drawn.push_back(NodesDrawn(plan_.counts));
    for (const Shared& shared : shared_) {
      FleetBound bound;
      bound.resource = shared.resource;
      bound.rows_per_s = shared.whole();
      bound.planned = Planned(shared);
      bound.per_row = shared.per_row;
      bound.capacity = shared.capacity;
      plan_.bounds.push_back(bound);
      drawn.push_back(SharedDrawn(shared));
    }
    const size_t draws = drawn.front().size();
    std::vector<size_t> wins(drawn.size(), 0);
    for (size_t d = 0; d < draws; ++d) {
      size_t least = 0;
      for (size_t b = 1; b < drawn.size(); ++b) {
        if (drawn[b][d] < drawn[least][d]) least = b;
      }
      ++wins[least];
    }
    plan_.reached_probability = Reached(drawn);
    for (size_t b = 0; b < drawn.size(); ++b) {
      FleetBound& bound = plan_.bounds[b];
      bound.interval = IntervalAround(bound.rows_per_s, drawn[b], 0.9);
      bound.utilisation = bound.rows_per_s > 0 ? rate / bound.rows_per_s : 0;
      bound.probability = static_cast<double>(wins[b]) / static_cast<double>(draws);
    }
    std::stable_sort(
        plan_.bounds.begin(), plan_.bounds.end(),
        [](const FleetBound& a, const FleetBound& b) { return a.rows_per_s < b.rows_per_s; });
    for (const FleetResource resource :
         {FleetResource::kStorageBandwidth, FleetResource::kStorageRequests,
          FleetResource::kClientNic, FleetResource::kDispatcher}) {
      const bool limits = std::any_of(shared_.begin(), shared_.end(), [&](const Shared& shared) {
        return shared.resource == resource;
      });
      if (!limits) plan_.unlimited.push_back(resource);
    }
  }

  // Share of the draws in which every row reaches the target.
  double Reached(const std::vector<std::vector<double>>& drawn) const {
    const size_t draws = drawn.front().size();
    size_t reached = 0;
    for (size_t d = 0; d < draws; ++d) {
      reached += std::all_of(drawn.begin(), drawn.end(),
                             [&](const auto& row) { return row[d] >= plan_.target; });
    }
    return static_cast<double>(reached) / static_cast<double>(draws);
  }

  // The planned fleet if it is sure; else one with each type as slow as it is at worst in nine of
  // ten draws, or in more of them where what is shared takes some of the other tenth.
  void ReadSure(const FleetProblem& problem) {
    if (plan_.shortage) return;
    if (plan_.reached_probability >= kSureOfFleet) return SetSure(plan_.counts);
    std::vector<std::vector<double>> drawn;
    for (const Shared& shared : shared_) {
      drawn.push_back(SharedDrawn(shared));
      const double alone = Reached({drawn.back()});
      if (alone < kSureOfFleet) {
        plan_.no_sure = fmt::format("{} by itself carries it in {} of the draws only",
                                    FleetResourceName(shared.resource), FormatPercent(alone));
        return;
      }
    }
    drawn.emplace_back();
    for (const double quantile : {1 - kSureOfFleet, 0.05, 0.02, 0.0}) {
      FleetProblem slow = problem;
      for (size_t t = 0; t < slow.types.size(); ++t) {
        slow.types[t].rows_per_s =
            std::min(slow.types[t].rows_per_s, Quantile(plan_.fits[t].full_draws, quantile));
      }
      const auto counts = SolveFleet(slow);
      if (!counts) break;
      drawn.back() = NodesDrawn(*counts);
      if (Reached(drawn) >= kSureOfFleet) return SetSure(*counts);
    }
    plan_.no_sure = "no number of available nodes carries it in 9 of 10 draws";
  }

  void SetSure(const std::vector<int>& counts) {
    plan_.sure_counts = counts;
    for (size_t t = 0; t < counts.size(); ++t)
      plan_.sure_price_per_hour += counts[t] * nodes_.types[t].price_per_hour;
  }

  void ReadNextNode() {
    double least = kInfinite;
    for (const Shared& shared : shared_) least = std::min(least, shared.whole());
    const size_t type = plan_.main_type();
    const double each = plan_.fits[type].full_rows_per_s;
    const double now = NodesWhole(plan_.counts);
    plan_.next_node_gain = std::max(0.0, std::min(now + each, least) - std::min(now, least));
    if (std::isfinite(least) && each > 0) {
      const double others = now - plan_.counts[type] * each;
      plan_.useful_nodes =
          static_cast<int>(std::min(1e9, std::max(0.0, std::ceil((least - others) / each - 1e-9))));
    }
  }

  void ReadAlternatives(double rate) {
    for (size_t t = 0; t < nodes_.types.size(); ++t) {
      const NodeFit& fit = plan_.fits[t];
      FleetAlternative alternative{t, std::nullopt, 0, std::nullopt};
      // Not -0 of a rate of nothing.
      const double count =
          fit.rows_per_s > 0 ? std::max(0.0, std::ceil(rate / fit.rows_per_s - 1e-7)) : kInfinite;
      if (count <= nodes_.types[t].max_count.value_or(kMostNodes)) {
        alternative.count = static_cast<int>(count);
        alternative.price_per_hour = count * nodes_.types[t].price_per_hour;
        if (fit.watts_idle)
          alternative.watts = count * *fit.watts_idle + rate * *fit.watts_per_row_per_s;
      }
      plan_.alternatives.push_back(alternative);
    }
  }

  void ReadPresent() {
    std::vector<int> have;
    for (const NodeType& type : nodes_.types) have.push_back(type.have);
    if (std::accumulate(have.begin(), have.end(), int64_t{0}) == 0) return;
    FleetPlan::Present present;
    present.rows_per_s = NodesWhole(have);
    for (const Shared& shared : shared_)
      present.rows_per_s = std::min(present.rows_per_s, shared.whole());
    present.starved_ratio = std::max(0.0, 1 - present.rows_per_s / plan_.target);
    present.surplus_ratio = std::max(0.0, present.rows_per_s / plan_.target - 1);
    for (size_t t = 0; t < have.size(); ++t)
      present.price_per_hour += have[t] * nodes_.types[t].price_per_hour;
    plan_.present = present;
  }

  const RowCost& cost_;
  const NodesFile& nodes_;
  std::vector<Shared> shared_;
  FleetPlan plan_;
};

}  // namespace

const char* FleetResourceName(FleetResource resource) {
  switch (resource) {
    case FleetResource::kNodes:
      return "the nodes";
    case FleetResource::kStorageBandwidth:
      return "storage bandwidth";
    case FleetResource::kStorageRequests:
      return "storage requests";
    case FleetResource::kClientNic:
      return "the clients' NICs";
    case FleetResource::kDispatcher:
      return "the dispatcher";
  }
  return "";
}

const char* FleetResourceKey(FleetResource resource) {
  switch (resource) {
    case FleetResource::kNodes:
      return "nodes";
    case FleetResource::kStorageBandwidth:
      return "storage_bandwidth";
    case FleetResource::kStorageRequests:
      return "storage_requests";
    case FleetResource::kClientNic:
      return "client_nic";
    case FleetResource::kDispatcher:
      return "dispatcher";
  }
  return "";
}

int FleetPlan::nodes() const { return std::accumulate(counts.begin(), counts.end(), 0); }

size_t FleetPlan::main_type() const {
  return static_cast<size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

FleetPlan PlanFleet(const RowCost& cost, const NodesFile& nodes, std::optional<double> target) {
  std::optional<double> demand;
  if (nodes.clients.demand_rows_per_s)
    demand = *nodes.clients.demand_rows_per_s * nodes.clients.count;
  if (!target && !demand) {
    throw Error(ExitCode::kUsage, "no rate to plan for", "--target",
                "give --target 282000rows/s, or [clients] demand = \"282000rows/s\" in the nodes "
                "file");
  }
  if (target && !(*target >= kLeastTarget && *target <= kMostTarget)) {
    throw Error(ExitCode::kUsage, fmt::format("{:.3g} rows/s is not a rate to plan for", *target),
                "--target",
                fmt::format("give one from {:g} to {:g} rows/s", kLeastTarget, kMostTarget));
  }
  FleetPlan plan = Planner(cost, nodes).Make(target ? *target : *demand, !target);
  plan.demand = demand;
  return plan;
}

}  // namespace headrace::analysis
