#include "analysis/fleet/node_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/thresholds.h"
#include "base/infinite.h"

namespace headrace::analysis {
namespace {

constexpr size_t kFewDraws = 400;  // where the run has no windows to resample

// The same seed for one type name, so that a type's figures do not depend on its neighbours.
uint64_t SeedOf(const std::string& name) {
  uint64_t seed = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return seed;
}

bool IsRecorded(const RowCost& cost, const NodeType& type) {
  return !type.cpu_model.empty() && type.cpu_model == cost.cpu_model;
}

// One type against one row's figures.
class Fit {
 public:
  Fit(const RowCost& cost, const NodeType& type, const NodesFile& nodes)
      : cost_(cost), type_(type), nodes_(nodes) {
    for (const RowCost::Operator& op : cost.operators) {
      const std::optional<double> given = Given(op);
      speeds_.push_back(given.value_or(type.speed.value_or(1)));
      known_.push_back(given || type.speed || IsRecorded(cost, type));
    }
    other_known_ = type.speed || IsRecorded(cost, type);
  }

  bool known() const {
    return other_known_ && std::all_of(known_.begin(), known_.end(), [](bool k) { return k; });
  }

  // `unknown`: factor of the speed that is not given; `error`: of all CPU.
  double Cpu(const RowFigures& row, double unknown, double error) const {
    double seconds = row.other_cpu_s / type_.speed.value_or(1) / (other_known_ ? 1 : unknown);
    for (size_t i = 0; i < row.operator_cpu_s.size(); ++i) {
      seconds += row.operator_cpu_s[i] / speeds_[i] / (known_[i] ? 1 : unknown);
    }
    return seconds * error;
  }

  // Rows per second by resource, with the whole of it; infinite where it does not limit.
  double Bound(NodeResource resource, const RowFigures& row, double cpu_s) const {
    const auto over = [](const std::optional<double>& capacity, const std::optional<double>& each) {
      return capacity && each && *each > 0 ? *capacity / *each : kInfinite;
    };
    switch (resource) {
      case NodeResource::kCores:
        return cpu_s > 0 ? type_.cores / cpu_s : kInfinite;
      case NodeResource::kMemory:
        return MemoryBound(row, cpu_s);
      case NodeResource::kMemoryBandwidth:
        return over(type_.memory_bandwidth_bytes_per_s, row.memory_traffic_bytes);
      case NodeResource::kNicIn:
        return nodes_.storage.local ? kInfinite : over(type_.nic_bytes_per_s, row.stored_bytes);
      case NodeResource::kNicOut:
        return over(type_.nic_bytes_per_s, row.sent_bytes);
      case NodeResource::kDisk:
        return nodes_.storage.local ? over(type_.disk_bytes_per_s, row.stored_bytes) : kInfinite;
      case NodeResource::kRequests: {
        // Little's law: a unit of work is on its way for so long before a thread has it.
        const double seconds =
            nodes_.dispatcher.latency_s + (row.stored_bytes ? nodes_.storage.latency_s : 0);
        return seconds > 0 ? nodes_.dispatcher.in_flight * cost_.split_rows / seconds : kInfinite;
      }
    }
    return kInfinite;
  }

  double Threads(const RowFigures& row, double cpu_s, double rows_per_s) const {
    return std::max(1.0, std::ceil(rows_per_s * (cpu_s + row.blocked_s) - 1e-9));
  }
  double Processes(double rows_per_s) const {
    return std::max(1.0, std::ceil(rows_per_s / cost_.process_rows_per_s - 1e-9));
  }

 private:
  std::optional<double> Given(const RowCost::Operator& op) const {
    const auto find = [&](const std::string& name) -> std::optional<double> {
      for (const auto& [key, speed] : type_.speed_of) {
        if (key == name) return speed;
      }
      return std::nullopt;
    };
    const std::optional<double> by_name = find(op.name);
    return by_name ? by_name : find(op.kind);
  }

  // Processes and threads grow with the rate; the first of each is there at any.
  double MemoryBound(const RowFigures& row, double cpu_s) const {
    if (!type_.memory_bytes || !cost_.process_bytes) return kInfinite;
    const auto held = [&](double rate) {
      return Processes(rate) * *cost_.process_bytes +
             Threads(row, cpu_s, rate) * cost_.thread_bytes;
    };
    if (held(0) > *type_.memory_bytes) return 0;
    double low = 0, high = 1;
    while (held(high) <= *type_.memory_bytes) {
      low = high;
      high *= 2;
      if (high > 1e15) return kInfinite;
    }
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (held(middle) <= *type_.memory_bytes ? low : high) = middle;
    }
    return low;
  }

  const RowCost& cost_;
  const NodeType& type_;
  const NodesFile& nodes_;
  std::vector<double> speeds_;
  std::vector<bool> known_;
  bool other_known_ = false;
};

constexpr NodeResource kResources[] = {NodeResource::kCores,           NodeResource::kMemory,
                                       NodeResource::kMemoryBandwidth, NodeResource::kNicIn,
                                       NodeResource::kNicOut,          NodeResource::kDisk,
                                       NodeResource::kRequests};

void ReadPower(const NodeType& type, NodeFit* fit) {
  if (!type.watts_idle) return;
  fit->watts_idle = type.watts_idle;
  // P = idle + (peak - idle) * utilisation (Fan, Weber, Barroso: power provisioning, ISCA'07).
  fit->watts_per_row_per_s =
      (*type.watts_peak - *type.watts_idle) * fit->cpu_s_per_row / type.cores;
  fit->watts = *type.watts_idle + fit->rows_per_s * *fit->watts_per_row_per_s;
}

}  // namespace

const char* NodeResourceName(NodeResource resource) {
  switch (resource) {
    case NodeResource::kCores:
      return "cores";
    case NodeResource::kMemory:
      return "memory";
    case NodeResource::kMemoryBandwidth:
      return "memory bandwidth";
    case NodeResource::kNicIn:
      return "NIC in";
    case NodeResource::kNicOut:
      return "NIC out";
    case NodeResource::kDisk:
      return "disk";
    case NodeResource::kRequests:
      return "requests in flight";
  }
  return "";
}

const char* NodeResourceKey(NodeResource resource) {
  switch (resource) {
    case NodeResource::kCores:
      return "cores";
    case NodeResource::kMemory:
      return "memory";
    case NodeResource::kMemoryBandwidth:
      return "memory_bandwidth";
    case NodeResource::kNicIn:
      return "nic_in";
    case NodeResource::kNicOut:
      return "nic_out";
    case NodeResource::kDisk:
      return "disk";
    case NodeResource::kRequests:
      return "requests_in_flight";
  }
  return "";
}

NodeFit FitNode(const RowCost& cost, const NodeType& type, const NodesFile& nodes) {
  const Fit at(cost, type, nodes);
  NodeFit fit;
  fit.speed_known = at.known();
  fit.cpu_s_per_row = at.Cpu(cost.figures, 1, 1);
  std::vector<double> bounds;
  for (const NodeResource resource : kResources) {
    bounds.push_back(at.Bound(resource, cost.figures, fit.cpu_s_per_row));
  }
  // The headroom is of what is used up by work, not of latency or memory: those do not queue.
  const auto planned = [&](NodeResource resource, double rows_per_s) {
    const bool whole = resource == NodeResource::kMemory || resource == NodeResource::kRequests;
    return whole ? rows_per_s : rows_per_s * (1 - nodes.headroom);
  };
  fit.rows_per_s = fit.full_rows_per_s = kInfinite;
  for (size_t r = 0; r < bounds.size(); ++r) {
    fit.rows_per_s = std::min(fit.rows_per_s, planned(kResources[r], bounds[r]));
    fit.full_rows_per_s = std::min(fit.full_rows_per_s, bounds[r]);
  }

  const bool same =
      IsRecorded(cost, type) && std::abs(type.cores - cost.cores) < kSameNumberOfCores;
  Random random(SeedOf(type.name)), random_latency(SeedOf(type.name) + 1);
  std::vector<std::vector<double>> drawn(bounds.size());
  std::vector<double> wins(bounds.size(), 0);
  const size_t draws = cost.draws.empty() ? kFewDraws : cost.draws.size();
  for (size_t d = 0; d < draws; ++d) {
    const RowFigures& row = cost.draws.empty() ? cost.figures : cost.draws[d];
    const double unknown = std::exp(kUnknownSpeed * random.Normal());
    const double error = std::exp((same ? kSameNodeError : kCoresError) * random.Normal());
    const double cpu_s = at.Cpu(row, unknown, error);
    // A latency is one figure for what varies, and does not have the transfer of what was asked
    // for.
    const double latency_error = std::exp(kUsualError * random_latency.Normal());
    double least = kInfinite, full = kInfinite;
    size_t binding = 0;
    for (size_t r = 0; r < bounds.size(); ++r) {
      const double bound = at.Bound(kResources[r], row, cpu_s) *
                           (kResources[r] == NodeResource::kRequests ? latency_error : 1);
      drawn[r].push_back(bound);
      full = std::min(full, bound);
      const double rate = planned(kResources[r], bound);
      if (rate < least) {
        least = rate;
        binding = r;
      }
    }
    wins[binding] += 1 / static_cast<double>(draws);
    fit.draws.push_back(least);
    fit.full_draws.push_back(full);
  }
  fit.interval = CentralInterval(fit.draws, 0.9);
  for (size_t r = 0; r < bounds.size(); ++r) {
    if (!std::isfinite(bounds[r])) continue;
    fit.bounds.push_back(
        {kResources[r], bounds[r], IntervalAround(bounds[r], drawn[r], 0.9), wins[r]});
  }
  std::stable_sort(fit.bounds.begin(), fit.bounds.end(), [&](const auto& a, const auto& b) {
    return planned(a.resource, a.rows_per_s) < planned(b.resource, b.rows_per_s);
  });
  if (!std::isfinite(fit.rows_per_s)) return fit;  // a row costs nothing that was recorded
  fit.cpu_ratio = fit.rows_per_s * fit.cpu_s_per_row / type.cores;
  fit.threads =
      static_cast<int>(std::min(1e6, at.Threads(cost.figures, fit.cpu_s_per_row, fit.rows_per_s)));
  fit.processes = static_cast<int>(std::min(1e6, at.Processes(fit.rows_per_s)));
  if (cost.process_bytes)
    fit.memory_bytes = fit.processes * *cost.process_bytes + fit.threads * cost.thread_bytes;
  ReadPower(type, &fit);
  return fit;
}

}  // namespace headrace::analysis
