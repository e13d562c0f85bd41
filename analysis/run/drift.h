// Drift: a lasting change of a pipeline while it ran: of what a stage takes or gives for a row,
// else of the rate.
//
// A change is the split of the windows at which the means of both sides differ most relative to the
// spread within them (binary segmentation, one step; Scott and Knott, Biometrics 30, 1974), if they
// differ by far more than chance allows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct StageDrift {
  std::string stage;  // "consumer" for its steps; empty: of the whole pipeline
  double before = 0, after = 0;
};

// A lasting change of the pipeline while it ran.
struct Drift {
  int64_t at_ns = 0;                // since the run began
  std::optional<StageDrift> cost;   // seconds per row of the stage whose time per row changed most
  std::optional<StageDrift> bytes;  // bytes a row
  std::optional<StageDrift> rate;   // batches per second, where no stage's cost changed
  size_t stages = 0;                // stages whose cost changed in the same direction
  // The part after the change is long enough, so all statements are about that part.
  bool used = false;
};

// The latest lasting change over all windows of a run that is already well under way. It looks for
// no start, fill or cold pass, because a pipeline that just became slower would be mistaken for one
// of these.
std::optional<Drift> FindDrift(const RunView& run);
// The same within some of its windows, by index, in order.
std::optional<Drift> DriftWithin(const RunView& run, const std::vector<size_t>& windows);

// FindShift finds the split of `values` (all above 0) at which the mean logarithm changes most. It
// is reported if the change lasts to the end, is at least `least` (0.15: 15 %) and is far beyond
// chance. Each side has at least `side` values. `at`: index of the first value after the split;
// `before`, `after`: geometric means of the sides.
struct Shift {
  size_t at = 0;
  double before = 0, after = 0;
};
std::optional<Shift> FindShift(const std::vector<double>& values, double least, size_t side);

}  // namespace headrace::analysis
