// Cost: how long (or how many bytes) one visit of a synthetic operator takes, drawn from a
// distribution.
#pragma once
#include <cstdint>
#include <string>

namespace headrace::reader {

class SpecValue;

enum class Distribution : uint8_t { kFixed, kUniform, kExponential, kLognormal };

struct Cost {
  double mean = 0;
  Distribution distribution = Distribution::kFixed;
  double cv = 0;  // coefficient of variation; ignored by fixed, always 1 for exponential, at most
                  // 1/sqrt(3) for uniform

  // Draws the cost for one element: the same `seed` and `stream` give the same value on every
  // thread. Never negative.
  double Draw(uint64_t seed, uint64_t stream) const;
};

// The keys `cv` and `distribution` of a table in a pipeline file.
void ParseRandomness(const SpecValue& table, Cost* cost);

}  // namespace headrace::reader
