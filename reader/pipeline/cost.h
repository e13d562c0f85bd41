// Cost: how long (or how many bytes) one visit of a synthetic operator takes, drawn from a
// distribution.
#pragma once
#include <cstdint>
#include <string>

namespace headrace::reader {

enum class Distribution : uint8_t { kFixed, kUniform, kExponential, kLognormal };

struct Cost {
  double mean = 0;
  Distribution distribution = Distribution::kFixed;
  double cv = 0;  // coefficient of variation; ignored by fixed, always 1 for exponential, at most
                  // 1/sqrt(3) for uniform

  // The draw of one element: the same `seed` and `stream` give the same value on every thread.
  // Never negative.
  double Draw(uint64_t seed, uint64_t stream) const;
};

// splitmix64's finaliser: a good 64-bit mix of consecutive numbers (Steele, Lea, Flood, OOPSLA
// 2014).
constexpr uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace headrace::reader
