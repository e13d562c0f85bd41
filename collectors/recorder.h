// Recorder: the loop of the collector. Every tick it reads the target's operator accounts, its
// threads' scheduler figures, the process and the machine; about once a second it stores what it
// read. Its own cost and every loss are stored like any other figure.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "collectors/store/store.h"

namespace headrace::collectors {

struct RecorderOptions {
  int64_t pid = 0;  // of the target
  std::string database;
  std::string run_name;       // "" makes one from program and time
  std::string pipeline_path;  // "" when there is none
  int64_t tick_ns = 250'000'000;
  int64_t commit_ns = 1'000'000'000;  // what `kill -9` of the collector may lose at most
  int64_t duration_ns = 0;            // 0: until the target ends or `stop`
  // Called once, when the run exists and the first reading is done.
  std::function<void(int64_t run_id, bool has_accounts)> ready;
  std::function<bool()> stop;  // asked several times a tick
};

struct Recording {
  int64_t run_id = 0;
  RunState state = RunState::kComplete;
  bool has_accounts = false;
  bool target_ended = false;
  int64_t duration_ns = 0;
};

// Records until the target ends, `stop` says so, or the duration is over. The run ends as complete
// (stopped, or the target closed its accounts), interrupted (the target died), or truncated (disk
// full: what was stored stays).
// Throws Error: kBadData when there is no such process or the database cannot be used, kPrivilege
// when the process may not be read.
Recording Record(const RecorderOptions& options);

}  // namespace headrace::collectors
