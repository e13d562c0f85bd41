// Discrete-event simulation of a fleet of preprocessing workers, in virtual time: a second opinion
// on a planned fleet, and what happens when parts of it are lost. It shares no code and no
// arithmetic with the model, its fits or its program.
//
// A worker asks the dispatcher for units of work and keeps some of them on their way: the request
// goes there, waits its turn, and comes back. The unit's bytes come from the storage that all
// workers share, after its latency and over the worker's NIC. The threads of the worker take its
// batches: a batch blocks, then needs a core. Finished batches wait in the worker until a client
// has room, then go over the worker's NIC and the client's. A client takes one batch a step. Every
// server (the dispatcher, the storage, each NIC) does one thing after the other, first come first
// served. A client gives its room to whichever worker has had a batch ready longest, half a round
// trip after it took one.
//
// Costs of batches vary (lognormal), and so do nodes of one type among each other. Times are
// seconds.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::analysis {

struct SimulatedNodes {
  std::string name;
  int count = 0;
  int cores = 1;
  int threads = 1;              // at least one; more than cores where batches block
  double batch_cpu_s = 0;       // of one batch on one core
  double batch_blocked_s = 0;   // per batch, before its CPU time
  double batch_cv = 0;          // coefficient of variation of both
  double spread = 0;            // relative deviation of the speed between nodes
  double nic_bytes_per_s = 0;   // in each direction; 0: no limit
  double disk_bytes_per_s = 0;  // where the table is on its own disk; 0: no limit
};

struct SimulatedFleet {
  std::vector<SimulatedNodes> nodes;
  int unit_batches = 1;  // batches of one unit of work
  // Requests to the dispatcher per unit.
  double unit_requests = 1;
  double stored_bytes = 0, stored_requests = 0, sent_bytes = 0;  // of one batch; 0: none
  // 0: no limit.
  double storage_bytes_per_s = 0, storage_requests_per_s = 0, storage_latency_s = 0;
  double storage_latency_cv = 0.5;
  bool local_storage = false;  // each node reads its own disk
  double dispatcher_requests_per_s = 0, dispatcher_latency_s = 0;
  int in_flight = 8;  // units that a worker has asked for or not yet begun
  int clients = 1;
  double client_nic_bytes_per_s = 0;
  double client_step_s = 0;  // 0: takes batches as fast as they come
  int client_buffer = 4;     // batches
  double detect_s = 1;       // until a client knows that a worker is gone
};

// What happens at one moment.
struct Disturbance {
  double at_s = 0;
  std::vector<int> lost;          // nodes of each type; may be empty
  double dispatcher_pause_s = 0;  // for how long the dispatcher answers nothing
  // Storage bandwidth and request rate are multiplied by this from then on.
  double storage_factor = 1;
};

struct FleetSlice {
  double start_s = 0, batches_per_s = 0, stall_ratio = 0;
};

struct FleetOutcome {
  double batches_per_s = 0;  // taken by the clients
  double stall_ratio = 0;    // of all clients: waited / (waited + computed); 0 where steps take 0
  double worst_stall_ratio = 0;  // of the client that waited most
  double wait_p99_s = 0;         // of a client for a batch
  // `latency`: from a worker's request for a batch's work until the batch is at the client. `work`:
  // from the beginning of that work to its end.
  double latency_p50_s = 0, latency_p99_s = 0, work_p50_s = 0, work_p99_s = 0;
  // Shares of the time in which these were busy; for client NICs, the busiest one's.
  double cores_ratio = 0, storage_ratio = 0, dispatcher_ratio = 0, client_nic_ratio = 0;
  int64_t batches = 0, lost_batches = 0;
  // Events handled; events handled or still pending at the end.
  int64_t events = 0, pushed_events = 0;
  double measured_s = 0;
  std::vector<FleetSlice> slices;  // equal ones of the whole time
  // The simulation needed too many events, or too many were pending at once: the other figures mean
  // nothing.
  bool cut_short = false;
};

// Simulates `duration_s` of virtual time. The first fifth counts only in the slices.
FleetOutcome SimulateFleet(const SimulatedFleet& fleet, double duration_s, uint64_t seed,
                           const std::vector<Disturbance>& disturbances = {},
                           int64_t max_events = 50'000'000);

}  // namespace headrace::analysis
