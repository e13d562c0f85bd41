// The text files beside a generated table.
#pragma once
#include <string>

#include "workloads/generated_table.h"

namespace headrace::workloads {

// pipeline.toml: projection, stages, transforms and consumer of the model, with comments.
std::string PipelineText(const GeneratedTable& table);
// table.json, schema headrace.table/1.
std::string TableJson(const GeneratedTable& table);

}  // namespace headrace::workloads
