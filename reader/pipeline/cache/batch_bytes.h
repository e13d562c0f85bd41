// Converts a FlatMapBatch to bytes and back, for caches. Only the same machine and version can read
// them.
#pragma once
#include <cstdint>
#include <span>

#include "reader/batch/array.h"
#include "reader/batch/flat_map_batch.h"

namespace headrace::reader {

constexpr uint32_t kBatchBytesVersion = 3;  // part of a cache's fingerprint

// Appends the batch to `bytes`. Features in groups are stored as their unique rows, not expanded.
// Ids must have been looked up before (id_dictionary.h).
void AppendBatch(const FlatMapBatch& batch, Array<uint8_t>* bytes);

// Takes the batch at the beginning of `*bytes`, and moves `*bytes` past it. Throws Error kBadData
// for bytes that AppendBatch did not make; allocates nothing that they do not account for.
FlatMapBatch TakeBatch(std::span<const uint8_t>* bytes);

}  // namespace headrace::reader
