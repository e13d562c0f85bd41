// BootstrapDemands: what a batch costs, as another recording of the same pipeline might have had
// it.
#pragma once
#include <cstdint>
#include <vector>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

// Demands of one bootstrap draw: windows resampled, then each row disturbed by what the model
// itself is known to be wrong by.
std::vector<Demands> BootstrapDemands(const PipelineModel& model, size_t draws, uint64_t seed);

}  // namespace headrace::analysis
