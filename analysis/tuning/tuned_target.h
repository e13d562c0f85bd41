// What the tuner is connected to: a running pipeline whose knobs can be set (TunedTarget), and
// listeners to its decisions (DecisionSink). The target may be the reference reader in this
// process, somebody else's pipeline that a command adjusts, or a simulated pipeline of the bench.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/program/allocation.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Values of knobs by name, as in Change::knob: "decode.parallelism" (threads of a stage),
// "decode.queue" (capacity of the queue behind it).
using KnobValues = std::map<std::string, int>;

// "decode.parallelism 1 -> 4, decode.queue 4 -> 8"; "" for none.
std::string Describe(const std::vector<Change>& changes);

enum class TuneAction : uint8_t {
  kApply,      // settings that the plan says are faster
  kVerify,     // compares with the settings of the start once more
  kRevert,     // back to the settings before
  kHold,       // nothing to change; goes on watching
  kScaleDown,  // fewer threads, because the consumer or the target needs no more; or less memory
  kReplan,     // the pipeline changed lastingly, so earlier results no longer count
  kStop,
  kCache  // keep a stage's output between epochs, from the pipeline's next start on; or do not
};
const char* TuneActionName(TuneAction action);  // "apply", ..., "scale_down", "replan", "stop", ...

// The outcome of a decision. kOpen: not judged, or nothing to judge.
enum class TuneVerdict : uint8_t { kOpen, kKept, kReverted, kFailed, kSuperseded };
const char* TuneVerdictName(TuneVerdict verdict);  // "", "kept", "reverted", "failed", "superseded"

// Rates are batches per second, times nanoseconds since the run began.
struct Decision {
  int index = 0;  // from 0
  int64_t at_ns = 0;
  std::optional<int64_t> applied_ns, judged_ns;
  TuneAction action = TuneAction::kHold;
  std::vector<Change> changes;  // knobs to turn; empty: none
  KnobValues settings;          // values of all knobs after the changes
  // kCache: settings for `run --set` at the next start ("cache.after" and the like), including the
  // changes.
  std::map<std::string, std::string> start_settings;
  std::optional<Limit> limited_by;  // now
  std::string then_limited_by;      // predicted next limit: "the trainer"
  std::optional<double> now;        // rate observed at the time of the decision
  std::optional<double> predicted;
  Interval predicted_interval;  // 90 %
  // Rate observed after applying it, from the same blocks of windows as `effect`.
  std::optional<double> observed;
  Interval observed_interval;    // 95 %
  std::optional<double> effect;  // rate / rate without it (kVerify: at the start) - 1
  Interval effect_interval;      // 95 %
  // Pairs of blocks compared; 0: compared before with after, not interleaved.
  size_t pairs = 0;
  TuneVerdict verdict = TuneVerdict::kOpen;
  std::string reason;                  // in words
  std::optional<double> memory_bytes;  // of the process after the changes, with full queues
};

// Hears decisions.
class DecisionSink {
 public:
  virtual ~DecisionSink() = default;
  // Called when a decision is made, before it is carried out; and again with the same index when it
  // has been carried out (applied_ns) and judged (verdict). Must return soon, because the pipeline
  // keeps running.
  virtual void Take(const Decision& decision) = 0;
};

// A running pipeline. Called from one thread.
class TunedTarget {
 public:
  virtual ~TunedTarget() = default;
  // The knobs that can be turned while it runs, with their present values. The tuner turns no
  // others.
  virtual KnobValues knobs() const = 0;
  // Turns knobs in this order and leaves the others. Returns the time at which that was done, in ns
  // since the run began. Throws Error where a knob or value is refused; the knobs before it have
  // then been turned.
  virtual int64_t Apply(const std::vector<Change>& changes) = 0;
  // Waits until `wait_ns` more of the run are recorded, and returns the run so far; nothing when
  // the run has ended or the tuner's caller wants to end.
  virtual std::optional<RunView> Observe(int64_t wait_ns) = 0;
  // After Observe returned nothing: whether the pipeline still runs and Apply still reaches it.
  virtual bool RunsOn() { return false; }
  // Time since the run began, by the clock of its windows; none where time stands still while the
  // tuner works.
  virtual std::optional<int64_t> now_ns() { return std::nullopt; }
};

}  // namespace headrace::analysis
