#include "reader/batch/id_dictionary.h"

namespace headrace::reader {

std::shared_ptr<const IdDictionary> IdDictionary::Changed(
    uint64_t key, const std::function<void(std::span<int64_t>)>& change, bool* computed) const {
  *computed = false;
  std::lock_guard lock(mutex_);
  for (const auto& [known, dictionary] : changed_)
    if (known == key) return dictionary;
  Array<int64_t> entries = entries_->Clone();
  change({entries.data(), entries.size()});
  *computed = true;
  changed_.emplace_back(key, std::make_shared<const IdDictionary>(std::move(entries), uses_));
  return changed_.back().second;
}

void IdDictionary::LookUp(std::span<int64_t> indices) const {
  const int64_t* const entries = entries_->data();
  for (int64_t& value : indices) value = entries[value];
}

void LookUpIds(SparseColumn* column) {
  if (!column->dictionary) return;
  column->dictionary->LookUp({column->values.data(), column->values.size()});
  column->dictionary.reset();
}

void LookUpIds(FlatMapBatch* batch) {
  for (SparseColumn& column : batch->sparse) LookUpIds(&column);
}

}  // namespace headrace::reader
