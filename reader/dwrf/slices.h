// DecodeSlices: the second way from an unpacked stripe to batches, straight into the memory of the
// final tensors. The rows of the stripe become slices of `slice_rows` rows; the ids of all sparse
// features of a slice are decoded into one slab, feature after feature in the order of the
// projection, which is how a KeyedJaggedTensor holds them (slab and tensor are the same memory:
// Tensorize, tensorize.h). Decode and Extract (feature_stream.h) are the way with a vector for each
// feature, which must then be cut, joined and put together.
//
//   stripe of 4 rows, slices of 2     sparse:1  [7] [8 9] | [] [6]     slab 0  7 8 9 | 1 2
//   (rows by feature)                 sparse:2  [1] [2]   | [3] []     slab 1  6 | 3
//
// Rows that are not wanted, or that a filter drops, are skipped while still encoded: their ids are
// never decoded (late materialisation). The slices then consist of the remaining rows.
//
// Features of a group (decode_groups.h) are in a slab of that group, which holds only the slice's
// unique rows: a repeated row is recognised by its encoded bytes and never decoded.
//
// Ids that do not stand one after the other in their stream (dictionaries, nulls among the
// elements, other integer types) are decoded by feature first and copied; the bytes are in
// FlatMapBatch::copied_bytes. Stripes with maps that are not flattened: use Decode.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/cpu.h"
#include "reader/batch/row_filter.h"
#include "reader/dwrf/feature_stream.h"

namespace headrace::reader::dwrf {

struct SliceOptions {
  uint64_t slice_rows = 0;          // 0: all rows in one slice
  double spare = 0;                 // room at a slab's end for further ids, as a share of its size
  std::span<const uint8_t> wanted;  // one byte per row of the stripe; empty: all rows
  std::span<const RowFilter> filters;  // on columns of the plan
  // Sparse features to deduplicate, each in at most one group. All groups are made, in their order,
  // even if a stripe's features must be decoded before they can be compared.
  const GroupRequests* groups = nullptr;
  std::span<const double> group_spare;  // as `spare`, for each group's slab; empty: none
  // Features outside groups whose ids may stay in their dictionary; a slice's columns then hold
  // indices, in the slab. Where rows are left out, only the values of kept rows count.
  const DictionaryRequest* dictionaries = nullptr;
  InstructionSet set = BestInstructionSet();
};

// Slices that a stripe of `rows` rows becomes; a stripe without rows is one slice without rows.
constexpr uint64_t NumSlices(uint64_t rows, uint64_t slice_rows) {
  return slice_rows == 0 || rows == 0 ? 1 : (rows + slice_rows - 1) / slice_rows;
}

// There are NumSlices(rows of the stripe) slices, the last ones without rows when rows were
// dropped. Errors as Decode's; HR_CHECK fails for a plan with maps.
DecodedStripe DecodeSlices(UnpackedStripe&& unpacked, const SliceOptions& options);

// Slice `slice` as a batch; call once for each, in ascending order. Sets rows and columns. The
// caller must set where the rows come from (first_row, row_ids, spans), using `keep`.
FlatMapBatch ExtractSlice(DecodedStripe* decoded, uint64_t slice);

}  // namespace headrace::reader::dwrf
