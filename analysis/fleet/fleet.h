// Fleet: how many workers of which type feed the clients at a target rate, computed from one
// recorded run; also which limit is reached first and which next, the price and power, how sure the
// plan is, and what one more node gains.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/fleet/node_fit.h"
#include "analysis/fleet/nodes.h"
#include "analysis/model/row_cost.h"

namespace headrace::analysis {

enum class FleetResource : uint8_t {
  kNodes,
  kStorageBandwidth,
  kStorageRequests,
  kClientNic,
  kDispatcher
};
const char* FleetResourceName(FleetResource resource);  // "the nodes", "storage bandwidth", ...
const char* FleetResourceKey(FleetResource resource);   // "nodes", "storage_bandwidth", ...

// The rate that one resource of the whole fleet allows.
struct FleetBound {
  FleetResource resource = FleetResource::kNodes;
  double rows_per_s = 0;   // with all of the resource
  double planned = 0;      // less the headroom
  Interval interval;       // 90 %, of rows_per_s
  double utilisation = 0;  // at the target
  double probability = 0;  // of being the one that binds first
  double per_row = 0;      // bytes or requests; nodes: 0
  double capacity = 0;     // bytes or requests per second; nodes: 0
};

// The target reached with one type alone.
struct FleetAlternative {
  size_t type = 0;
  std::optional<int> count;  // empty: not with any number that may be had
  double price_per_hour = 0;
  std::optional<double> watts;
};

// Why no fleet reaches the target, and the rate that can be reached.
struct FleetShortage {
  FleetResource resource = FleetResource::kNodes;
  double most_rows_per_s = 0;
  double short_ratio = 0;  // missing share of the target
  std::string text, fix;   // one sentence each
};

struct FleetPlan {
  double target = 0;             // rows per second
  std::optional<double> demand;  // of all clients
  bool target_is_demand = false;
  std::optional<FleetShortage> shortage;  // then the fleet is the best for most_rows_per_s

  std::vector<NodeFit> fits;  // parallel to NodesFile::types
  std::vector<int> counts;    // of each type
  // Nodes of each type that reach the target in nine of ten random draws of all limits; empty:
  // `no_sure` says why.
  std::vector<int> sure_counts;
  std::string no_sure;
  double sure_price_per_hour = 0;
  double reached_probability = 0;  // that the planned fleet reaches the target
  double price_per_hour = 0, price_per_million_rows = 0;
  std::optional<double> watts, watt_hours_per_million_rows;
  std::string no_watts;

  std::vector<FleetBound> bounds;  // smallest first; resources without a limit are left out
  std::vector<FleetResource> unlimited;
  // One more node of the most frequent type gains `next_node_gain` rows per second, 0 where a
  // shared resource is the limit. Beyond `useful_nodes` nodes of it, none gains anything.
  double next_node_gain = 0;
  std::optional<int> useful_nodes;
  std::vector<FleetAlternative> alternatives;  // parallel to types

  // The nodes that run now ("have" in the nodes file), if there are any.
  struct Present {
    double rows_per_s = 0;     // that they and their shared resources allow
    double starved_ratio = 0;  // share of the target that is missing
    double surplus_ratio = 0;  // rate beyond the target, as a share of it
    double price_per_hour = 0;
  };
  std::optional<Present> present;

  std::string program, lp;
  int nodes() const;
  // Index of the type with most nodes; 0 when there are none.
  size_t main_type() const;
};

// `target` in rows per second; empty: what the clients demand. Throws Error kUsage when neither is
// given or the target is beyond 1e-3 to 1e12, kInconclusive when a row costs nothing that was
// recorded.
FleetPlan PlanFleet(const RowCost& cost, const NodesFile& nodes, std::optional<double> target);

}  // namespace headrace::analysis
