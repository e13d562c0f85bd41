// Dictionaries of one column and stripe: how often each value occurs, and which index each row's
// value gets.
//
//   values a b a c a b   interned ids 0 1 0 2 0 1, counts 3 2 1
//   Entries that occur twice or more form the stripe dictionary, most frequent first (short
//   indices), ties in order of appearance: a = 0, b = 1. The rest (c) stays outside: inline for
//   integers, in stride dictionaries for strings.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace headrace::reader::dwrf {

uint64_t HashValue(int64_t value);
uint64_t HashValue(std::string_view value);  // XXH3

// Gives equal values equal ids, numbered by first appearance. Strings are views of the caller's
// bytes.
template <class Value>
class Interner {
 public:
  uint32_t Intern(Value value);
  uint32_t Find(Value value) const;  // of a value interned before
  const std::vector<Value>& values() const { return values_; }
  const std::vector<uint32_t>& counts() const { return counts_; }  // saturating

 private:
  void Grow();
  uint64_t Slot(Value value) const;  // its slot, or the free one it would take
  std::vector<uint32_t> slots_;      // id + 1, 0 = free; open addressing, a power of two
  std::vector<Value> values_;
  std::vector<uint32_t> counts_;
};

// places[id] = index in the dictionary, or kOutside; entries = ids in dictionary order. With `all`,
// entries that occur once are taken too.
struct DictionaryOrder {
  static constexpr uint32_t kOutside = UINT32_MAX;
  std::vector<uint32_t> entries, places;
};
DictionaryOrder OrderDictionary(std::span<const uint32_t> counts, bool all);

// One dictionary of all keys of a flattened map.
struct SharedDictionary {
  DictionaryOrder order;
  Interner<int64_t> values;
};

extern template class Interner<int64_t>;
extern template class Interner<std::string_view>;

}  // namespace headrace::reader::dwrf
