// RunFigures: the headline figures of one recorded run, by which runs are compared. They cover the
// steady phase where the pipeline keeps accounts (docs/report.md says how it is found), else the
// whole command.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run/figure.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// SI base units (seconds, bytes, shares). An empty value was not measured; the reason has the same
// index.
struct RunFigures {
  std::array<Real, kFigures> values;
  std::array<std::string, kFigures> reasons;
  // Begin and end of the steady phase that the figures cover, since the run began; both 0: they
  // cover the whole run, because no steady phase was found.
  int64_t steady_first_ns = 0, steady_last_ns = 0;
  size_t steady_windows = 0;

  const Real& Of(Figure figure) const { return values[static_cast<size_t>(figure)]; }
  const std::string& ReasonOf(Figure figure) const { return reasons[static_cast<size_t>(figure)]; }
};

// Never throws; what was not recorded is empty, with its reason.
RunFigures FiguresOf(const RunView& run);

// The reason of a figure that a block cannot have.
inline constexpr std::string_view kOfWholeRun = "a figure of a whole run";

// Figures of the steady phase in blocks of at least `block_ns`. Only figures that windows hold are
// filled in (rows a second, the consumer's wait, CPU per row). A rest shorter than half a block
// joins the last one. Empty: there is no steady phase.
std::vector<RunFigures> BlocksOf(const RunView& run, int64_t block_ns);

}  // namespace headrace::analysis
