// A FlatMapBatch as bytes and back, for caches: read by the same machine and version only.
#pragma once
#include <cstdint>
#include <span>

#include "reader/batch/array.h"
#include "reader/batch/flat_map_batch.h"

namespace headrace::reader {

constexpr uint32_t kBatchBytesVersion = 3;  // part of a cache's fingerprint

// Appends the batch to `bytes`. Features of groups are their unique rows, not expanded. Ids are
// looked up before (id_dictionary.h).
void AppendBatch(const FlatMapBatch& batch, Array<uint8_t>* bytes);

// The batch at the beginning of `bytes`, which then begin behind it. Throws Error kBadData for
// bytes that AppendBatch did not make; allocates nothing that they do not account for.
FlatMapBatch TakeBatch(std::span<const uint8_t>* bytes);

}  // namespace headrace::reader
