#include "workloads/selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "workloads/distributions.h"

namespace headrace::workloads {
namespace {

// Share of all bytes by which the selection may miss its target.
constexpr double kGoodEnough = 0.0005;
constexpr double kTrafficServed = 0.8;
constexpr uint64_t kAttempts = 20;
constexpr int kMaxExchanges = 100;

// One group of features of which `wanted` are used: dense, or all sparse ones.
struct Group {
  std::vector<uint32_t> members;
  uint32_t wanted = 0;
};

double Log(double x) { return PortableLog2(x) * 0.69314718055994530942; }

// Weighted drawing without replacement by Gumbel keys (Efraimidis and Spirakis, "Weighted random
// sampling with a reservoir", 2006): the `wanted` largest of bias * log(bytes) + noise.
void Draw(const Group& group, const std::vector<uint64_t>& bytes, double bias, uint64_t key,
          std::vector<bool>* used) {
  std::vector<std::pair<double, uint32_t>> score;
  for (const uint32_t i : group.members) {
    const double noise = -Log(-Log((Unit(Mix(key, i)) + 0x1p-54)));
    score.emplace_back(bias * Log(static_cast<double>(bytes[i]) + 1) + noise, i);
    (*used)[i] = false;
  }
  std::sort(score.rbegin(), score.rend());
  for (uint32_t i = 0; i < group.wanted; ++i) (*used)[score[i].second] = true;
}

double UsedBytes(const std::vector<bool>& used, const std::vector<uint64_t>& bytes) {
  double sum = 0;
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i]) sum += static_cast<double>(bytes[i]);
  return sum;
}

// Exchanges the used feature and the unused one of a group that bring the sum nearest to `target`.
// False when no exchange helps.
bool ExchangeOnce(const std::vector<Group>& groups, const std::vector<uint64_t>& bytes,
                  double target, std::vector<bool>* used) {
  const double miss = target - UsedBytes(*used, bytes);
  double best = std::abs(miss);
  uint32_t best_out = 0, best_in = 0;
  for (const Group& group : groups) {
    for (const uint32_t out : group.members) {
      if (!(*used)[out]) continue;
      for (const uint32_t in : group.members) {
        if ((*used)[in]) continue;
        const double gain = static_cast<double>(bytes[in]) - static_cast<double>(bytes[out]);
        if (std::abs(miss - gain) < best) {
          best = std::abs(miss - gain);
          best_out = out;
          best_in = in;
        }
      }
    }
  }
  if (best_out == best_in) return false;
  (*used)[best_out] = false;
  (*used)[best_in] = true;
  return true;
}

// The bias just below and the one just above which the drawn features hold `target` bytes.
std::array<double, 2> BiasAround(const std::vector<Group>& groups,
                                 const std::vector<uint64_t>& bytes, double target, uint64_t key) {
  std::vector<bool> used(bytes.size());
  double low = -4, high = 8;
  for (int step = 0; step < 24; ++step) {
    const double bias = (low + high) / 2;
    for (const Group& group : groups) Draw(group, bytes, bias, key, &used);
    (UsedBytes(used, bytes) < target ? low : high) = bias;
  }
  return {low, high};
}

double HotShare(const std::vector<uint32_t>& order, const std::vector<uint64_t>& bytes, double s) {
  double total = 0, traffic = 0;
  std::vector<double> read(order.size());
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto size = static_cast<double>(bytes[order[rank]]);
    read[rank] = size * PortablePow(static_cast<double>(rank + 1), -s);
    total += size;
    traffic += read[rank];
  }
  double served = 0, hot = 0;
  for (size_t rank = 0; rank < order.size() && served < kTrafficServed * traffic; ++rank) {
    served += read[rank];
    hot += static_cast<double>(bytes[order[rank]]);
  }
  return total > 0 ? hot / total : 0;
}

}  // namespace

std::vector<bool> SelectFeatures(const WorkloadSpec& spec, const std::vector<Feature>& features,
                                 const std::vector<uint64_t>& stored_bytes) {
  const FeatureCounts counts = ScaledCounts(spec);
  std::vector<Group> groups(2);
  groups[0].wanted = counts.used_dense;
  groups[1].wanted = counts.used_sparse;
  for (uint32_t i = 0; i < features.size(); ++i)
    groups[features[i].kind == reader::FeatureKind::kDense ? 0 : 1].members.push_back(i);
  const double all =
      static_cast<double>(std::accumulate(stored_bytes.begin(), stored_bytes.end(), uint64_t{0}));
  const double target = spec.bytes_used_ratio * all;
  std::vector<bool> best(features.size());
  double best_miss = all + 1;
  for (uint64_t attempt = 0; attempt < kAttempts && best_miss > kGoodEnough * all; ++attempt) {
    const uint64_t key = Mix(Mix(spec.seed, 0x5e1ec7), attempt);
    // One feature more or less can carry the sum far past the target, so both sides are tried.
    for (const double bias : BiasAround(groups, stored_bytes, target, key)) {
      std::vector<bool> used(features.size());
      for (const Group& group : groups) Draw(group, stored_bytes, bias, key, &used);
      for (int step = 0; step < kMaxExchanges; ++step) {
        if (std::abs(UsedBytes(used, stored_bytes) - target) <= kGoodEnough * all) break;
        if (!ExchangeOnce(groups, stored_bytes, target, &used)) break;
      }
      const double miss = std::abs(UsedBytes(used, stored_bytes) - target);
      if (miss < best_miss) {
        best_miss = miss;
        best = used;
      }
    }
  }
  return best;
}

std::vector<double> Popularity(const WorkloadSpec& spec, const std::vector<bool>& used,
                               const std::vector<uint64_t>& stored_bytes) {
  const auto n = static_cast<uint32_t>(used.size());
  std::vector<uint32_t> order = Permutation(n, Mix(spec.seed, 0x909a1a));
  std::stable_partition(order.begin(), order.end(), [&](uint32_t i) { return used[i]; });
  double low = 0, high = 4;
  for (int step = 0; step < 40; ++step) {
    const double s = (low + high) / 2;
    (HotShare(order, stored_bytes, s) > spec.hot_bytes_ratio ? low : high) = s;
  }
  std::vector<double> popularity(n);
  for (uint32_t rank = 0; rank < n; ++rank)
    popularity[order[rank]] = PortablePow(rank + 1, -(low + high) / 2);
  return popularity;
}

}  // namespace headrace::workloads
