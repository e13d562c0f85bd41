// source.on_corrupt = "skip": a stripe that cannot be read is left out and counted.
#pragma once
#include <memory>

#include "reader/pipeline/engine/progress.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {

// `op`, so that data that it cannot read become an element without rows that settles them; the
// places of the stripe's slices are kept. `op` as it is where the spec does not ask for that, and
// behind `extract`: later operators hold rows of several stripes.
std::unique_ptr<Operator> WithSkipping(const OperatorPlan& plan, const PipelineSpec& spec,
                                       Progress* progress, std::unique_ptr<Operator> op);

}  // namespace headrace::reader
