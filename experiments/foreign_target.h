// Somebody else's pipeline as the tuner sees it: a running process with operator accounts, recorded
// by a collector, whose knobs are set by the user's command.
//
// The command is run by /bin/sh for each change, with the decision as one JSON object on its
// standard input (schema headrace.decision/1), and in its environment
//
//   HEADRACE_PID          the process
//   HEADRACE_CHANGED      knobs to turn, by blanks: "decode.parallelism decode.queue"
//   HEADRACE_KNOB_<NAME>  for every knob its value from now on: HEADRACE_KNOB_DECODE_PARALLELISM=4
//                         (letters in capitals, others than letters and digits as '_')
//
// Exit status 0 means that all knobs were set; any other, or no end within the timeout, means that
// none was. The command's standard output goes to this program's standard error.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/tuning/tuner.h"
#include "experiments/run_watch.h"

namespace headrace::experiments {

struct ForeignOptions {
  int64_t pid = 0;
  std::string database;
  int64_t run_id = 0;
  std::string apply_command;
  int64_t timeout_ns = 10'000'000'000;
  int tries = 3;                          // of one change, with a longer pause each time
  int64_t first_wait_ns = 1'000'000'000;  // after the first failure
  std::vector<std::string> knobs;         // that may be turned; empty: all that the run shows
  int64_t duration_ns = 0;                // end after this much of the run; 0: never
};

// "decode.parallelism" -> "HEADRACE_KNOB_DECODE_PARALLELISM".
std::string KnobVariable(const std::string& knob);

// How a command ended.
struct CommandEnd {
  bool ok = false;
  std::string how;  // "exited 3", "was killed by signal 9", "did not end within 10.0 s"
};

// Runs `command` by /bin/sh in a process group of its own, `input` on its standard input and
// `variables` ("NAME=value") added to its environment; kills the group after `timeout_ns`. If the
// user interrupts, the command is still waited for, so that no change is left half made. Throws
// Error kFailure where no process can be made.
CommandEnd RunCommand(const std::string& command, const std::string& input,
                      const std::vector<std::string>& variables, int64_t timeout_ns);

class ForeignTarget : public analysis::TunedTarget, public analysis::DecisionSink {
 public:
  // `ended`: whether the process or its recording has ended; asked from the tuner's thread.
  ForeignTarget(ForeignOptions options, std::function<bool()> ended);

  // Waits until the run shows stages and steps, at most `most_ns`. Throws Error kInconclusive where
  // it does not, or shows no knob that can be turned; kUsage for a knob that does not exist.
  analysis::RunView Begin(int64_t most_ns);

  // Takes the decision that the command will be given; call it before Apply, as Tune does with its
  // sinks.
  void Take(const analysis::Decision& decision) override { decision_ = decision; }

  analysis::KnobValues knobs() const override { return knobs_; }
  // Throws Error kFailure when every try of the command failed.
  int64_t Apply(const std::vector<analysis::Change>& changes) override;
  std::optional<analysis::RunView> Observe(int64_t wait_ns) override;
  std::optional<int64_t> now_ns() override { return watch_.now_ns(); }
  // True also when the user ends the tuning; the process is then left at settings that the tuner
  // kept.
  bool RunsOn() override;

  int commands() const { return commands_; }  // commands that were run
  int failures() const { return failures_; }  // commands that failed

 private:
  void ReadKnobs(const analysis::RunView& run);

  const ForeignOptions options_;
  std::function<bool()> ended_;
  // All knobs that the run shows; the knobs that may be turned.
  analysis::KnobValues shown_, knobs_;
  std::optional<analysis::Decision> decision_;
  RunWatch watch_;
  int commands_ = 0, failures_ = 0;
};

// Tunes a running process: records it, plans, has the command set what was decided, verifies.
struct ForeignTune {
  ForeignOptions target;  // run_id is set here
  analysis::TunerOptions tuner;
  std::string rate;  // --target; "": none
  std::string name;
  std::vector<std::string> collect_arguments;
};
struct ForeignTuned {
  analysis::TuneResult result;
  int64_t run_id = 0;
  double rows = 0;            // rows per batch
  std::string store_failure;  // why decisions were not stored; empty: they were
};
// Every decision goes to the run's store and to `sinks`. Throws what tuning and recording throw.
ForeignTuned TuneForeign(ForeignTune what, std::vector<analysis::DecisionSink*> sinks);

}  // namespace headrace::experiments
