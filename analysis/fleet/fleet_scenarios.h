// FleetSimulation: the planned fleet run in virtual time (analysis/fleet/simulate_fleet), as
// planned, at its limit, and while parts of it are lost; and how many spare nodes keep the target
// then.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/fleet/fleet.h"
#include "analysis/fleet/simulate_fleet.h"

namespace headrace::analysis {

struct FleetScenario {
  std::string name;  // "1 x c-v1 is lost"
  std::string key;   // "one_node", "five_percent", "rack", "type", "dispatcher_pause", ...
  Disturbance disturbance;
  double before_rows_per_s = 0, after_rows_per_s = 0;   // what clients take, before and at the end
  double after_stall_ratio = 0, worst_stall_ratio = 0;  // at the end; of the worst slice
  double lost_rows = 0;                                 // rows whose work is done again
  bool kept = false;                                    // the target is reached again at the end
  // Time until the target is reached again; empty: not within the simulated time.
  std::optional<double> back_s;
  // Nodes of `spare_type` to add so that the target is reached despite the loss; empty: up to
  // `spares_tried` more do not suffice, or the search was cut short, or the scenario takes no nodes
  // away.
  std::optional<int> spares;
  int spares_tried = 0;
  bool spares_cut = false;
  size_t spare_type = 0;
  std::string unavailable;  // why it was not simulated to its end: then only the above is known
};

struct FleetSimulation {
  std::string unavailable;  // why the planned fleet was not simulated: then nothing else is known
  double rate = 0;          // rows per second that the clients take if they never wait
  FleetOutcome planned;     // with clients that take the target
  double planned_rows_per_s = 0;
  std::optional<double> most_rows_per_s;  // with clients that take all there is
  std::string no_most;                    // why it is not known
  // Nodes of the main type that the planned fleet lacks to reach the target; empty: it lacks none,
  // or up to `missing_tried` more do not suffice, or the search was cut short.
  std::optional<int> missing;
  int missing_tried = 0;
  bool missing_cut = false;
  std::vector<FleetScenario> scenarios;
  double duration_s = 0, at_s = 0;  // of each run; when the loss happens
  int64_t events = 0;
  uint64_t seed = 0;
  std::vector<std::string> assumptions;
};

// The fleet of `plan`, with `counts` nodes of each type, as the simulator takes it.
SimulatedFleet ToSimulate(const RowCost& cost, const NodesFile& nodes, const FleetPlan& plan,
                          const std::vector<int>& counts);

// Takes some seconds for a thousand workers; all its runs together make about `max_events`
// events at most, and what that ends is said to be unavailable. Empty when the plan has no nodes.
std::optional<FleetSimulation> SimulatePlan(const RowCost& cost, const NodesFile& nodes,
                                            const FleetPlan& plan, uint64_t seed = 1,
                                            int64_t max_events = 100'000'000);

}  // namespace headrace::analysis
