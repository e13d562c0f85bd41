#include "analysis/model/simulated_cost.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/statistics/distributions.h"

namespace headrace::analysis {
namespace {

constexpr size_t kNumDraws = 1 << 15, kStrata = 512;
constexpr uint64_t kDrawSeed = 20261126;

// Uniform numbers in [0, 1) of which each kStrata in turn have one in each part of as many, in
// random order: no few thousand of them have a mean that is chance, whatever is made of them.
std::vector<double> Stratified(Random* random) {
  std::vector<double> numbers(kNumDraws);
  for (size_t first = 0; first < kNumDraws; first += kStrata) {
    for (size_t i = 0; i < kStrata; ++i) {
      const size_t other = static_cast<size_t>(random->Below(i + 1));
      numbers[first + i] = numbers[first + other];
      numbers[first + other] = (static_cast<double>(i) + random->Uniform()) / double{kStrata};
    }
  }
  return numbers;
}

struct DrawTable {
  std::vector<double> normal, uniform;
  DrawTable() {
    Random random(kDrawSeed);
    for (const double u : Stratified(&random)) {
      normal.push_back(NormalQuantile(std::max(u, 1e-12)));
    }
    uniform = Stratified(&random);
  }
};

const DrawTable& Draws() {
  static const DrawTable table;
  return table;
}

}  // namespace

SimulatedCost::SimulatedCost(double cv, double slow, uint64_t stream)
    : offset_(Random(stream).Next()) {
  if (slow > 0 && cv > 0) {
    fast_ = 1 - cv * std::sqrt(slow / (1 - slow));
    slow_ = 1 + cv * std::sqrt((1 - slow) / slow);
    if (fast_ > 0) share_ = slow;
  }
  sigma_ = cv > 0 ? std::sqrt(std::log1p(cv * cv)) : 0;
}

double SimulatedCost::Draw(Random* random) const {
  if (share_ > 0) return random->Uniform() < share_ ? slow_ : fast_;
  return sigma_ > 0 ? std::exp(sigma_ * random->Normal() - sigma_ * sigma_ / 2) : 1;
}

double SimulatedCost::Draw(uint64_t firing) const {
  const size_t at = static_cast<size_t>(offset_ + firing) % kNumDraws;
  if (share_ > 0) return Draws().uniform[at] < share_ ? slow_ : fast_;
  return sigma_ > 0 ? std::exp(sigma_ * Draws().normal[at] - sigma_ * sigma_ / 2) : 1;
}

}  // namespace headrace::analysis
