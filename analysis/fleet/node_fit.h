// NodeFit: how many rows per second one node of a type does, by what a row costs; which of its
// resources binds, how sure that is, and what the node holds and draws at that rate.
//
// The interval is as wide as what is not known. CPU: the spread between windows of the run; how
// much the cost of a row is known to move with the number of cores; and, where no speed is given
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
  kRequests  // units of work on their way, against how long one takes to come
};
const char* NodeResourceName(NodeResource resource);  // "cores", "memory", "NIC in", ...
const char* NodeResourceKey(NodeResource resource);   // "cores", "memory", "nic_in", ...

struct NodeBound {
  NodeResource resource = NodeResource::kCores;
  double rows_per_s = 0;   // with the whole of it
  Interval interval;       // 90 %
  double probability = 0;  // of being the least
};

struct NodeFit {
  double rows_per_s = 0;       // planned: the least bound, less the headroom
  Interval interval;           // 90 %, of that
  double full_rows_per_s = 0;  // nothing left free
  // Of both, over the resampled windows and what is not known: parallel for all types of one
  // RowCost.
  std::vector<double> draws, full_draws;
  std::vector<NodeBound> bounds;  // the least first; those that do not limit are left out
  bool speed_known = false;
  double cpu_s_per_row = 0;  // on this type
  double cpu_ratio = 0;      // of its cores at that rate
  int threads = 1;           // that work there at that rate
  int processes = 1;
  std::optional<double> memory_bytes;                     // that they hold
  std::optional<double> watts;                            // at that rate
  std::optional<double> watts_per_row_per_s, watts_idle;  // what of them grows with the rate
};

// How fast one node of `type` is, with the shares of `nodes` that concern a single node.
NodeFit FitNode(const RowCost& cost, const NodeType& type, const NodesFile& nodes);

// The width of what a core's speed may be where it is not given: deviation of its logarithm.
inline constexpr double kUnknownSpeed = 0.25;

}  // namespace headrace::analysis
