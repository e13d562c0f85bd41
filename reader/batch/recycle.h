// Recycled vectors for the large arrays of batches. A fresh vector costs a zeroing pass and, past
// the allocator's thresholds, a page fault per 4 KiB: together about as much as decoding into it. A
// recycled one costs neither.
//
// ~FlatMapBatch hands its large vectors in; Decode and Extract take them out. Thread-safe. The pool
// keeps at most kMaxIdleBytes per element type and frees what is more.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::reader {

constexpr size_t kMinRecycledBytes = 16 << 10;  // smaller vectors are the allocator's business
constexpr size_t kMaxIdleBytes = size_t{256} << 20;

// A vector of `size` elements of unspecified value. T is int64_t, uint32_t or float.
template <typename T>
std::vector<T> TakeVector(size_t size);

template <typename T>
void RecycleVector(std::vector<T>&& vector);

}  // namespace headrace::reader
