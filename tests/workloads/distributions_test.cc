#include "workloads/distributions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

namespace headrace::workloads {
namespace {

TEST(Distributions, PortableMathAgreesWithTheLibrary) {
  for (uint64_t i = 0; i < 10'000; ++i) {
    const double x = std::ldexp(0.5 + Unit(Mix(i)), static_cast<int>(i % 200) - 100);
    EXPECT_NEAR(PortableLog2(x), std::log2(x), 1e-13 * std::max(1.0, std::abs(std::log2(x)))) << x;
    const double y = 200 * (Unit(Mix(i, 1)) - 0.5);
    EXPECT_NEAR(PortableExp2(y) / std::exp2(y), 1, 1e-13) << y;
  }
  EXPECT_EQ(PortableLog2(8), 3);
  EXPECT_EQ(PortableExp2(-3), 0.125);
}

TEST(Distributions, InverseNormalUndoesTheNormal) {
  for (const double p : {1e-6, 0.001, 0.02, 0.025, 0.3, 0.5, 0.7, 0.99, 1 - 1e-6})
    EXPECT_NEAR(0.5 * std::erfc(-InverseNormal(p) / std::sqrt(2.0)) / p, 1, 1e-7) << p;
}

// Values written down once: a change of these changes every generated table.
TEST(Distributions, ValuesAreFixedForever) {
  EXPECT_EQ(Mix(0), 0xe220a8397b1dcdafULL);
  const Zipf zipf(100'000'000, 1.05);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 1000; ++i) sum = Mix(sum ^ zipf.Rank(Mix(i)));
  for (const double value : LogNormalTable(0.8)) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, 8);
    sum = Mix(sum ^ bits);
  }
  for (int shape = 0; shape < 4; ++shape) {
    const QuantileTable table(static_cast<QuantileTable::Shape>(shape));
    for (uint64_t i = 0; i < 1000; ++i) {
      const float value = table.Draw(Mix(i));
      uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      sum = Mix(sum ^ bits);
    }
  }
  EXPECT_EQ(sum, 3919656254937493721ULL);
}

TEST(Distributions, ZipfHasTheShapeAsked) {
  struct Case {
    uint64_t n;
    double s;
  };
  for (const Case& test :
       {Case{1, 1.1}, Case{7, 1.0}, Case{16'384, 1.1}, Case{100'000'000, 1.05}}) {
    SCOPED_TRACE(test.n);
    const Zipf zipf(test.n, test.s);
    double norm = 0;
    for (uint64_t k = 1; k <= std::min<uint64_t>(test.n, 1'000'000); ++k)
      norm += std::pow(static_cast<double>(k), -test.s);
    if (test.n > 1'000'000)
      norm += (std::pow(1e6, 1 - test.s) - std::pow(static_cast<double>(test.n), 1 - test.s)) /
              (test.s - 1);
    constexpr int kDraws = 400'000;
    std::map<uint64_t, int> count;
    uint64_t largest = 0;
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t rank = zipf.Rank(Mix(i));
      largest = std::max(largest, rank);
      ++count[rank];
    }
    EXPECT_LT(largest, test.n);
    for (uint64_t rank = 0; rank < std::min<uint64_t>(test.n, 20); ++rank) {
      const double expected = kDraws * std::pow(static_cast<double>(rank + 1), -test.s) / norm;
      EXPECT_NEAR(count[rank], expected, 5 * std::sqrt(expected) + 1e-3 * expected) << rank;
    }
  }
}

TEST(Distributions, LogNormalTableHasMeanOneAndAHeavyTail) {
  const std::vector<double> table = LogNormalTable(0.8);
  EXPECT_NEAR(std::accumulate(table.begin(), table.end(), 0.0) / 4096, 1, 1e-12);
  EXPECT_GT(*std::max_element(table.begin(), table.end()), 10);
}

TEST(Distributions, ChangesComeAsOftenAsAsked) {
  EXPECT_TRUE(ChangeTable(0).every_row());
  EXPECT_GT(ChangeTable(1).Gap(0), 1'000'000U);
  for (const double repeat : {0.5, 0.9, 0.95}) {
    const ChangeTable table(repeat);
    double sum = 0;
    for (uint64_t i = 0; i < 256; ++i) sum += table.Gap(i);
    EXPECT_NEAR(256 / sum, 1 - repeat, 0.02 * (1 - repeat)) << repeat;
  }
}

TEST(Distributions, PermutationHoldsEveryNumberOnce) {
  for (const uint32_t n : {0U, 1U, 2U, 1000U}) {
    std::vector<uint32_t> order = Permutation(n, 7);
    std::sort(order.begin(), order.end());
    for (uint32_t i = 0; i < n; ++i) EXPECT_EQ(order[i], i);
  }
}

}  // namespace
}  // namespace headrace::workloads
