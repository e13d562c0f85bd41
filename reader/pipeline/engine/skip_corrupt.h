// source.on_corrupt = "skip": a stripe that cannot be read is left out and counted.
#pragma once
#include <memory>

#include "reader/pipeline/engine/progress.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {

// Wraps `op`: data that it cannot read become an element without rows, which settles the stripe's
// rows; the sequence numbers of the stripe's slices stay used. Returns `op` unchanged if the spec
// does not ask for this, and for operators after `extract`, because these hold rows of several
// stripes.
std::unique_ptr<Operator> WithSkipping(const OperatorPlan& plan, const PipelineSpec& spec,
                                       Progress* progress, std::unique_ptr<Operator> op);

}  // namespace headrace::reader
