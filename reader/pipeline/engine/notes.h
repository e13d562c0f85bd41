// What did not work as well as the pipeline file asks for, and why: sentences for the end of a run.
#pragma once
#include <string>
#include <vector>

#include "reader/pipeline/engine/input.h"
#include "reader/pipeline/engine/progress.h"

namespace headrace::reader {

// Thread-safe.
std::vector<std::string> NotesOf(const PipelineSpec& spec, const Input& input,
                                 const Progress& progress);

}  // namespace headrace::reader
