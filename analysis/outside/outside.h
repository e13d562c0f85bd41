// Outside: what can be said of a run whose processes keep no accounts, from threads' times on and
// off the CPU, the causes of their waits, and who ended those waits.
//
// Threads are taken together by name and kind of process. The consumer is the main thread of the
// process that the others feed. Roles are given to units: a unit is all processes of one kind or,
// in the consumer's own process, the threads of one name. A wait counts as a wait for the thread
// that ends it: the consumer's waits that others end are its stall; others' waits that the
// consumer's side ends are waits for room or for the next request. The side that waits less for the
// other is the limit.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/outside/threads.h"
#include "analysis/run/accelerator_use.h"
#include "analysis/run/cpu_quota.h"
#include "analysis/run/run_view.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

enum class UnitRole : uint8_t { kConsumer, kProducer, kIdle, kLauncher };
const char* UnitRoleName(UnitRole role);

// Where the lifetime of a unit's threads goes; the parts sum to 1.
struct UnitShares {
  double on_cpu = 0, runnable = 0;
  double storage = 0, network = 0, sleep = 0;
  double lock = 0;           // ended by threads of the unit itself
  double wait_consumer = 0;  // ended by the consumer's side: waits for room or for requests
  double wait_input = 0;     // ended by units further away from the consumer
  double stopped = 0;        // by a signal or a debugger
  double other = 0;          // ended by no thread that is known

  // The part that its work alone would need.
  double work() const { return on_cpu + runnable + storage + network + sleep + lock; }
};

struct OutsideUnit {
  std::string name;  // "4 processes pt_data_worker", "threads reader- of x", "x (main thread)"
  UnitRole role = UnitRole::kIdle;
  size_t kind = 0;
  std::vector<size_t> groups;
  size_t key_group = 0;      // the group whose threads do most of the work
  double threads_count = 1;  // of the key group
  int64_t distance = -1;     // hops from the consumer along waits; -1: no exchange seen
  UnitShares shares;         // of the key group's threads
  double ended_stall_s = 0;  // the consumer's waits that this unit ended
};

enum class OutsideLimit : uint8_t {
  kProducers,  // CPU work of the producers, although cores are free
  kCores,      // CPU work of the producers, with no core free
  kStorage,
  kNetwork,
  kLock,
  kInterpreter,  // Python's, of which one thread at a time runs
  kSleep,
  kConsumer,
  kAlone,  // one thread does everything
  kNone
};
const char* OutsideLimitName(OutsideLimit limit);  // "producers", "cores", "storage", ...

// The word for a kind of pipeline that is recognised by the names of its threads.
enum class OutsideFlavour : uint8_t { kPlain, kTorch, kTensorflow };

struct OutsideFinding {
  OutsideLimit limit = OutsideLimit::kNone;
  double probability = 0;
};

struct Outside : SeenThreads {
  OutsideFlavour flavour = OutsideFlavour::kPlain;
  std::string withheld;                    // no verdict: why; then only what was seen is filled
  std::vector<OutsideUnit> units;          // the consumer first, then by distance and work
  std::vector<OutsideFinding> findings;    // by probability; those with none left out
  size_t culprit = 0;                      // index of the unit that findings[0] is about
  bool decided = false;                    // findings[0] is probable enough
  double stall_ratio = 0;                  // of the consumer's time
  std::optional<Interval> stall_interval;  // 90 %
  // Slices that the verdict is about: without start and end of the program.
  size_t steady_slices = 0;
  bool stall_assumed = false;  // it is unknown who ended the waits, so all of them are counted
  // Busy share of the cores that the run may use. Where these are not all cores of the machine,
  // only the process tree's own use is known, and others may use the rest as well.
  std::optional<double> cores_busy_ratio;
  // Free cores of those that the run may use; empty where others' use is not known.
  std::optional<double> cores_free;
  CoreBudget core_budget;              // what the run may use
  std::optional<double> cores_used;    // by the threads of the process tree that were seen
  std::optional<double> cores_others;  // by other programs
  std::optional<Accelerators> accelerators;
  std::vector<std::string> unknown;  // what cannot be said, a sentence each
  std::string measure;               // undecided: what would decide it
};

// How many producers there might be instead of `now`, so that the consumer waits no more (`stall`:
// the share of its time in which it does), as far as the free cores go, of which each takes `each`:
// one more has room where half of what it takes is free. `at_most`: the rate then, as a multiple.
struct MoreProducers {
  double count = 0;  // `now`: no core is left for more
  double at_most = 1;
};
MoreProducers RoomForMore(double now, double stall, double each, double free_cores);

// Whether the consumer computes beside workers that are processes: taking a batch that was pickled
// is work of its own thread, and from outside looks like its step.
bool MayUnpickle(const Outside& outside);

// Never throws; `run` may be any kind of run.
Outside LookFromOutside(const RunView& run);

}  // namespace headrace::analysis
