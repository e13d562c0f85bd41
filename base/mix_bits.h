// MixBits: a good 64-bit mix of numbers that differ little.
#pragma once
#include <cstdint>

namespace headrace {

// SplitMix64's step: the golden ratio added, then its finaliser (Steele, Lea, Flood, OOPSLA 2014).
constexpr uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace headrace
