// What the tuner is connected to: a running pipeline whose knobs can be set (TunedTarget), and who
// wants to hear what was decided (DecisionSink). The reference reader in this process, a pipeline
// of somebody else's that a command sets, and the simulated ones of the bench stand behind the same
// two.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/program/allocation.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// By name: "decode.parallelism" (threads of a stage), "decode.queue" (capacity of the queue behind
// it), as in Change::knob.
using KnobValues = std::map<std::string, int>;

// "decode.parallelism 1 -> 4, decode.queue 4 -> 8"; "" for none.
std::string Describe(const std::vector<Change>& changes);

enum class TuneAction : uint8_t {
  kApply,      // settings that the plan says are faster
  kVerify,     // against the settings of the start, once more
  kRevert,     // back to what was there before
  kHold,       // nothing to change; goes on watching
  kScaleDown,  // fewer threads, as the consumer or the target needs no more; or less memory
  kReplan,     // a lasting change of the pipeline was seen: what was known before counts no more
  kStop,
  kCache  // keep a stage's output between epochs, from the pipeline's next start on; or do not
};
const char* TuneActionName(TuneAction action);  // "apply", ..., "scale_down", "replan", "stop", ...

// How a decision came out. kOpen: not judged, or nothing to judge.
enum class TuneVerdict : uint8_t { kOpen, kKept, kReverted, kFailed, kSuperseded };
const char* TuneVerdictName(TuneVerdict verdict);  // "", "kept", "reverted", "failed", "superseded"

// Rates are batches per second, times nanoseconds since the run began.
struct Decision {
  int index = 0;  // from 0
  int64_t at_ns = 0;
  std::optional<int64_t> applied_ns, judged_ns;
  TuneAction action = TuneAction::kHold;
  std::vector<Change> changes;  // knobs to turn; empty: none
  KnobValues settings;          // all knobs, with the changes
  // kCache: what `run --set` sets at the next start, "cache.after" and the like; changes too.
  std::map<std::string, std::string> start_settings;
  std::optional<Limit> limited_by;  // now
  std::string then_limited_by;      // as predicted; "the consumer"
  std::optional<double> now;        // observed when it was decided
  std::optional<double> predicted;
  Interval predicted_interval;  // 90 %
  // Observed with it applied, from the same blocks of windows as `effect`.
  std::optional<double> observed;
  Interval observed_interval;    // 95 %
  std::optional<double> effect;  // rate against that without it (kVerify: at the start), less 1
  Interval effect_interval;      // 95 %
  size_t pairs = 0;              // of blocks compared; 0: before against after, not interleaved
  TuneVerdict verdict = TuneVerdict::kOpen;
  std::string reason;                  // in words
  std::optional<double> memory_bytes;  // of the process with the changes and full queues
};

// Hears decisions.
class DecisionSink {
 public:
  virtual ~DecisionSink() = default;
  // Called when a decision is made, before it is carried out, and again with the same index when it
  // has been carried out (applied_ns) and judged (verdict). Must return soon: the pipeline runs on.
  virtual void Take(const Decision& decision) = 0;
};

// A running pipeline. Called from one thread.
class TunedTarget {
 public:
  virtual ~TunedTarget() = default;
  // The knobs that can be turned while it runs, at their present values. Only these are.
  virtual KnobValues knobs() const = 0;
  // Turns knobs in this order and leaves the others. Returns when that was done, since the run
  // began. Throws Error where a knob or value is refused; then those before it are turned.
  virtual int64_t Apply(const std::vector<Change>& changes) = 0;
  // Waits until `wait_ns` more of the run are recorded, and gives the run so far; nothing when the
  // run has ended, or whoever runs the tuner wants it to end.
  virtual std::optional<RunView> Observe(int64_t wait_ns) = 0;
  // Whether the pipeline runs on when Observe gives nothing, and Apply still reaches it.
  virtual bool RunsOn() { return false; }
  // Since the run began, by the clock of its windows; none where time stands while the tuner works.
  virtual std::optional<int64_t> now_ns() { return std::nullopt; }
};

}  // namespace headrace::analysis
