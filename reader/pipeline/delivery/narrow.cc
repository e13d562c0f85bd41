#include "reader/pipeline/delivery/narrow.h"

#include <algorithm>
#include <cstring>

// GCC makes vectors of these loops at its third level only, which more than doubles their speed.
#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

namespace headrace::reader {
namespace {

constexpr size_t kGroup = 64;  // integers
constexpr size_t kWide = sizeof(uint64_t), kSlim = sizeof(uint32_t);

// What a plain length gives.
struct Layout {
  explicit Layout(size_t plain)
      : integers(plain / kWide),
        tail(plain % kWide),
        groups((integers + kGroup - 1) / kGroup),
        map_words((groups + 63) / 64) {}
  size_t Integers(size_t group) const { return std::min(kGroup, integers - group * kGroup); }
  size_t integers, tail, groups, map_words;
};

bool FitsSlim(const uint8_t* from, size_t count) {
  uint64_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t value;
    std::memcpy(&value, from + i * kWide, kWide);
    seen |= value;
  }
  return seen >> 32 == 0;
}

void ToSlim(const uint8_t* from, uint8_t* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t value;
    std::memcpy(&value, from + i * kWide, kWide);
    const auto slim = static_cast<uint32_t>(value);
    std::memcpy(to + i * kSlim, &slim, kSlim);
  }
}

void ToWide(const uint8_t* from, uint8_t* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t slim;
    std::memcpy(&slim, from + i * kSlim, kSlim);
    const uint64_t value = slim;
    std::memcpy(to + i * kWide, &value, kWide);
  }
}

bool IsSlim(const uint8_t* map, size_t group) { return (map[group / 8] >> group % 8 & 1) != 0; }

}  // namespace

size_t Narrow(std::span<const uint8_t> plain, uint8_t* to) {
  const Layout layout(plain.size());
  const size_t map_bytes = layout.map_words * kWide;
  // Of what is shorter than its map, or not much longer, nothing can be saved.
  if (plain.size() < 2 * map_bytes) return 0;
  std::fill_n(to, map_bytes, uint8_t{0});
  size_t saved = 0;
  for (size_t group = 0; group < layout.groups; ++group) {
    const size_t count = layout.Integers(group);
    const uint8_t* const from = plain.data() + group * kGroup * kWide;
    // A whole group has a loop of known length.
    if (!(count == kGroup ? FitsSlim(from, kGroup) : FitsSlim(from, count))) continue;
    to[group / 8] = static_cast<uint8_t>(to[group / 8] | 1 << group % 8);
    saved += count * kSlim;
  }
  if (saved <= map_bytes + plain.size() / 8) return 0;
  const uint8_t* const map = to;
  uint8_t* put = to + map_bytes;
  for (size_t group = 0; group < layout.groups; ++group) {
    const size_t count = layout.Integers(group);
    const uint8_t* const from = plain.data() + group * kGroup * kWide;
    if (!IsSlim(map, group)) {
      std::memcpy(put, from, count * kWide);
      put += count * kWide;
      continue;
    }
    count == kGroup ? ToSlim(from, put, kGroup) : ToSlim(from, put, count);
    put += count * kSlim;
  }
  put = std::copy_n(plain.data() + layout.integers * kWide, layout.tail, put);
  return static_cast<size_t>(put - to);
}

bool Widen(std::span<const uint8_t> narrowed, std::span<uint8_t> plain) {
  const Layout layout(plain.size());
  const size_t map_bytes = layout.map_words * kWide;
  if (narrowed.size() < map_bytes) return false;
  const uint8_t* const map = narrowed.data();
  size_t needed = map_bytes + plain.size();
  for (size_t group = 0; group < layout.groups; ++group)
    if (IsSlim(map, group)) needed -= layout.Integers(group) * kSlim;
  if (narrowed.size() != needed) return false;
  const uint8_t* from = map + map_bytes;
  for (size_t group = 0; group < layout.groups; ++group) {
    const size_t count = layout.Integers(group);
    uint8_t* const to = plain.data() + group * kGroup * kWide;
    if (!IsSlim(map, group)) {
      std::memcpy(to, from, count * kWide);
      from += count * kWide;
      continue;
    }
    count == kGroup ? ToWide(from, to, kGroup) : ToWide(from, to, count);
    from += count * kSlim;
  }
  std::copy_n(from, layout.tail, plain.data() + layout.integers * kWide);
  return true;
}

}  // namespace headrace::reader

#if !defined(__clang__)
#pragma GCC pop_options
#endif
