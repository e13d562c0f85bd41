// Tensors as files that any program reads: each batch a folder of .npy arrays (NumPy's format 1.0)
// and a batch.json that names them. For checks against other libraries and for looking into
// batches; docs/dedup.md has the layout.
//
//   DIR/batch-00000/batch.json           {"schema": "headrace.tensors/1", "rows_count",
//                                         "dense": [names], "sparse": [keys],
//                                         "weighted": [keys], "groups": [...]}
//   DIR/batch-00000/dense.npy            float32[rows, dense]
//   DIR/batch-00000/sparse.lengths.npy   int32[keys * rows]; sparse.offsets, sparse.values: int64
//   DIR/batch-00000/group-000.inverse.npy  int32[rows], of a deduplicated group
#pragma once
#include <memory>
#include <string>

#include "reader/pipeline/pipeline.h"

namespace headrace::workloads {

// Writes every batch below `folder`, which is made and must be empty, then hands it to `consumer`.
// A batch's folder appears complete or not at all. Throws Error kUsage when `folder` is not empty
// or a batch is no tensors, and as writing files does.
std::unique_ptr<reader::Consumer> DumpTensors(const std::string& folder,
                                              std::unique_ptr<reader::Consumer> consumer);

}  // namespace headrace::workloads
