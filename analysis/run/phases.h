// Phases of a run: which of its windows show the pipeline at steady work, and which belong to its
// start, the filling of its queues, a cold first pass, the edges of epochs, the time before a
// lasting change, or its end. Only the steady windows feed the model; the others are reported with
// what they cost.
//
// Phases are found from the recorded windows alone: the consumer's rate, queues' fill, the source's
// completions against what it hands out per epoch, and each stage's time and bytes a row (drift.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run/drift.h"
#include "analysis/run/epoch_edges.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// The steady windows [first, last), given the steps per second of each window. Start and fill end
// with the first window that reaches four fifths of the typical rate, and the drain begins after
// the last window that does; every window in between is steady, whatever its rate. Where five or
// more windows are left, the one at each end is dropped, too, because it holds a part of the fill
// or of the end.
std::pair<size_t, size_t> SteadyRange(const std::vector<double>& rates);

enum class PhaseKind : uint8_t {
  kStart,       // until the first step
  kFirstSteps,  // at the beginning the trainer computed far longer than later (first_steps.h)
  kFill,        // until rate and queue fill are as they are later
  kCold,        // the first pass over a table that was not in the page cache yet
  kSlow,        // a slower beginning that made more batches than queues hold, so it is not kFill
  kEarlier,     // before a lasting change
  kSteady,
  kEdge,   // around the ends of epochs, all of them as one phase
  kProbe,  // more threads than usual were tried for a moment
  kEnd
};
const char* PhaseKindName(
    PhaseKind kind);  // "start", "first steps", "fill", "cold pass", "slower beginning", ...

struct Phase {
  PhaseKind kind = PhaseKind::kSteady;
  int64_t start_ns = 0, end_ns = 0;  // since the run began; edges may lie within
  // Time spent in it; less than end - start for kEdge and kSteady.
  int64_t time_ns = 0;
  int64_t steps_count = 0;
};

// A slower part before the steady one. It is mentioned wherever the steady rate is shown, because a
// job of one epoch has it, too.
struct SlowerPart {
  PhaseKind kind = PhaseKind::kCold;
  int64_t time_ns = 0;
  double time_ratio = 0;             // share of the run
  double rate = 0, steady_rate = 0;  // batches per second
  int64_t steps_count = 0;
};

struct Phases {
  std::vector<Phase> phases;   // in order of their start, without empty ones
  std::vector<size_t> steady;  // indices of the steady windows
  // From the first steady window to the last, since the run began.
  int64_t first_ns = 0, last_ns = 0;
  EpochEdges edges;
  std::optional<Drift> drift;
  std::optional<SlowerPart> slower;
  // Where a cold first pass was set apart: share of the bytes read after it that a device
  // delivered.
  std::optional<double> warm_device_ratio;
};

Phases FindPhases(const RunView& run);

// Batches per second in the steady phase of a run whose windows are loaded; none where it has no
// steady phase, or one without time. Takes a copy of the view because it changes the duration.
std::optional<double> SteadyRate(RunView run);

// "the first 5.2 s, 52 % of the run, made 45.7 batches/s instead of 88.3: ..."; empty where nothing
// of the kind was found.
std::string Words(const std::optional<SlowerPart>& slower);

}  // namespace headrace::analysis
