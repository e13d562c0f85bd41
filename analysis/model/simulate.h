// Discrete-event simulation of a tree of stages: their threads, bounded queues, cores shared by the
// runnable threads, locks and devices, and a consumer. It knows nothing of bounds or of the model's
// arithmetic; it is the second opinion on a predicted rate (what finite queues, variance, order and
// shared cores cost below the bound).
//
// A thread of a stage takes what one firing needs from each input, works through the operators, and
// puts what the firing emits into the stage's queue. Amounts may be fractions; they add up over the
// firings of the stage. Elements leave an ordered queue in the order in which their firings began.
// A firing may put its elements in while there is room and it is less than the window ahead; the
// firing that is next in order may always do so if nothing else can be taken out.
//
// Times are seconds of virtual time. Cores are shared as by an ideal fair scheduler: n runnable
// threads on C cores each run at min(1, C / n). Queues block after service: a thread whose element
// does not fit waits holding it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace headrace::analysis {

struct SimulatedOperator {
  std::string name;
  double cpu_s = 0, blocked_s = 0;            // per firing, outside any resource
  double held_cpu_s = 0, held_blocked_s = 0;  // per firing, while holding `resource`
  double cv = 0;                              // of the sum of these four
  int resource = -1;                          // index into SimulatedPipeline::resources
  // The share of firings that are slow. All slow firings cost the same, and so do all others. 0, or
  // a cv that two costs cannot produce: costs are lognormal.
  double slow = 0;
};

struct SimulatedInput {
  size_t stage = 0;  // the stage whose queue it takes from
  double take = 1;   // elements taken per firing
};

struct SimulatedStage {
  std::string name;
  int parallelism = 1;
  int queue_capacity = 4;  // of the queue after the stage
  std::vector<SimulatedOperator> operators;
  // Not given: one element of the stage before it. The first stage, and any stage with an empty
  // list, makes elements without end.
  std::optional<std::vector<SimulatedInput>> inputs = std::nullopt;
  double emit = 1;  // elements per firing
  bool ordered = false;
  int window = 0;  // reorder window of the ordered queue; 0: none
};

struct SimulatedResource {
  std::string name;
  int servers = 1;
};

struct SimulatedPipeline {
  std::vector<SimulatedStage> stages;  // the last one feeds the consumer
  std::vector<SimulatedResource> resources;
  double cores = 1;
  double consumer_s = 0;  // compute time of the consumer per step, off the cores
  // On the cores, before consumer_s: taking a batch, and what it computes there.
  double consumer_cpu_s = 0;
  double consumer_cv = 0;
  double consumer_take = 1;  // elements of the last queue per step
};

// Cumulative counters at one instant, seconds of thread time.
struct SimulatedCounters {
  struct OperatorTimes {
    int64_t completions = 0;
    double cpu_s = 0, blocked_s = 0, runnable_s = 0, lock_wait_s = 0, wait_in_s = 0, wait_out_s = 0;
  };
  struct QueueTimes {
    double occupancy_s = 0, full_s = 0, empty_s = 0;  // occupancy_s: elements x seconds
    int64_t puts = 0, gets = 0;
  };
  struct ResourceTimes {
    int64_t acquisitions = 0;
    double wait_s = 0, hold_s = 0;
  };
  double time_s = 0;
  std::vector<std::vector<OperatorTimes>> operators;  // by stage, by operator
  std::vector<QueueTimes> queues;
  std::vector<ResourceTimes> resources;
  int64_t steps = 0;
  double step_wait_s = 0, step_compute_s = 0;
};

// Runs until `duration_s` of virtual time or `max_steps` steps, whichever is first (0: no limit on
// steps), and calls `snapshot` every `period_s` (none if 0). Returns the counters at the end.
SimulatedCounters Simulate(const SimulatedPipeline& pipeline, double duration_s, int64_t max_steps,
                           uint64_t seed, double period_s = 0,
                           const std::function<void(const SimulatedCounters&)>& snapshot = {});

// Steps per second of a simulation of `steps` steps, without the first fifth. Each firing has its
// cost, whatever else happens, so that two pipelines that differ in one thing are compared by it;
// operators of a stage without a resource are simulated as one, which varies as their sum. Each
// move of a thread uses up one of `*moves` (if given) and of `most`; when either runs out the
// simulation ends with fewer steps, so no figures in a store can make it run for ever. Empty if it
// ended within the first fifth.
std::optional<double> SimulatedRate(const SimulatedPipeline& pipeline, int64_t steps, uint64_t seed,
                                    int64_t* moves = nullptr, int64_t most = INT64_MAX);

}  // namespace headrace::analysis
