// IdDictionary: the different ids of a sparse column, whose `values` are then indices into it. What
// is done to every id for itself can be done to the entries, once for all batches that use them;
// the indices stay.
//
//   rows [7,9], [9], [7,7]     values 0 1 1 0 0,  entries 7 9
//   ids times ten              values 0 1 1 0 0,  entries 70 90
//   LookUpIds                  values 70 90 90 70 70, no dictionary
//
// A column has one only between the decoding of a stripe and the end of the transforms, and only
// where DictionaryRequest (reader/dwrf/feature_stream.h) asked for it; of a group its unique rows
// have it. Entries do not change once
// made, and are shared by the slices of a stripe on any threads; memory is of BlockPool, and goes
// with the last column that uses them or those that they were made from.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "reader/batch/array.h"
#include "reader/batch/flat_map_batch.h"

namespace headrace::reader {

class IdDictionary {
 public:
  using Entries = std::shared_ptr<const Array<int64_t>>;  // features may share theirs
  static constexpr uint64_t kAlways = UINT64_MAX;

  // `uses`: how many values are indices into it, in all batches together; kAlways: it is to be kept
  // whatever they are.
  IdDictionary(Entries entries, uint64_t uses) : entries_(std::move(entries)), uses_(uses) {}
  IdDictionary(Array<int64_t>&& entries, uint64_t uses)
      : IdDictionary(std::make_shared<const Array<int64_t>>(std::move(entries)), uses) {}

  const Entries& shared_entries() const { return entries_; }
  std::span<const int64_t> entries() const { return {entries_->data(), entries_->size()}; }
  uint64_t uses() const { return uses_; }
  // Whether there are fewer entries than values, when of every `of` values `some` are left.
  bool Pays(uint64_t some, uint64_t of) const {
    return uses_ == kAlways || static_cast<double>(entries_->size()) * static_cast<double>(of) <
                                   static_cast<double>(uses_) * static_cast<double>(some);
  }

  // What `change` makes of the entries. Computed by the first call of a `key`; others of the same
  // key wait for it and get the same. `computed` says whether it was this call.
  std::shared_ptr<const IdDictionary> Changed(uint64_t key,
                                              const std::function<void(std::span<int64_t>)>& change,
                                              bool* computed) const;

  // Puts entries in the place of their indices, all of which are below entries().size().
  void LookUp(std::span<int64_t> indices) const;

 private:
  const Entries entries_;
  const uint64_t uses_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<uint64_t, std::shared_ptr<const IdDictionary>>> changed_;
};

// The column's values become ids; without a dictionary they are.
void LookUpIds(SparseColumn* column);
// Of all columns.
void LookUpIds(FlatMapBatch* batch);

}  // namespace headrace::reader
