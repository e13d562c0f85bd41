// FleetSimulation: the planned fleet run in virtual time (analysis/simulate_fleet), as planned, at
// its limit, and while parts of it are lost; and how many spare nodes keep the target then.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/fleet.h"
#include "analysis/simulate_fleet.h"

namespace headrace::analysis {

struct FleetScenario {
  std::string name;  // "1 x c-v1 is lost"
  std::string key;   // "one_node", "five_percent", "rack", "type", "dispatcher_pause", ...
  Disturbance disturbance;
  double before_rows_per_s = 0, after_rows_per_s = 0;   // what clients take, before and at the end
  double after_stall_ratio = 0, worst_stall_ratio = 0;  // at the end; of the worst slice
  double lost_rows = 0;                                 // whose work is done again
  bool kept = false;                                    // the target is carried again at the end
  std::optional<double> back_s;  // after so long; empty: not while it was simulated
  // Nodes of `spare_type` to add so that the target is carried all the same; empty: no number
  // helps, or the scenario takes no nodes away.
  std::optional<int> spares;
  size_t spare_type = 0;
};

struct FleetSimulation {
  double rate = 0;       // rows per second that the clients take if they never wait
  FleetOutcome planned;  // with clients that take the target
  double planned_rows_per_s = 0;
  double most_rows_per_s = 0;  // with clients that take all there is
  std::optional<int> missing;  // nodes of the main type without which it does not carry the target
  std::vector<FleetScenario> scenarios;
  double duration_s = 0, at_s = 0;  // of each run; when the loss happens
  int64_t events = 0;
  uint64_t seed = 0;
  std::vector<std::string> assumptions;
};

// How the fleet of `plan` is simulated: counts of nodes as given.
SimulatedFleet ToSimulate(const RowCost& cost, const NodesFile& nodes, const FleetPlan& plan,
                          const std::vector<int>& counts);

// Takes some seconds for a thousand workers. Empty when the plan has no nodes.
std::optional<FleetSimulation> SimulatePlan(const RowCost& cost, const NodesFile& nodes,
                                            const FleetPlan& plan, uint64_t seed = 1);

}  // namespace headrace::analysis
