// Random numbers and distributions that give the same bytes on every machine and library version.
//
// Randomness is counter-based: a value is Mix(key), a pure function of what it belongs to, so any
// row can be made without those before it. Arithmetic is 64-bit integers and IEEE double + - * /
// and square root, which are correctly rounded everywhere; logarithm and power are computed from
// those, because libm differs between versions. All functions are thread-safe.
#pragma once
#include <cstdint>
#include <vector>

namespace headrace::workloads {

// Finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014): a bijection of 64 bits.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
inline uint64_t Mix(uint64_t key, uint64_t part) { return Mix(Mix(key) ^ part); }
// [0, 1), 53 bits.
inline double Unit(uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

double PortableLog2(double x);           // x > 0; relative error below 1e-14
double PortableExp2(double x);           // |x| < 1000
double PortablePow(double x, double y);  // x >= 0
double InverseNormal(double p);          // 0 < p < 1; relative error below 2e-9

// 0..n-1 in an order fixed by `key`.
std::vector<uint32_t> Permutation(uint32_t n, uint64_t key);

// Ranks 0..n-1 with probability proportional to (rank + 1)^-s. The first 64 ranks are exact;
// beyond, each eighth of an octave is uniform inside, which bounds the error of one rank's
// probability by 6 %. One table look-up per draw (Walker's alias method).
class Zipf {
 public:
  Zipf(uint64_t n, double s);  // 1 <= n < 2^32
  uint64_t Rank(uint64_t random) const {
    const Slot& slot = slots_[random >> 54];
    const auto coin = static_cast<uint32_t>(random >> 32) & 0x3fffff;
    const Range& range = ranges_[coin < slot.threshold ? slot.first : slot.other];
    return range.low + ((random & 0xffffffff) * range.width >> 32);
  }

 private:
  struct Range {
    uint64_t low, width;
  };
  struct Slot {
    uint32_t threshold;  // of 2^22
    uint16_t first, other;
  };
  std::vector<Range> ranges_;
  std::vector<Slot> slots_;  // 1024
};

// 4096 equally likely values of a log-normal distribution with mean exactly 1.
std::vector<double> LogNormalTable(double sigma);

// A distribution given by its values at equally spaced probabilities, linear between: 4097 entries.
class QuantileTable {
 public:
  enum class Shape : uint8_t { kCount, kRatio, kHundredths, kNormal };
  explicit QuantileTable(Shape shape);
  float Draw(uint64_t random) const {
    const uint64_t i = random >> 52;
    const double share = static_cast<double>((random >> 20) & 0xffffffff) * 0x1p-32;
    return Finish(points_[i] + (points_[i + 1] - points_[i]) * share);
  }

 private:
  float Finish(double value) const;
  Shape shape_;
  std::vector<double> points_;
};

// Distance from one change to the next, at least 1, when a value repeats with probability d from
// row to row: 256 equally likely values of the geometric distribution.
class ChangeTable {
 public:
  explicit ChangeTable(double repeat_probability);
  uint32_t Gap(uint64_t random_byte) const { return gaps_[random_byte & 255]; }
  bool every_row() const { return every_row_; }

 private:
  bool every_row_;
  std::vector<uint32_t> gaps_;
};

}  // namespace headrace::workloads
