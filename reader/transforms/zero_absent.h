// ZeroAbsent: absent rows of a dense column hold 0, whatever a kernel made of them.
#pragma once
#include "base/cpu.h"
#include "reader/batch/flat_map_batch.h"

namespace headrace::reader {

void ZeroAbsent(DenseColumn* column, InstructionSet set);

}  // namespace headrace::reader
