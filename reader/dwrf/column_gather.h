// Appending chosen rows of one Column to another: how packed values get slots for nulls, and
// flattened maps their row order.
#pragma once
#include <cstdint>
#include <span>

#include "reader/batch/column.h"

namespace headrace::reader::dwrf {

constexpr uint64_t kNullRow = UINT64_MAX;

// An empty column of node `id`, with offsets {0} and children where its kind has them.
Column EmptyColumn(const Schema& schema, uint32_t id);
// Appends row indices[i] of `from` for each i, a null slot for kNullRow. Both columns are of the
// same type.
void Gather(const Column& from, std::span<const uint64_t> indices, Column* out);
// Appends `count` null slots.
void AppendNulls(uint64_t count, Column* out);
// Appends presence bytes for rows to be appended; keeps `present` empty while nothing is null. Call
// before rows grows.
void AppendPresent(const uint8_t* present, uint64_t count, Column* out);

}  // namespace headrace::reader::dwrf
