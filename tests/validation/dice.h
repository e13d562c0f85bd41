// Dice: the validation bench's own random numbers (PCG XSH RR, O'Neill 2014), apart from those of
// analysis, so that a fault in one cannot hide in the other.
#pragma once
#include <cmath>
#include <cstdint>

namespace headrace::validation {

enum class Shape : uint8_t { kFixed, kLogNormal, kGamma, kTwoPoint };

class Dice {
 public:
  explicit Dice(uint64_t seed, uint64_t stream = 1) : increment_(2 * stream + 1) {
    Next();
    state_ += seed;
    Next();
  }
  uint32_t Next() {
    const uint64_t old = state_;
    state_ = old * 6364136223846793005u + increment_;
    const auto shifted = static_cast<uint32_t>(((old >> 18) ^ old) >> 27);
    const auto turn = static_cast<uint32_t>(old >> 59);
    return (shifted >> turn) | (shifted << ((-turn) & 31));
  }
  double Uniform() { return (Next() + 0.5) * 0x1.0p-32; }  // (0, 1)
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  int Below(int limit) { return static_cast<int>(Uniform() * limit); }
  bool Chance(double probability) { return Uniform() < probability; }
  double Normal() {  // polar method
    double x, y, square;
    do {
      x = Uniform(-1, 1);
      y = Uniform(-1, 1);
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    return x * std::sqrt(-2 * std::log(square) / square);
  }
  // A draw with that mean and coefficient of variation.
  double Draw(Shape shape, double mean, double cv) {
    if (cv <= 0 || mean <= 0 || shape == Shape::kFixed) return mean;
    switch (shape) {
      case Shape::kGamma:
        return mean * cv * cv * Gamma(1 / (cv * cv));
      case Shape::kTwoPoint: {  // one in ten is slow
        constexpr double kSlow = 0.1;
        const double high = 1 + cv * std::sqrt((1 - kSlow) / kSlow);
        const double low = 1 - cv * std::sqrt(kSlow / (1 - kSlow));
        if (low <= 0) return Draw(Shape::kGamma, mean, cv);
        return mean * (Chance(kSlow) ? high : low);
      }
      default: {
        const double square = std::log(1 + cv * cv);
        return mean * std::exp(std::sqrt(square) * Normal() - square / 2);
      }
    }
  }

 private:
  // A gamma draw with mean and variance `shape` (Marsaglia and Tsang 2000).
  double Gamma(double shape) {
    if (shape < 1) return Gamma(shape + 1) * std::pow(Uniform(), 1 / shape);
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    while (true) {
      const double x = Normal();
      const double v = std::pow(1 + c * x, 3);
      if (v > 0 && std::log(Uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
    }
  }
  uint64_t state_ = 0, increment_;
};

}  // namespace headrace::validation
