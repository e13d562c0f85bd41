// Recorder: the loop of the collector. Every tick it reads the operator accounts of the target and
// of all processes that it started, and the probes that are due; about once a second it stores what
// it read. Its own cost and every loss are stored like any other figure.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectors/store/store.h"
#include "collectors/trigger.h"

namespace headrace::collectors {

constexpr int kMostLevel = 4;

struct RecorderOptions {
  int64_t pid = 0;  // of the target
  std::string database;
  std::string run_name;       // "" makes one from program and time
  std::string pipeline_path;  // "" when there is none
  // What the target is about to execute; "" takes its command line as it is.
  std::string program, command;
  // The target waits for `ready` before it executes that; the run's figures begin at its exec.
  bool held = false;
  // What to measure with: 0 from outside only, 1 accounts, /proc and /sys, 2 the pipeline's CPU
  // clock, 3 eBPF, 4 hardware counters by operator. Absent: all that works.
  std::optional<int> level;
  bool deep = false;                 // also measure what costs more
  std::vector<std::string> without;  // probes to leave out, by name
  int64_t tick_ns = 100'000'000;     // between readings
  int64_t store_ns = 200'000'000;    // length of a stored interval
  // Between commits: the most that `kill -9` of the collector may lose. Half of it in a young run,
  // as what is measured is stored in intervals from commit to commit.
  int64_t commit_ns = 1'000'000'000;
  int64_t duration_ns = 0;  // 0: until the target ends or `stop`
  // Flight recorder: keeps full detail only this long before and after `trigger`. 0: keeps all
  // detail.
  int64_t ring_ns = 0;
  std::optional<Trigger> trigger;
  // Called once, after the run was created, the probes started and the first reading done.
  std::function<void(int64_t run_id, bool has_accounts)> ready;
  std::function<bool()> stop;  // asked several times a tick
};

struct Recording {
  int64_t run_id = 0;
  RunState state = RunState::kComplete;
  // False when the state could not be stored; the store's next user then marks the run as
  // interrupted.
  bool marked = true;
  bool has_accounts = false;
  bool target_ended = false;
  int64_t duration_ns = 0;
  int64_t steps = 0;  // steps of the consumer
  // The database that holds the run: the one that was asked for or, where that was displaced, the
  // one beside it that the run was saved in. Empty: no database holds all of the run.
  std::string database;
  // If the database was deleted, renamed or replaced meanwhile: one sentence for users that says
  // so, and what became of the run. Else empty.
  std::string displaced;
};

// Sets the options' ring and trigger from a user's words. Either may be "": a trigger alone has a
// ring of 30 s, a ring alone the trigger 'stall > 200ms'. Throws Error kUsage.
void SetFlightRecorder(const std::string& ring, const std::string& trigger,
                       RecorderOptions* options);

// Records until the target ends, `stop` says so, or the duration is over. The run ends as complete
// (stopped, or the target closed its accounts), interrupted (the target died), or truncated (disk
// full: what was stored stays). A database that is deleted or replaced meanwhile is noticed within
// a tick: the run is saved beside it, and is recorded on there.
// Throws Error: kBadData when there is no such process or the database cannot be used, kPrivilege
// when the process may not be read.
Recording Record(const RecorderOptions& options);

}  // namespace headrace::collectors
