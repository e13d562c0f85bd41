// Runs of rows of a stripe that are kept, cut into slices (slices.cc).
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "reader/dwrf/feature_stream.h"

namespace headrace::reader::dwrf {

// Rows of the stripe that stay together, all of one slice.
struct Run {
  uint64_t first, rows, slice;
};

inline Array<Run> RunsOf(std::span<const uint8_t> keep, uint64_t rows, uint64_t slice_rows) {
  Array<Run> runs;
  const auto add = [&](uint64_t first, uint64_t end, uint64_t kept) {
    while (first < end) {
      const uint64_t slice = kept / slice_rows;
      const uint64_t part = std::min(end - first, (slice + 1) * slice_rows - kept);
      runs.push_back({first, part, slice});
      first += part;
      kept += part;
    }
  };
  if (keep.empty()) {
    add(0, rows, 0);
    return runs;
  }
  uint64_t kept = 0;
  for (uint64_t row = 0; row < rows;) {
    const uint64_t first = row;
    while (row < rows && keep[row] != 0) ++row;
    add(first, row, kept);
    kept += row - first;
    while (row < rows && keep[row] == 0) ++row;
  }
  return runs;
}

// Set bits in [first, end).
inline uint64_t CountRange(const std::vector<uint64_t>& words, uint64_t first, uint64_t end) {
  uint64_t count = 0;
  while (first < end) {
    const uint64_t take = std::min(64 - (first & 63), end - first);
    uint64_t bits = words[first >> 6] >> (first & 63);
    if (take < 64) bits &= (uint64_t{1} << take) - 1;
    count += static_cast<uint64_t>(std::popcount(bits));
    first += take;
  }
  return count;
}

template <typename T>
void KeepRuns(Array<T>* values, const Array<Run>& runs) {
  if (values->empty()) return;
  T* out = values->data();
  for (const Run& run : runs) {
    std::memmove(out, values->data() + run.first, run.rows * sizeof(T));
    out += run.rows;
  }
  values->resize(static_cast<size_t>(out - values->data()));
}

}  // namespace headrace::reader::dwrf
