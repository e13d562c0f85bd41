// What a run row says about the machine and the process.
#pragma once
#include "collectors/store/store.h"

namespace headrace::collectors {

// Fills everything but the accounting fields. `pipeline_path` may be empty; a file that cannot be
// read leaves pipeline_text empty.
RunInfo DescribeRun(int64_t pid, const std::string& name, const std::string& pipeline_path,
                    const std::string& program = "");

}  // namespace headrace::collectors
