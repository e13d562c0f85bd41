#include "reader/dwrf/encode/dictionary.h"

#include <algorithm>

// The inline form has no version the build must match.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace headrace::reader::dwrf {

uint64_t HashValue(int64_t value) {
  uint64_t h = static_cast<uint64_t>(value) * 0x9e3779b97f4a7c15;
  return h ^ h >> 32;
}

uint64_t HashValue(std::string_view value) { return XXH3_64bits(value.data(), value.size()); }

template <class Value>
uint64_t Interner<Value>::Slot(Value value) const {
  const uint64_t mask = slots_.size() - 1;
  uint64_t slot = HashValue(value) & mask;
  while (slots_[slot] != 0 && values_[slots_[slot] - 1] != value) slot = (slot + 1) & mask;
  return slot;
}

template <class Value>
uint32_t Interner<Value>::Intern(Value value) {
  if (values_.size() * 2 >= slots_.size()) Grow();
  uint32_t& slot = slots_[Slot(value)];
  if (slot == 0) {
    values_.push_back(value);
    counts_.push_back(0);
    slot = static_cast<uint32_t>(values_.size());
  }
  const uint32_t id = slot - 1;
  if (counts_[id] < UINT32_MAX) ++counts_[id];
  return id;
}

template <class Value>
uint32_t Interner<Value>::Find(Value value) const {
  return slots_[Slot(value)] - 1;
}

template <class Value>
void Interner<Value>::Grow() {
  slots_.assign(std::max<size_t>(1024, slots_.size() * 2), 0);
  const uint64_t mask = slots_.size() - 1;
  for (uint32_t id = 0; id < values_.size(); ++id) {
    uint64_t slot = HashValue(values_[id]) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = id + 1;
  }
}

template class Interner<int64_t>;
template class Interner<std::string_view>;

DictionaryOrder OrderDictionary(std::span<const uint32_t> counts, bool all) {
  DictionaryOrder order;
  order.places.assign(counts.size(), DictionaryOrder::kOutside);
  for (uint32_t id = 0; id < counts.size(); ++id)
    if (all || counts[id] > 1) order.entries.push_back(id);
  std::stable_sort(order.entries.begin(), order.entries.end(),
                   [&](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });
  for (uint32_t i = 0; i < order.entries.size(); ++i) order.places[order.entries[i]] = i;
  return order;
}

}  // namespace headrace::reader::dwrf
