// RowMapBatch: rows as maps from feature to value, the form that training readers had before
// columns: every row owns a list of (key, values), sorted by key. It is really built, so that its
// cost can be measured: ordinary (not flattened) maps are read through it, and the operator
// `rowmap` turns batches of flattened maps into rows and back.
//
//   sparse, rows {17:[7,8], 20:[9]}, {}, {17:[]}   row_offsets 0 2 2 3
//                                                  entries (17,0,2) (20,2,1) (17,3,0)   ids 7 8 9
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/batch/flat_map_batch.h"

namespace headrace::reader {

struct RowMapEntry {
  int64_t key = 0;
  uint32_t first = 0, count = 0;  // of ids and weights; dense: `first` in floats, count 1
};

struct RowMapColumn {
  std::string name;  // of the map
  FeatureKind kind = FeatureKind::kDense;
  Array<uint32_t> row_offsets;  // rows + 1, into entries
  Array<RowMapEntry> entries;   // of a row by ascending key
  Array<int64_t> ids;
  Array<float> floats;  // dense: values; weighted: one weight for each id
};

// A key of a map to read, and the name of its column in a FlatMapBatch.
struct RowMapFeature {
  std::string name;
  int64_t key = 0;
};

struct RowMapBatch {
  uint64_t rows = 0;
  std::vector<RowMapColumn> maps;
  uint64_t MemoryBytes() const;
};

// The rows of some columns of `batch`, all of kind `kind`, as maps: `features` says which columns
// and by what key. Works row by row, as the readers of that time built their rows.
RowMapColumn ToRowMaps(const FlatMapBatch& batch, const std::string& name, FeatureKind kind,
                       const std::vector<RowMapFeature>& features);

// A column for each feature, filled row by row by looking its key up in the row's map. If a row has
// equal keys, the first counts. Appends to `batch`, whose rows are the map's.
void ToColumns(const RowMapColumn& map, const std::vector<RowMapFeature>& features,
               FlatMapBatch* batch);

}  // namespace headrace::reader
