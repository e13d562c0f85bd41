// World: a pipeline that runs in virtual time, event by event. It is the outside witness of the
// validation bench and shares no code with analysis: what analysis says of a recorded run of a
// World is judged by running the World again as it was changed.
//
// A station fires: it takes elements (`take` of each input where it zips, in turn from its inputs
// where it interleaves), its thread goes through the parts, and it emits elements into its queue.
// Cores are shared equally among the threads that want one; work on a core slows with the number of
// busy cores (contention) and with threads beyond the cores (switching). Locks and devices serve in
// order of arrival. Queues are bounded; ordered ones let elements out in the order in which their
// station took its own, and hold back those too far ahead (window).
//
// Seconds of virtual time; one batch is one element that the consumer takes.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/validation/dice.h"

namespace headrace::validation {

struct Part {
  std::string name;
  double cpu_s = 0, blocked_s = 0;            // per firing
  double held_cpu_s = 0, held_blocked_s = 0;  // while holding `shared`
  double cv = 0;                              // of all four together
  Shape shape = Shape::kLogNormal;
  int shared = -1;  // index into World::shared
};

struct Station {
  std::string name;
  std::vector<size_t> inputs;  // stations before it in World::stations; empty: a source
  bool zips = false;
  int take = 1;
  double emit = 1;  // below 1: that share of firings emits one; else a whole number
  int threads = 1;
  bool sequential = false;
  int queue = 4;         // capacity of the queue behind it
  bool ordered = false;  // wants take == emit == 1
  int window = 0;        // 0: none
  double element_bytes = 65536;
  std::vector<Part> parts;
};

struct SharedResource {
  std::string name;
  bool device = false;
  int servers = 1;
  double slow = 1;  // multiplies what is done while holding it
};

struct World {
  std::vector<Station> stations;  // the last one feeds the consumer
  std::vector<SharedResource> shared;
  double cores = 2;
  double contention = 0;  // work on a core takes (1 + contention * (busy cores - 1)) times as long
  double switching = 0;   // and (1 + switching * (threads that want a core / cores - 1)) times
  double consumer_s = 0, consumer_cv = 0;
  double base_bytes = 200e6;   // resident whatever the settings
  double memory_bytes = 64e9;  // limit of the process
};

// Firings of each station per batch.
std::vector<double> Visits(const World& world);
// Resident bytes when all queues are full and every thread holds an element.
double MemoryOf(const World& world);

// Cumulative, seconds of thread time.
struct Ledger {
  struct PartTimes {
    int64_t completions = 0;
    double cpu_s = 0, blocked_s = 0, runnable_s = 0, lock_wait_s = 0, in_s = 0, out_s = 0;
  };
  struct QueueTimes {
    double level_s = 0, full_s = 0, empty_s = 0;
    int64_t puts = 0, gets = 0;
  };
  struct SharedTimes {
    int64_t uses = 0;
    double wait_s = 0, hold_s = 0;
  };
  double time_s = 0, busy_cores_s = 0;
  std::vector<std::vector<PartTimes>> parts;  // by station
  std::vector<QueueTimes> queues;
  std::vector<SharedTimes> shared;
  int64_t steps = 0;
  double step_wait_s = 0, step_compute_s = 0;
};

// Runs until the consumer took `batches` or `limit_s` passed; calls `look` every `period_s`.
Ledger Play(const World& world, int64_t batches, double limit_s, uint64_t seed, double period_s = 0,
            const std::function<void(const Ledger&)>& look = {});

// Batches per second over `batches` batches, after a tenth of them (50 at least) to warm up.
double RateOf(const World& world, int64_t batches, uint64_t seed);

}  // namespace headrace::validation
