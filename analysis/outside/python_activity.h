// What the threads of Python processes are at, by sampled stacks (docs/stacks.md): waiting for
// something to do, for room, for each other, for a socket, asleep, or at work. The kernel knows
// threads before CPython 3.14 by one name, so that the time of one that works is lost among that of
// a pool's idle ones.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/python_frames.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

enum class Activity : uint8_t {
  kIdle,            // waits for something to do
  kWaitsForRoom,    // to put something into a full queue
  kWaitsForOthers,  // for what another thread or process makes
  kNetwork,         // for a socket
  kEvents,          // an event loop with nothing to do: for sockets, timers, or other threads
  kSleeps,
  kLocks,      // waits at a lock or semaphore
  kHandsOver,  // packs objects for another process, or sends them
  kWorks       // anything else: computes, or waits in a library that is not Python
};
inline constexpr size_t kNumActivities = static_cast<size_t>(Activity::kWorks) + 1;

// By the innermost of the frames and those that called it. `frames` is not empty.
Activity ActivityOf(const std::vector<PythonFrame>& frames);

struct PythonActivity {
  double sampled_s = 0;  // of main threads, without imports
  double imports_s = 0;  // in which these load modules
  // Of the samples of all others that have something to do, those of the threads of a
  // multiprocessing.Pool or a ProcessPoolExecutor that hand over tasks and results, whether they
  // have or not; and what of the rest are at work, as `others`.
  double pool_ratio = 0, works_beside_pool = 0;
  // Mean number of threads of such Pools that pack and send tasks, and of main threads of such a
  // Pool's processes that wait for one.
  double sends_tasks = 0, awaits_tasks = 0;
  int64_t samples_count = 0;
  // Mean number of threads at it, of one process: main threads, and all others.
  std::array<double, kNumActivities> main = {}, others = {};
  // Of most of what the others are at: the program's own function, else the library's, and the
  // thread, by Python's name of it. Empty: never seen.
  std::array<std::string, kNumActivities> places = {}, threads = {};

  double Others(Activity activity) const { return others[static_cast<size_t>(activity)]; }
  double Main(Activity activity) const { return main[static_cast<size_t>(activity)]; }
  // The most that a mean number of threads, of all samples, may be in `seconds` of them.
  double AtMostIn(double seconds, double threads) const {
    return seconds > 0 ? threads * std::max(1.0, sampled_s / seconds) : threads;
  }
};

// Nothing where the main threads of these processes were never sampled.
std::optional<PythonActivity> LookAtActivity(const RunView& run,
                                             const std::vector<int64_t>& process_ids);

}  // namespace headrace::analysis
