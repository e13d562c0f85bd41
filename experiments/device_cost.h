// What reads cost the storage of a folder, from the last calibration of its file system.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "reader/fetch/device_cost.h"
#include "reader/pipeline/spec.h"

namespace headrace::experiments {

// Nothing when the database has no calibration ('headrace doctor --calibrate') made in a folder of
// the file system that holds `path`. `depth`: how many reads will be in flight; the nearest
// measured depth is used. Throws Error when the database is damaged.
std::optional<reader::DeviceCost> CalibratedCost(const std::string& database,
                                                 const std::string& path, uint32_t depth);

// Does what reader::ChooseGap does, but with the calibrated cost where the pipeline file gives
// none.
void ChooseGap(const std::string& database, reader::PipelineSpec* spec);

}  // namespace headrace::experiments
