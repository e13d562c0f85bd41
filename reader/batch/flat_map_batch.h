// FlatMapBatch: columns of n rows as read, one per projected feature. The pipeline's working form
// between decode and tensorize. A feature that a row does not have (absent) differs from an empty
// list.
//
//   sparse feature, rows [7,8], absent, [] :  present bits 1 0 1,  offsets 0 2 2 2,  values 7 8
//   dense feature,  rows 0.5, absent, 2    :  present bits 1 0 1,  values 0.5 0 2
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reader/batch/array.h"
#include "reader/batch/dedup_group.h"
#include "reader/batch/row_span.h"

namespace headrace::reader {

// Bit r of word r/64 (least significant first): row r has the feature. Words past the last row are
// zero.
struct PresenceBits {
  std::vector<uint64_t> words;
  uint64_t count = 0;  // set bits
  bool Get(uint64_t row) const { return words[row >> 6] >> (row & 63) & 1; }
};

class IdDictionary;  // id_dictionary.h

enum class FeatureKind : uint8_t { kDense, kSparse, kWeightedSparse };

// One dense feature: values.size() == rows, 0 where absent.
struct DenseColumn {
  std::string name;  // projected feature name: "<column>:<key>", or a derived feature's own name
  PresenceBits present;
  Array<float> values;
};

// One sparse feature: offsets.size() == rows + 1, offsets[0] == 0, non-decreasing, values.size() ==
// offsets[rows]; weights empty, or as long as values. In a group `rows` are the group's unique
// rows.
struct SparseColumn {
  std::string name;
  PresenceBits present;
  Array<uint32_t> offsets;
  Array<int64_t> values;
  Array<float> weights;
  bool weighted =
      false;  // a weighted feature, also where the batch happens to hold none of its values
  int32_t group = -1;  // in FlatMapBatch::groups; -1: one list for each row of the batch
  // Set: `values` are indices into it, not ids (id_dictionary.h).
  std::shared_ptr<const IdDictionary> dictionary = nullptr;
  // With a dictionary: number of values before rows or ids were left out.
  uint64_t decoded_values = 0;
};

// A plain integer or float column of the table (label, session id, timestamp): one value per row,
// nulls read as 0.
struct ScalarColumn {
  std::string name;
  bool is_float = false;
  Array<int64_t> integers;
  Array<float> floats;
};

// The memory that the sparse columns of a batch were decoded into, if they were decoded together:
// one piece each for the ids of features without weights, of those with, and for their weights, the
// features one after the other in the order of the batch. The columns' arrays are borrowed from it
// until a transform replaces them; memory left at its end is spare.
struct Slabs {
  std::shared_ptr<Array<int64_t>> ids, weighted_ids;
  std::shared_ptr<Array<float>> weights;
  double spare = 0;  // spare room at their end, as a share of what was decoded into them
};

struct FlatMapBatch {
  uint64_t rows = 0;
  uint64_t split_id = 0;  // the split of its first row; rows keep file order inside a batch
  uint64_t first_row =
      0;  // row number of its first row within the whole table (dense over files in file order)
  // The rows' numbers within the table. Empty while they are first_row, first_row + 1, ...; one per
  // row once rows were dropped or batches from different places joined.
  std::vector<uint64_t> row_ids;
  std::vector<RowSpan> spans;  // the rows of the table that these rows settle
  std::vector<DenseColumn> dense;
  std::vector<SparseColumn> sparse;
  std::vector<ScalarColumn> scalars;
  std::vector<DedupGroup> groups;  // of sparse columns that hold unique rows only
  Slabs slabs;
  std::vector<Slabs> group_slabs;  // of the columns of each of `groups`; empty: none
  // Bytes of ids and weights that were copied or moved since they were decoded.
  uint64_t copied_bytes = 0;

  uint64_t RowId(uint64_t row) const { return row_ids.empty() ? first_row + row : row_ids[row]; }
  DenseColumn* FindDense(std::string_view name);
  SparseColumn* FindSparse(std::string_view name);
  ScalarColumn* FindScalar(std::string_view name);
  uint64_t MemoryBytes() const;  // bytes of all values, offsets and presence
  FlatMapBatch Clone() const;
};

}  // namespace headrace::reader
