// What the trainers of an instrumented run do beside training, by all that is known of them.
#pragma once
#include <optional>

#include "analysis/outside/beside_training.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// By their functions, or of ranks by their waits for each other: whichever takes longer.
std::optional<BesideTraining> BesideTrainingOf(const RunView& run);

}  // namespace headrace::analysis
