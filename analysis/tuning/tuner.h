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
#include "analysis/tuning/tuner_move.h"
#include "analysis/tuning/tuner_options.h"

namespace headrace::analysis {

struct TunerState;

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
  std::unique_ptr<TunerState> state_;
};

// Runs the loop until the tuner stops or the target ends. Each decision goes to every sink. A
// target that runs on is left at settings that the tuner kept.
TuneResult Tune(Tuner* tuner, TunedTarget* target, const std::vector<DecisionSink*>& sinks);

}  // namespace headrace::analysis
