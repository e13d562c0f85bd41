// How sure a limit can be on a machine whose cores others use as well.
#pragma once
#include <algorithm>

#include "analysis/thresholds.h"

namespace headrace::analysis {

// The most that the probability of a limit can be where other programs use `others` of `cores`
// cores and threads wait for one: which of the costs are theirs is not known. `cores` > 0.
inline double MostBesideOthers(double others, double cores) {
  const double busy =
      std::clamp((others / cores - kOthersMuch) / (kOthersMost - kOthersMuch), 0.0, 1.0);
  return 1 - busy * (1 - kSureBesideOthers);
}

}  // namespace headrace::analysis
