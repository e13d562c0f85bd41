// Threads of one Python process, of which one at a time runs Python code.
#pragma once
#include <cstddef>

#include "analysis/model/pipeline_model.h"
#include "analysis/run/interpreter_waits.h"

namespace headrace::analysis {

// Whether the stage is threads of a Python program that compute, and that never used more than one
// core, alone or together with the trainer: whether more of them would, one run cannot tell. Code
// in C may let others run meanwhile.
bool MayShareInterpreter(const PipelineModel& model, size_t stage);

}  // namespace headrace::analysis
