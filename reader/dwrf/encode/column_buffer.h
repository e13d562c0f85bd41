// ColumnBuffer: the values of one node (and its children) in the stripe being filled, in the
// compact form the encoders take: no place for nulls. In a flattened map there is a tree of them
// per key.
//
//   list<bigint>, rows [1,2], null, [3]:  positions 3, present 1 0 1, lengths 2 1,
//                                         child integers 1 2 3
//
// Internal to the writer.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "reader/batch/column.h"
#include "reader/dwrf/encode/bit_buffer.h"
#include "reader/dwrf/encode/byte_sink.h"
#include "reader/dwrf/flat_batch.h"
#include "reader/dwrf/layout_policy.h"
#include "reader/schema.h"

namespace headrace::reader::dwrf {

// How much a node held when a stride began.
struct Cut {
  uint64_t positions = 0;  // rows of its parent
  uint64_t values = 0;     // those not null
  uint64_t bytes = 0;      // of strings
};

struct FlatKeyBuffer;

// How far WriteFlat has come in the compact values of a feature.
struct FlatCursor {
  uint64_t values = 0;  // rows that have the key
  uint64_t items = 0;   // list elements, map entries
};

class ColumnBuffer {
 public:
  // `strides` have begun before this node appeared. Schema and policy outlive it.
  ColumnBuffer(const Schema& schema, const LayoutPolicy& policy, uint32_t node, size_t strides);
  ~ColumnBuffer();
  ColumnBuffer(ColumnBuffer&&) noexcept;

  void BeginStride();
  void Clear();  // keeps memory and keys

  // Append positions; return the logical bytes added. The column was checked (CheckColumn).
  uint64_t Append(const Column& column, uint64_t begin, uint64_t end);
  uint64_t AppendPlain(const FlatColumn& column, uint64_t begin, uint64_t end);
  // This is a flattened map; cursors are parallel to column.features.
  uint64_t AppendFeatures(const FlatColumn& column, std::vector<FlatCursor>* cursors,
                          uint64_t begin, uint64_t end);

  TypeKind kind;
  uint32_t node;
  bool flat;
  uint64_t positions = 0, values = 0;
  bool has_nulls = false;  // `present` is kept only from the first null on
  BitBuffer present;
  std::vector<Cut> cuts;  // one per stride begun

  BitBuffer bits;                 // boolean
  std::vector<uint8_t> octets;    // byte; union: tags
  std::vector<int64_t> integers;  // short..long; timestamp: Unix seconds
  std::vector<int32_t> nanos;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<uint32_t> lengths;  // string, binary, list, map
  ByteSink bytes;                 // string, binary
  std::vector<ColumnBuffer> children;
  std::vector<std::unique_ptr<FlatKeyBuffer>>
      keys;  // flattened map; by first appearance in the file

 private:
  void AddPositions(uint64_t count, bool are_present);
  uint64_t AppendValues(const Column& column, uint64_t begin, uint64_t end);
  uint64_t AppendMapRows(const Column& column, uint64_t begin, uint64_t end);
  uint64_t AppendUnion(const Column& column, uint64_t begin, uint64_t end);
  uint64_t AppendFeatureValues(const FlatFeature& feature, FlatCursor* cursor, uint64_t count);
  uint64_t AppendNumbers(const FlatFeature& feature, uint64_t begin, uint64_t count);
  uint64_t AppendIntegers(const int64_t* first, uint64_t count);
  FlatKeyBuffer& FindKey(const MapKey& key);

  const Schema* schema_;
  const LayoutPolicy* policy_;
  std::unordered_map<int64_t, uint32_t> integer_keys_;
  std::unordered_map<std::string, uint32_t> text_keys_;
};

struct FlatKeyBuffer {
  MapKey key;
  BitBuffer in_map;  // per non-null row of the map; may end early: zeros follow
  ColumnBuffer value;
};

// Throws Error kUsage, naming the path, unless the column has the node's shape and its values fit
// their types.
void CheckColumn(const Schema& schema, uint32_t node, const Column& column);
// Same for a column of a flat batch.
void CheckFlatColumn(const Schema& schema, const LayoutPolicy& policy, uint32_t node,
                     const FlatColumn& column, uint64_t rows);

}  // namespace headrace::reader::dwrf
