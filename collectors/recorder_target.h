// Whether a process can be recorded.
#pragma once
#include <cstdint>

namespace headrace::collectors {

// Throws Error kBadData, naming what could be recorded instead, when there is no such process, and
// kPrivilege when it may not be read.
void CheckTarget(int64_t pid);

}  // namespace headrace::collectors
