// ColumnReader: reads the values of one (node, sequence) of one stripe and, through its children,
// of the whole subtree. One class per layout of FORMAT section 8 and 9; MakeColumnReader picks it
// from the stripe's encodings.
//
// Readers move forward only; Mark and Rewind undo a read that turned out too large, exactly.
// Strides: before the first row of stride s is read or skipped, the owner calls BeginStride(s)
// (string stride dictionaries restart there).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/batch/column.h"
#include "reader/dwrf/file_reader.h"

namespace headrace::reader::dwrf {

// Thrown by a reader before it would allocate past the budget; only the reader's owner sees it.
struct BatchTooLarge {};

// Bytes of memory that a batch may still take.
struct Budget {
  uint64_t left = UINT64_MAX;
  void Charge(uint64_t count, uint64_t each) {
    if (each != 0 && count > left / each) throw BatchTooLarge{};
    left -= count * each;
  }
};

class ColumnReader {
 public:
  virtual ~ColumnReader() = default;
  // Appends `count` positions to `out`, a column of the node's type. Charges what they take.
  virtual void Read(uint64_t count, Column* out) = 0;
  virtual void Skip(uint64_t count) = 0;
  // Continues at the first row of stride `stride` by the row index. Throws Error kBadData where
  // there is none or its positions do not fit; the reader is then unusable.
  virtual void Seek(uint64_t stride) = 0;
  virtual void BeginStride(uint64_t stride) = 0;
  virtual bool NeedsStrides() const = 0;
  virtual void Mark() = 0;
  virtual void Rewind() = 0;
};

struct IntegerDictionary;

// What the readers of one stripe share.
struct StripeContext {
  std::shared_ptr<const FileReader> file;
  std::shared_ptr<const Stripe> stripe;
  Budget* budget = nullptr;
  uint64_t* unpacked_bytes = nullptr;  // plain bytes made of stored ones; null: not counted
  uint64_t max_dictionary_bytes = 0;
  uint64_t key_nodes = 0;  // nodes for which readers of flattened maps' keys were made
  int64_t timestamp_base = 0;
  std::unordered_map<uint64_t, std::shared_ptr<IntegerDictionary>>
      dictionaries;  // by node << 32 | sequence
};

// Which entries of a map to keep; null = all.
using KeyFilter = std::vector<MapKey>;

// `context` and `keys` must outlive the reader. Throws Error kBadData for encodings that do not fit
// the type.
std::unique_ptr<ColumnReader> MakeColumnReader(StripeContext* context, uint32_t node,
                                               const KeyFilter* keys);
// A column that could not be read: nulls only.
std::unique_ptr<ColumnReader> MakeNullReader(StripeContext* context);

}  // namespace headrace::reader::dwrf
