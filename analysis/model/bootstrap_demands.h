// BootstrapDemands: what a batch might have cost in other recordings of the same pipeline.
#pragma once
#include <cstdint>
#include <vector>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

// One Demands per bootstrap draw: the windows are resampled, then each row is disturbed at random
// by the error that the model is known to make.
std::vector<Demands> BootstrapDemands(const PipelineModel& model, size_t draws, uint64_t seed);

}  // namespace headrace::analysis
