// WatchedRecording: a recording that a command starts in order to watch it: of a running process,
// or of a command from its first instruction. It is made by a process of its own, `headrace
// collect` or `headrace profile`, so it goes on while nobody looks.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectors/agent.h"

namespace headrace::experiments {

struct WatchedOptions {
  std::string database;
  std::string name;                    // of the run; "": made from program and time
  std::vector<std::string> arguments;  // how to measure, as options of both commands
};

class WatchedRecording {
 public:
  // Returns once the run is in the database. Throws Error as collectors::Agent does: no such
  // process, it may not be read, the database cannot be used.
  static WatchedRecording OfProcess(int64_t pid, const WatchedOptions& options);
  // Starts the command, with nothing on its standard input; what it prints goes to a file of its
  // own. Waits until its run is in the database, and gives up when interrupted (kInterrupted).
  // Throws the Error of `headrace profile` where it ends before: no such command, the database
  // cannot be used.
  static WatchedRecording OfCommand(const std::vector<std::string>& command,
                                    const WatchedOptions& options);

  WatchedRecording(WatchedRecording&& other) noexcept;
  WatchedRecording& operator=(WatchedRecording&&) = delete;
  ~WatchedRecording();  // ends what still runs, unless it was left

  int64_t run_id() const { return run_id_; }
  // Where the command's output goes; empty: it is no command.
  const std::string& output() const { return output_; }
  // Whether a command still runs; false for the recording of a process.
  bool CommandRuns();
  // Ends it: the recording of a process is stopped; a command gets SIGINT, and SIGKILL 10 s later.
  // With `leave` a command that still runs goes on and is recorded on. Returns what became of it, a
  // line or two for people. Throws as Agent::Stop.
  std::string Close(bool leave);

 private:
  WatchedRecording() = default;
  void End();
  void WaitForRun(int64_t newest_before);

  std::optional<collectors::Agent> agent_;
  pid_t profile_ = -1;  // the recorder of a command, first of its process group
  int status_ = 0;
  std::string database_, output_;
  int64_t run_id_ = 0;
};

}  // namespace headrace::experiments
