// RunFigures: the headline figures of one recorded run, as two runs are compared by them: of the
// steady phase where the pipeline keeps accounts (the phases are found, docs/report.md), else of
// the whole command.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/run/figure.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// SI base units (seconds, bytes, shares). Empty: not measured, for the reason of the same index.
struct RunFigures {
  std::array<Real, kFigures> values;
  std::array<std::string, kFigures> reasons;
  // The steady phase that the figures are of, since the run began; both 0: the whole run, because
  // no steady phase was found.
  int64_t steady_first_ns = 0, steady_last_ns = 0;
  size_t steady_windows = 0;

  const Real& Of(Figure figure) const { return values[static_cast<size_t>(figure)]; }
  const std::string& ReasonOf(Figure figure) const { return reasons[static_cast<size_t>(figure)]; }
};

// Never throws; what was not recorded is empty, with its reason.
RunFigures FiguresOf(const RunView& run);

// The steady phase in blocks of at least `block_ns`: figures that windows hold (rows a second, the
// consumer's wait, CPU per row), the others empty. A rest shorter than half a block joins the last
// one; none: there is no steady phase.
std::vector<RunFigures> BlocksOf(const RunView& run, int64_t block_ns);

}  // namespace headrace::analysis
