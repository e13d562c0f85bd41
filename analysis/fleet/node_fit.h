// NodeFit: how many rows per second one node of a type does, by what a row costs; which of its
// resources binds, how sure that is, and what the node holds and draws at that rate.
//
// The interval is as wide as what is not known. CPU: the spread between windows of the run; how
// much the cost of a row is known to vary with the number of cores; and, where no speed is given
// for the type, that a core of another kind may do from two thirds to one and a half times the
// work. Bytes and requests are counts: theirs is the spread between windows alone.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/fleet/nodes.h"
#include "analysis/model/row_cost.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

enum class NodeResource : uint8_t {
  kCores,
  kMemory,
  kMemoryBandwidth,
  kNicIn,
  kNicOut,
  kDisk,
  kRequests  // units of work in flight, over the time that one takes to arrive
};
const char* NodeResourceName(NodeResource resource);  // "cores", "memory", "NIC in", ...
const char* NodeResourceKey(NodeResource resource);   // "cores", "memory", "nic_in", ...

struct NodeBound {
  NodeResource resource = NodeResource::kCores;
  double rows_per_s = 0;   // with all of the resource
  Interval interval;       // 90 %
  double probability = 0;  // that this bound is the smallest
};

struct NodeFit {
  double rows_per_s = 0;       // planned: the smallest bound, less the headroom
  Interval interval;           // 90 %, of rows_per_s
  double full_rows_per_s = 0;  // without headroom
  // Draws of rows_per_s and full_rows_per_s over resampled windows and unknown quantities. Draw i
  // uses the same windows for all node types of one RowCost.
  std::vector<double> draws, full_draws;
  std::vector<NodeBound> bounds;  // smallest first; resources without a limit are left out
  bool speed_known = false;
  double cpu_s_per_row = 0;  // on a node of this type
  double cpu_ratio = 0;      // share of its cores in use at rows_per_s
  int threads = 1;           // needed at rows_per_s
  int processes = 1;
  std::optional<double> memory_bytes;  // held by its processes
  std::optional<double> watts;         // at rows_per_s
  // Power per unit of rate, and power at rate 0.
  std::optional<double> watts_per_row_per_s, watts_idle;
};

// How fast one node of `type` is, with the shares of `nodes` that concern a single node.
NodeFit FitNode(const RowCost& cost, const NodeType& type, const NodesFile& nodes);

}  // namespace headrace::analysis
