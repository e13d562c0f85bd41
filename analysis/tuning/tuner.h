// Tuner: the controller of `headrace tune`. It looks at the run so far, and says what to set next
// and how long to wait. It plans from the windows recorded at the present settings (allocation.h)
// and compares the new settings with the old ones in interleaved blocks of windows
// (block_comparison.h). It keeps new settings if their interval shows that they are faster or, with
// fewer threads, hardly slower; it takes all others back. When the plan changes nothing any more,
// it stops, or watches for lasting changes of the pipeline and plans anew.
//
// It has no clock, no thread and no store: the same runs give the same decisions.
//
// After a change, windows count again once the elements that lay in the queues have been taken.
// Settings that do not fit the memory budget are never applied, and when the process exceeds the
// budget, queues and threads are cut at once. A plan that was taken back is not tried again, but
// half of its step is. Once the plan has stopped changing, a knob turns back at most once until the
// pipeline changes.
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
  int64_t wait_ns = 0;              // look again when this much more is recorded
  bool stop = false;
};

// The verified effect of all changes that were kept.
struct TuneResult {
  KnobValues start, end;
  std::optional<double> effect;  // rate at `end` / rate at `start` - 1; none: not compared
  Interval effect_interval;      // 95 %
  // The interval includes no loss or, with fewer threads, only a small one.
  bool shown = false;
  size_t pairs = 0;            // 0: not interleaved
  std::optional<double> rate;  // batches per second at `end`
  std::string effect_note;     // why there is no effect figure, or its limitations
  std::string why;             // why the tuner stopped
  bool converged = false;      // the plan stopped changing
  // Bytes by which the process exceeded its memory budget in the last reading; none: within it, or
  // no budget.
  std::optional<double> over_memory_bytes;
  int applied = 0;  // decisions that turned knobs
};

class Tuner {
 public:
  // `knobs`: the knobs that may be turned, with their present values.
  Tuner(TunerOptions options, KnobValues knobs);
  ~Tuner();

  // `run`: the run so far. Throws Error kInconclusive where no settings satisfy the budget, or the
  // run says nothing (no accounts, no steps) for too long.
  Move Next(const RunView& run);
  // Tells that `Move::set` was carried out, and when (ns since the run began).
  void Applied(int64_t at_ns);
  // Tells that `Move::set` could not be carried out. The tuner stops; a continuous one tries again
  // after a pause that doubles each time.
  void Failed(const std::string& why);
  // Tells that the run has ended, or that it is not watched any more. An open comparison is
  // superseded; if the pipeline runs on, `Move::set` takes its change back.
  Move End(bool runs_on);
  // Excludes windows that overlap this time, because the tuner itself was busy on the same cores.
  void Disturbed(int64_t from_ns, int64_t to_ns);

  TuneResult result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs the loop until the tuner stops or the target ends. Each decision goes to every sink. A
// target that runs on is left at settings that the tuner kept.
TuneResult Tune(Tuner* tuner, TunedTarget* target, const std::vector<DecisionSink*>& sinks);

}  // namespace headrace::analysis
