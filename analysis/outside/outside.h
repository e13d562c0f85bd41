// Outside: what can be said of a run whose processes keep no accounts, from threads' times on and
// off the CPU, the causes of their waits, and who ended those waits.
//
// Threads are taken together by name and kind of process. The consumer is the main thread of the
// process that the others feed. A unit is what may have a role: all processes of one kind, or, in
// the consumer's own process, the threads of one name. A wait is for the one who ends it: the
// consumer's waits ended by others are its stall; others' waits ended by the consumer's side are
// waits for room or for the next request. The side that waits less for the other limits the run.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

// Why a thread was off the CPU, as the off-CPU probe says it.
enum class WaitCause : uint8_t {
  kStorage,
  kNetwork,
  kLock,
  kSleep,
  kPipe,
  kPoll,
  kChild,
  kFault,
  kOther,
  kStopped  // by a signal or a debugger
};
inline constexpr size_t kNumWaitCauses = 10;
const char* WaitCauseName(WaitCause cause);  // "storage", ...
// kOther for a word it does not know.
WaitCause WaitCauseOf(const std::string& name);

// The name that probes give to a group of threads ends in this where it is the first thread of its
// process.
inline constexpr const char* kMainSuffix = " (main)";
bool IsMainThread(const std::string& thread);

// Time of threads, in seconds, summed over them.
struct ThreadTimes {
  double on_cpu_s = 0, runnable_s = 0;
  std::array<double, kNumWaitCauses> blocked_s{};

  double blocked() const;
  double total() const { return on_cpu_s + runnable_s + blocked(); }
};

// Processes of one name with parents of one kind.
struct ProcessKind {
  std::string name;
  std::vector<int64_t> process_ids, pids;
  std::optional<size_t> parent;
};

// Threads of one name in the processes of one kind.
struct ThreadGroup {
  size_t kind = 0;
  std::string thread;
  bool main = false;
  ThreadTimes time;
  double threads_count = 0;  // mean number, from their times together
};

// Of the waits of group `wakee`, those that group `waker` ended.
struct WakeEdge {
  std::optional<size_t> waker;  // empty: a thread outside the recorded tree
  size_t wakee = 0;
  WaitCause cause = WaitCause::kOther;
  int64_t wakeups_count = 0;
  double wait_s = 0;  // measured, or the wakee's time blocked for the cause by share of wake-ups
};

enum class UnitRole : uint8_t { kConsumer, kProducer, kIdle, kLauncher };
const char* UnitRoleName(UnitRole role);

// Where the lifetime of a unit's threads goes; parts of 1.
struct UnitShares {
  double on_cpu = 0, runnable = 0;
  double storage = 0, network = 0, sleep = 0;
  double lock = 0;           // ended by threads of the unit itself
  double wait_consumer = 0;  // ended by the consumer's side: waits for room or for requests
  double wait_input = 0;     // ended by units further away from the consumer
  double stopped = 0;        // by a signal or a debugger
  double other = 0;          // ended by no thread that is known

  // The time it would need for its work alone.
  double work() const { return on_cpu + runnable + storage + network + sleep + lock; }
};

struct Unit {
  std::string name;  // "4 processes pt_data_worker", "threads reader- of x", "x (main thread)"
  UnitRole role = UnitRole::kIdle;
  size_t kind = 0;
  std::vector<size_t> groups;
  size_t key_group = 0;      // whose threads do most of the work
  double threads_count = 1;  // of the key group
  int64_t distance = -1;     // from the consumer along waits; -1: no exchange seen
  UnitShares shares;         // of the key group's threads
  double ended_stall_s = 0;  // of the consumer's waits, those it ended
};

// What is known of the threads decides what can be said.
enum class OutsideKnowledge : uint8_t {
  kNothing,  // no thread times
  kCpu,      // time on CPU and runnable only
  kCauses,   // + causes of waits
  kCounts,   // + who ended how many waits
  kWakers    // + how long those waits were
};

enum class OutsideLimit : uint8_t {
  kProducers,  // CPU of the producers, cores being left
  kCores,      // the same, no core being left
  kStorage,
  kNetwork,
  kLock,
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

struct Outside {
  OutsideKnowledge knowledge = OutsideKnowledge::kNothing;
  OutsideFlavour flavour = OutsideFlavour::kPlain;
  std::string withheld;  // no verdict: why; then only kinds and groups are filled
  std::vector<ProcessKind> kinds;
  std::vector<ThreadGroup> groups;         // most time on CPU first
  std::vector<WakeEdge> edges;             // longest first
  std::vector<Unit> units;                 // the consumer first, then by distance and work
  std::vector<OutsideFinding> findings;    // by probability; those with none left out
  size_t culprit = 0;                      // unit that findings[0] is about
  bool decided = false;                    // findings[0] is probable enough
  double stall_ratio = 0;                  // of the consumer's time
  std::optional<Interval> stall_interval;  // 90 %
  size_t steady_slices = 0;    // the verdict is about: without start and end of the program
  bool stall_assumed = false;  // nobody saw who ended the waits: all of them are counted
  // Of the cores that the run may use; where these are not all of the machine, only what the tree
  // uses of them is known, and the rest may be in use as well.
  std::optional<double> cores_busy_ratio;
  std::optional<double> cores_free;    // of them; empty where others' use of them is not known
  std::optional<double> cores_used;    // by the tree, of the threads that were seen
  std::optional<double> cores_others;  // by other programs
  std::vector<std::string> unknown;    // what cannot be said, a sentence each
  std::string measure;                 // undecided: what would decide it
};

// Never throws; `run` may be of any kind.
Outside LookFromOutside(const RunView& run);

}  // namespace headrace::analysis
