// Column: n values of any type in memory, the general (not the fast) form: what `cat` prints, what
// the writer takes, what round-trip tests compare. Null rows occupy a slot with a zero value or an
// empty list.
//
//   list<int>, rows [1,2], null, []   n = 3, present = 1 0 1, offsets = 0 2 2 2,
//                                     children[0].integers = 1 2
//   map<int,float>                    offsets as for a list, children = {keys, values}
//   struct                            children, each of n rows
//   string                            offsets into `bytes`
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/schema.h"

namespace headrace::reader {

struct Column {
  TypeKind kind = TypeKind::kStruct;
  uint64_t rows = 0;
  std::vector<uint8_t> present;   // one byte per row, 1 = not null; empty = all present
  std::vector<int64_t> integers;  // boolean (0/1), byte..long; timestamp: Unix seconds; union: tags
  std::vector<int32_t> nanos;     // timestamp only
  std::vector<float> floats;      // float
  std::vector<double> doubles;    // double
  std::vector<uint64_t> offsets;  // rows + 1 entries: string, binary, list, map
  std::string bytes;              // string, binary
  std::vector<Column> children;   // list: element; map: key, value; struct: fields; union: variants
                                  // (each of its own count)

  bool IsNull(uint64_t row) const { return !present.empty() && !present[row]; }

  // The bytes of a row of a string or binary column.
  std::string_view TextAt(uint64_t row) const {
    return std::string_view(bytes).substr(offsets[row], offsets[row + 1] - offsets[row]);
  }
};

}  // namespace headrace::reader
