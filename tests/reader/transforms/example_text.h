// The text form of examples (transform.h, Example) to columns of a batch and back.
#pragma once
#include <string>
#include <vector>

#include "reader/transforms/plan.h"

namespace headrace::reader {

// A batch whose columns are those of `text`, named "in0", "in1", ...; kinds from the entry's
// inputs, with weights where the text has them. Row transforms: row ids.
FlatMapBatch ParseExample(const TransformEntry& entry, const std::string& text);

// "low=0 high=1" as parameters, typed by the entry's documentation.
ParamMap ParseParams(const TransformEntry& entry, const std::string& text);

// A column of a batch, or the row ids, as text.
std::string DenseText(const DenseColumn& column);
std::string SparseText(const SparseColumn& column);

// What the plan's step 0 made of `batch`: the column "out", or the remaining row ids.
std::string OutputText(const TransformEntry& entry, FlatMapBatch& batch);

// The spec that runs `op` on in0, in1, ... into "out".
TransformSpec ExampleSpec(const std::string& op, const TransformEntry& entry, size_t num_inputs,
                          ParamMap params);

}  // namespace headrace::reader
