// Fleet: how many workers of which type feed the clients at a target rate, from one recorded run;
// what binds first and what binds then, what it costs and draws, how sure that is, and what one
// more node is worth.
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

// What something that the whole fleet needs allows.
struct FleetBound {
  FleetResource resource = FleetResource::kNodes;
  double rows_per_s = 0;   // with all of it
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

// Why no fleet reaches the target, and how far it goes.
struct FleetShortage {
  FleetResource resource = FleetResource::kNodes;
  double most_rows_per_s = 0;
  double short_ratio = 0;  // of the target
  std::string text, fix;   // one sentence each
};

struct FleetPlan {
  double target = 0;             // rows per second
  std::optional<double> demand;  // of all clients
  bool target_is_demand = false;
  std::optional<FleetShortage> shortage;  // then the fleet is the best for most_rows_per_s

  std::vector<NodeFit> fits;  // parallel to NodesFile::types
  std::vector<int> counts;    // of each type
  // That reach the target in nine of ten draws of all that limits; empty: `no_sure` says why.
  std::vector<int> sure_counts;
  std::string no_sure;
  double sure_price_per_hour = 0;
  double reached_probability = 0;  // that the planned fleet reaches the target
  double price_per_hour = 0, price_per_million_rows = 0;
  std::optional<double> watts, watt_hours_per_million_rows;
  std::string no_watts;

  std::vector<FleetBound> bounds;  // the least first; what does not limit is left out
  std::vector<FleetResource> unlimited;
  // One more node of the type with most nodes: rows per second gained, 0 where something shared
  // binds first; and how many of them are worth something at all.
  double next_node_gain = 0;
  std::optional<int> useful_nodes;
  std::vector<FleetAlternative> alternatives;  // parallel to types

  // Of the nodes that run now ("have"), when there are any.
  struct Present {
    double rows_per_s = 0;     // of what they share, too
    double starved_ratio = 0;  // of the target that it misses
    double surplus_ratio = 0;  // above the target
    double price_per_hour = 0;
  };
  std::optional<Present> present;

  std::string program, lp;
  int nodes() const;
  // The type of which there are most; 0 when there are none.
  size_t main_type() const;
};

// `target` in rows per second; empty: what the clients demand. Throws Error kUsage when neither is
// given or the target is beyond 1e-3 to 1e12, kInconclusive when a row costs nothing that was
// recorded.
FleetPlan PlanFleet(const RowCost& cost, const NodesFile& nodes, std::optional<double> target);

}  // namespace headrace::analysis
