// ServiceScaling: the autoscaler (reader/service/autoscaler.h) over a job: what its ranks and
// workers report becomes an observation every five seconds, and the wanted number a decision with
// its reason.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reader/service/autoscaler.h"
#include "reader/service/dispatcher.h"

namespace headrace::experiments {

// Other rules than a job's own, to compare them.
struct ScalingRules {
  int64_t observe_ns = 5'000'000'000;
  // How many there are at first, where that is not the least.
  std::optional<uint32_t> at_first = {};
  // Instead of the autoscaler: how many workers there are to be.
  std::function<int(const reader::FleetObservation&)> policy = {};
};

struct ScalingDecision {
  uint32_t from = 0, to = 0;  // workers
  std::string limit, reason;
  std::optional<double> batches_per_second;
};

class ServiceScaling {
 public:
  // Between `least` and `most` workers, `least` at first unless the rules say otherwise.
  ServiceScaling(uint32_t least, uint32_t most, bool is_lockstep, uint64_t batch_rows,
                 ScalingRules rules = {});

  // To be called ten times a second. A decision where one is due: a change, or the first that holds
  // for another limit than the one before.
  std::optional<ScalingDecision> Watch(const reader::service::DispatcherStatus& status,
                                       int64_t now_ns);
  uint32_t wanted() const { return wanted_; }
  // There is room for no more workers than so many.
  void Bound(uint32_t most);
  // So many can be there now, however many are wanted: no more are waited for.
  void SetAvailable(uint32_t workers) { available_ = workers; }
  // The latest, also where it changed nothing.
  const std::optional<ScalingDecision>& latest() const { return latest_; }

 private:
  // Sums of a process so far, by its instance.
  struct Seen {
    uint64_t wait_ns = 0, compute_ns = 0, rows = 0;  // rank
    uint64_t made_rows = 0, busy_ns = 0;             // worker
    int64_t connected_ns = 0;
  };
  void ObserveWorkers(const reader::service::DispatcherStatus& status,
                      std::map<uint64_t, Seen>* now, reader::FleetObservation* seen);
  bool BeginObserving(const reader::service::DispatcherStatus& status, int64_t now_ns);
  reader::FleetObservation Observe(const reader::service::DispatcherStatus& status, int64_t now_ns);

  const ScalingRules rules_;
  const bool is_lockstep_;
  const uint64_t batch_rows_;
  uint32_t most_, available_ = UINT32_MAX;
  reader::Autoscaler autoscaler_;
  uint32_t wanted_;
  int64_t observed_ns_ = 0;
  std::map<uint64_t, Seen> seen_;
  // Of a worker that works all the time; nothing until one has made a batch.
  std::optional<double> batches_per_busy_s_;
  std::optional<ScalingDecision> latest_;
};

// How many of the workers are told to end, and still there.
uint32_t DrainingWorkers(const reader::service::DispatcherStatus& status);

// Peers of those that are to be drained for `decision`: those that sent the fewest units. Empty
// where it wants no fewer workers.
std::vector<uint64_t> WorkersToDrain(const reader::service::DispatcherStatus& status,
                                     const ScalingDecision& decision);

}  // namespace headrace::experiments
