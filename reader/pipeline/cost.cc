#include "reader/pipeline/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mix_bits.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {
namespace {

// Uniform in (0, 1), never 0 or 1.
double Uniform(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

}  // namespace

double Cost::Draw(uint64_t seed, uint64_t stream) const {
  const uint64_t first = MixBits(seed ^ MixBits(stream));
  const double u = Uniform(first);
  switch (distribution) {
    case Distribution::kFixed:
      return mean;
    case Distribution::kUniform: {
      const double half_width = std::min(1.0, cv * std::numbers::sqrt3) * mean;
      return mean + (2 * u - 1) * half_width;
    }
    case Distribution::kExponential:
      return -mean * std::log(u);
    case Distribution::kLognormal: {
      // Box-Muller; sigma^2 = ln(1 + cv^2) gives the wanted mean and coefficient of variation.
      const double normal =
          std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * Uniform(MixBits(first)));
      const double variance = std::log1p(cv * cv);
      return mean * std::exp(std::sqrt(variance) * normal - variance / 2);
    }
  }
  return mean;
}

void ParseRandomness(const SpecValue& table, Cost* cost) {
  const std::string name = table.Text("distribution", "");
  const double cv = table.Number("cv", name == "exponential" ? 1 : 0);
  if (cv < 0 || cv > 10) table["cv"].Fail("cv must be from 0 to 10");
  cost->cv = cv;
  const std::vector<std::string> names = {"fixed", "uniform", "exponential", "lognormal"};
  if (name.empty()) {
    cost->distribution = cv > 0 ? Distribution::kLognormal : Distribution::kFixed;
    return;
  }
  auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end())
    table["distribution"].Fail(
        fmt::format("unknown distribution '{}'{}", Printable(name, 40), DidYouMean(name, names)));
  cost->distribution = static_cast<Distribution>(it - names.begin());
}

}  // namespace headrace::reader
