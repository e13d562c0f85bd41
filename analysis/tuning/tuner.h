// Tuner: the controller of `headrace tune`. It looks at the run so far, and says what to set next
// and how long to wait: it plans from the windows recorded at the present settings (allocation.h),
// compares the new settings with the old ones in interleaved blocks of windows
// (block_comparison.h), keeps what its interval shows to be faster, or to cost no more than a
// little where it takes fewer threads, and takes back all else, until the plan changes nothing.
// Then it stops, or watches for lasting changes of the pipeline and plans anew.
//
// It has no clock, no thread and no store: the same runs give the same decisions.
//
// After a change, windows count once what lay in the queues has been taken. Settings that do not
// fit the budget of memory are never applied, and where the process is seen above it, queues and
// threads are cut at once. A plan that was taken back is not tried again; half of its step is. Once
// the plan has stopped changing, a knob turns back at most once until the pipeline changes.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "analysis/tuning/tuned_target.h"
#include "analysis/tuning/tuner_options.h"

namespace headrace::analysis {

// What to do next.
struct Move {
  std::vector<Decision> decisions;  // made or judged now, in order
  std::vector<Change> set;          // knobs to turn now, those that free memory first
  int64_t wait_ns = 0;              // then look again when so much more is recorded
  bool stop = false;
};

// The verified effect of all that was kept.
struct TuneResult {
  KnobValues start, end;
  std::optional<double> effect;  // rate at `end` against `start`, less 1; none: not compared
  Interval effect_interval;      // 95 %
  bool shown = false;          // the interval holds no loss, or none to speak of for fewer threads
  size_t pairs = 0;            // 0: not interleaved
  std::optional<double> rate;  // batches per second at `end`
  std::string effect_note;     // why there is none, or what it is not
  std::string why;             // the stop
  bool converged = false;      // the plan stopped changing
  // By how much the process was above its memory budget when it was last seen; none: within it, or
  // no budget.
  std::optional<double> over_memory_bytes;
  int applied = 0;  // decisions that turned knobs
};

class Tuner {
 public:
  // `knobs`: those that may be turned, as they are.
  Tuner(TunerOptions options, KnobValues knobs);
  ~Tuner();

  // `run`: the run so far. Throws Error kInconclusive where no settings satisfy the budget, or the
  // run says nothing (no accounts, no steps) for too long.
  Move Next(const RunView& run);
  // `Move::set` was carried out at that time of the run.
  void Applied(int64_t at_ns);
  // It could not be. The tuner stops; a continuous one tries again after a while, which doubles.
  void Failed(const std::string& why);
  // The run has ended, or nobody watches it any more: an open comparison is superseded, and where
  // the pipeline runs on, `Move::set` takes its change back.
  Move End(bool runs_on);
  // Windows that overlap it do not count: the tuner itself was busy on the same cores.
  void Disturbed(int64_t from_ns, int64_t to_ns);

  TuneResult result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs the loop until the tuner stops or the target ends. Each decision goes to every sink. A
// target that runs on is left at settings that were kept.
TuneResult Tune(Tuner* tuner, TunedTarget* target, const std::vector<DecisionSink*>& sinks);

}  // namespace headrace::analysis
