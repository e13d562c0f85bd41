// IdDictionary: the different ids of a sparse column, whose `values` are then indices into it. An
// operation that maps each id on its own can be applied to the entries, once for all batches that
// use them; the indices stay the same.
//
//   rows [7,9], [9], [7,7]     values 0 1 1 0 0,  entries 7 9
//   ids times ten              values 0 1 1 0 0,  entries 70 90
//   LookUpIds                  values 70 90 90 70 70, no dictionary
//
// A column has one only between the decoding of a stripe and the end of the transforms, and only
// where DictionaryRequest (reader/dwrf/feature_stream.h) asked for it; in a group its unique rows
// have it. Entries do not change once made, and the slices of a stripe share them on any threads.
// Their memory comes from BlockPool and is freed with the last column that uses them or the entries
// that they were made from.
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

  // `uses`: how many values are indices into it, in all batches together; kAlways: the dictionary
  // is kept whatever their number.
  IdDictionary(Entries entries, uint64_t uses) : entries_(std::move(entries)), uses_(uses) {}
  IdDictionary(Array<int64_t>&& entries, uint64_t uses)
      : IdDictionary(std::make_shared<const Array<int64_t>>(std::move(entries)), uses) {}

  const Entries& shared_entries() const { return entries_; }
  std::span<const int64_t> entries() const { return {entries_->data(), entries_->size()}; }
  uint64_t uses() const { return uses_; }
  // Whether there are fewer entries than values, if only `some` of every `of` values are left.
  bool Pays(uint64_t some, uint64_t of) const {
    return uses_ == kAlways || static_cast<double>(entries_->size()) * static_cast<double>(of) <
                                   static_cast<double>(uses_) * static_cast<double>(some);
  }

  // A dictionary with the entries as `change` alters them. The first call with a `key` computes it;
  // other calls with the same key wait and get the same dictionary. `*computed`: whether this call
  // computed it.
  std::shared_ptr<const IdDictionary> Changed(uint64_t key,
                                              const std::function<void(std::span<int64_t>)>& change,
                                              bool* computed) const;

  // Replaces indices, all of them below entries().size(), by their entries.
  void LookUp(std::span<int64_t> indices) const;

 private:
  const Entries entries_;
  const uint64_t uses_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<uint64_t, std::shared_ptr<const IdDictionary>>> changed_;
};

// Replaces the column's indices by ids; does nothing for a column without a dictionary.
void LookUpIds(SparseColumn* column);
// The same for all columns of a batch.
void LookUpIds(FlatMapBatch* batch);

}  // namespace headrace::reader
