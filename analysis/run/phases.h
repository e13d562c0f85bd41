// Phases of a run: which of its windows show the pipeline at work, and which its start, the filling
// of its queues, a cold first pass, the edges of epochs, what was before a lasting change, and its
// end. Only the steady windows feed the model; the others are reported with what they cost.
//
// Found from the recorded windows alone: the consumer's rate, queues' fill, the source's
// completions against what it hands out per epoch, and each stage's time and bytes a row. A change
// is a split of the windows at which the means of both sides differ most against the spread within
// them (binary segmentation, one step; Scott and Knott, Biometrics 30, 1974), and far beyond
// chance.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run/run_view.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

// The windows [first, last) between start and end, of the steps a second in each window. Start and
// fill are over at the first window that reaches four fifths of the typical rate, and the drain
// begins after the last that does; a window in between belongs to the phase whatever its rate.
// Where five are left, the window at each end is left out, as it holds a part of the fill or of the
// end.
std::pair<size_t, size_t> SteadyRange(const std::vector<double>& rates);

enum class PhaseKind : uint8_t {
  kStart,    // until the first step
  kFill,     // until rate and queues are as later on
  kCold,     // the first pass over a table that memory did not hold yet
  kSlow,     // a slower beginning that took more batches than queues hold: no filling of queues
  kEarlier,  // before a lasting change
  kSteady,
  kEdge,  // around the ends of epochs, all together
  kEnd
};
const char* PhaseKindName(
    PhaseKind kind);  // "start", "fill", "cold pass", "slower beginning", "before the change", ...

struct Phase {
  PhaseKind kind = PhaseKind::kSteady;
  int64_t start_ns = 0, end_ns = 0;  // since the run began; edges lie within
  int64_t time_ns = 0;               // spent in it: of edges and steady, less than end - start
  int64_t steps_count = 0;
};

// What the ends of epochs cost.
struct EpochEdges {
  size_t edges = 0;        // seen in the steady range
  double lost_rows = 0;    // at each, against the rate between them; below 0: gained
  Interval lost_interval;  // 90 %
  double lost_ratio = 0;   // of the rows that the rate between them would have given
  double lost_steps = 0;   // at each
  bool separated = false;  // they cost enough to be a phase of their own
  std::string unknown;     // why nothing is known of them; empty: the figures above hold
};

struct StageDrift {
  std::string stage;  // "consumer" for its steps; empty: of the whole pipeline
  double before = 0, after = 0;
};

// A lasting change of the pipeline while it ran.
struct Drift {
  int64_t at_ns = 0;                // since the run began
  std::optional<StageDrift> cost;   // seconds a row, of the stage whose time a row changed most
  std::optional<StageDrift> bytes;  // bytes a row
  std::optional<StageDrift> rate;   // batches per second, where no stage's cost changed
  size_t stages = 0;                // whose cost changed in the same direction
  bool used = false;  // the part after it is long enough: statements hold for that part
};

// A part before the steady one that is worth a word wherever the steady rate is said: a job of one
// epoch has it, too.
struct SlowerPart {
  PhaseKind kind = PhaseKind::kCold;
  int64_t time_ns = 0;
  double time_ratio = 0;             // of the run
  double rate = 0, steady_rate = 0;  // batches per second
};

struct Phases {
  std::vector<Phase> phases;          // in order of their start, without empty ones
  std::vector<size_t> steady;         // windows
  int64_t first_ns = 0, last_ns = 0;  // of the steady windows, what lies between included
  EpochEdges edges;
  std::optional<Drift> drift;
  std::optional<SlowerPart> slower;
  // Where a cold first pass was set apart: of the bytes read after it, delivered by a device.
  std::optional<double> warm_device_ratio;
};

Phases FindPhases(const RunView& run);

// Batches per second of the steady phase of a run of which the windows are known; none where it has
// none, or no time. Takes the view as it changes its duration.
std::optional<double> SteadyRate(RunView run);

// "the first 5.2 s, 52 % of the run, made 45.7 batches/s instead of 88.3: ..."; empty where nothing
// of the kind was found.
std::string Words(const std::optional<SlowerPart>& slower);

// The latest lasting change over all windows of a run that is known to be under way: without the
// start, fill and cold pass that FindPhases sets apart, for which a pipeline that just became
// slower would be taken.
std::optional<Drift> FindDrift(const RunView& run);

// The split of `values` (all above 0) at which the mean logarithm changes most, if it lasts to the
// end, is at least `least` (0.15: a change by 15 %), and is beyond chance by far: the index of the
// first value after it, with the geometric means of both sides. Each side has at least `side`
// values.
struct Shift {
  size_t at = 0;
  double before = 0, after = 0;
};
std::optional<Shift> FindShift(const std::vector<double>& values, double least, size_t side);

}  // namespace headrace::analysis
