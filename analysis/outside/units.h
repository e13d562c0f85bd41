// What is found of a program that is seen from outside (analysis/outside/outside.h): its units,
// what limits it, and how sure that is.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/outside/goroutines.h"
#include "analysis/outside/native_time.h"
#include "analysis/outside/python_activity.h"
#include "analysis/outside/python_places.h"
#include "analysis/outside/python_time.h"
#include "analysis/outside/threads.h"
#include "analysis/run/accelerator_use.h"
#include "analysis/run/cpu_quota.h"
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
  double timed_out = 0;      // of `network` or `sleep`: in polls that their time limits ended
  double other = 0;          // ended by no thread that is known
  double file_lock = 0;      // of the waits above: to lock a file (flock, fcntl), by stacks
  double database_lock = 0;  // of those: asleep in SQLite

  // The part that its work alone would need.
  double work() const { return on_cpu + runnable + storage + network + sleep + lock; }
};

// Whether it hardly gets a core, as one of a low priority or beside many others, whether or not
// they are full all the time.
bool IsStarved(const UnitShares& shares);

// One process of a unit that works all the time while the others of it mostly wait; shares of their
// time.
struct UnevenProcesses {
  size_t processes = 0;
  int64_t pid = 0;
  double busiest_ratio = 0, others_ratio = 0;  // others: their mean
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
  std::optional<UnevenProcesses> uneven;
  size_t idle_processes = 0;  // of its kind, started with the others, without anything to do

  double Cores() const { return shares.on_cpu * std::max(1.0, threads_count); }  // that it uses
};

enum class OutsideLimit : uint8_t {
  kProducers,  // CPU work of the producers, although cores are free
  kCores,      // CPU work of the producers, with no core free
  kStorage,
  kNetwork,
  kLock,
  kInterpreter,  // Python's, of which one thread at a time runs
  kCollector,    // garbage collection, for which a run-time stops the program's threads
  kHandOver,     // packing objects, and sending them from one process to another
  kSleep,
  kConsumer,
  kPauses,   // each side waits for the other: what lies between them is too little
  kOwnWork,  // the consumer's thread makes batches itself, or unpacks them
  kAlone,    // one thread does everything
  kNone
};
const char* OutsideLimitName(OutsideLimit limit);  // "producers", "cores", "storage", ...
// Whether it is a wait that no thread of the program ends: for storage, the network or a timer.
bool IsOwnWait(OutsideLimit limit);

// The word for a kind of pipeline that is recognised by the names of its threads.
enum class OutsideFlavour : uint8_t { kPlain, kTorch, kTensorflow };

// Where the time of the consumer's thread goes, by its sampled stacks, as shares of its steady
// time.
struct OwnTime {
  double loads = 0;    // makes or unpacks batches
  double waits = 0;    // for those that make them
  double step = 0;     // trains; with a loader of a library: whatever is not in it
  double unknown = 0;  // either: functions of the program
  double loads_by_name = 0, step_by_name = 0;  // of `loads`, of `step`: PythonTime
};

struct OutsideFinding {
  OutsideLimit limit = OutsideLimit::kNone;
  double probability = 0;
};

// The rank that the others wait for, of several that step together.
struct RankSeen {
  size_t ranks = 0;
  int64_t pid = 0;
  double wait_ratio = 0;         // of its time, for the others
  double others_wait_ratio = 0;  // the longest of theirs
  std::string by_accounts;       // how accounts told which it is, a sentence; empty: by its waits
  bool is_slowest = false;       // it waits clearly less than another
};

struct Outside : SeenThreads {
  OutsideFlavour flavour = OutsideFlavour::kPlain;
  bool uses_training_library = false;    // functions of one were seen, even if it was only imported
  std::optional<RankSeen> rank;          // of several: the one that all below is about
  std::string withheld;                  // no verdict: why; then only what was seen is filled
  std::vector<OutsideUnit> units;        // the consumer first, then by distance and work
  std::vector<OutsideFinding> findings;  // by probability; those with none left out
  size_t culprit = 0;                    // index of the unit that findings[0] is about
  bool decided = false;                  // findings[0] is probable enough
  double stall_ratio = 0;                // of the consumer's time
  std::optional<Interval> stall_interval;  // 90 %
  // Slices that the verdict is about: without start and end of the program.
  size_t steady_slices = 0;
  double steady_s = 0;         // of the consumer's threads
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
  std::optional<PythonTime> python;               // of the consumer's main thread
  std::optional<BesideTraining> beside_training;  // of it
  std::optional<PythonThreads> python_threads;    // of its other ones
  std::optional<NativeTime> native;               // of the threads of the consumer's process
  NativeWaits native_waits;              // of the unit that limits, if it is of that process
  std::optional<Goroutines> goroutines;  // of that process
  // Whether the consumer waits for threads that compute its step for it: its waits are no waits for
  // data then.
  bool is_step_elsewhere = false;
  // What the threads of the consumer's process are at, and those of the processes that feed it.
  std::optional<PythonActivity> home_activity, feeder_activity;
  // Of what findings[0] is by those: the function in which threads wait so. Empty: not by those.
  std::string activity_place;
  // Where findings[0] is that threads compute: the function of the program in which they do that
  // most of their time. Empty: not known.
  std::string compute_place;
  // And the share of their time on a CPU that goes into memory that was asked for anew; where it is
  // much.
  std::optional<double> new_memory_ratio;
  bool is_asked_over_network = false;  // the unit of findings[0] is another process, a server
  std::optional<WorkerTime> workers;   // of those of PyTorch that limit, by their stacks
  // Share of the consumer's time in which its main thread waited for Python's interpreter, by
  // stacks: at least; and whether there is no more of it.
  std::optional<double> interpreter_ratio;
  bool is_interpreter_all = false;
  bool is_interpreter_inferred = false;  // from what its functions and the kernel say of its waits
  // Whether findings[0] is python_threads->busy_thread.
  bool is_busy_thread = false;
  std::vector<std::string> unknown;  // what cannot be said, a sentence each
  std::string measure;               // undecided: what would decide it

  // Whether CPU cores limit that other programs use, too, and one more of the threads or processes
  // that limit takes a share of them: there are fewer of these than cores.
  bool GetsAnotherShare() const;

  // Who takes the batches, for people: "trainer", or "consumer" where nothing shows that it trains.
  const char* ConsumerName() const;
  std::string ConsumerWord() const { return std::string("the ") + ConsumerName(); }
  // What limits, for people: "storage", "a lock"; no unit is named in it.
  std::string LimitWord(OutsideLimit limit) const;
  // Whether others feed the consumer's thread.
  bool HasProducers() const;
  // Whether nothing feeds it and findings[0] is that it waits for storage, the network or a timer.
  bool WaitsAlone() const;
  // Whether that unit is of other processes than the consumer's, which end soon and are followed by
  // others.
  bool IsShortLived(const OutsideUnit& unit) const;
  // Whether any that feed the consumer are: starting and ending them is work of its own thread,
  // which looks like a part of its step.
  bool HasShortLivedFeeders() const;
  // Whether findings[0] is what the consumer's own thread does, or what it waits for by itself.
  bool IsConsumersDoing() const;
  // Whether the verdict rests on where its functions say that its time goes: only then a page may
  // tell the share that loading takes.
  bool IsByFunctions() const;
  // Whether the consumer's thread is ready to run for long although cores are free: a quota that
  // was not seen, or a set of cores, holds it back.
  bool IsHeldBack() const;
  // None where its functions were not seen, or too seldom.
  std::optional<OwnTime> OwnTimes() const;
  // Whether the run-time of TensorFlow or JAX computes the step in threads of the consumer's
  // process.
  bool HasStepInRunTime() const {
    return native && native->IsStep(stall_ratio * steady_s, core_budget.cores.value_or(1));
  }
  // Of these the share that makes or unpacks batches, and the one that is inside a loader at all.
  std::optional<double> OwnWork() const;
  std::optional<double> InLoader() const;
};

// The unit that uses more than half of the cores that all of the program uses, where it is of other
// processes that exchange nothing with the consumer.
std::optional<size_t> TakesCores(const Outside& outside);

}  // namespace headrace::analysis
