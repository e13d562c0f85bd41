// How much of what a verdict from outside rests on was lost while it was recorded.
#pragma once
#include <string>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// As a share of all there was: the largest loss, because they overlap. `words` says of what: "the
// wake-ups".
struct LostShare {
  double share = 0;
  std::string words;
};

// Of the whole recording; a share of 0 where nothing is known to be lost. Never throws.
LostShare ShareLost(const RunView& run);

}  // namespace headrace::analysis
