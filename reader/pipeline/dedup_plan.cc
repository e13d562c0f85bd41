#include "reader/pipeline/dedup_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "base/mix_bits.h"
#include "base/registry.h"
#include "reader/dwrf/crypto/decrypt.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/split.h"

namespace headrace::reader {
namespace {

constexpr double kMergeLoss = 0.05;     // share of the saved bytes that a larger group may cost
constexpr size_t kMergeCandidates = 8;  // groups tried for each feature

// Rows per unique row in batches of `batch_rows` rows taken in `order` (empty: as they come).
// is_unique(row) is told of each unique one.
template <typename Unique>
double Factor(const std::vector<uint64_t>& hashes, const std::vector<uint32_t>& order,
              DedupScope scope, uint64_t batch_rows, const Unique& is_unique) {
  if (hashes.empty()) return 1;
  uint64_t unique = 0;
  std::unordered_set<uint64_t> seen;
  uint64_t last = 0;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const size_t row = order.empty() ? i : order[i];
    const uint64_t hash = hashes[row];
    const bool first = i % batch_rows == 0;
    bool is_new = first || hash != last;
    if (scope == DedupScope::kBatch) {
      if (first) seen.clear();
      is_new = seen.insert(hash).second;
    }
    last = hash;
    if (!is_new) continue;
    ++unique;
    is_unique(row);
  }
  return static_cast<double>(hashes.size()) / static_cast<double>(unique);
}

double Factor(const std::vector<uint64_t>& hashes, const std::vector<uint32_t>& order,
              DedupScope scope, uint64_t batch_rows) {
  return Factor(hashes, order, scope, batch_rows, [](size_t) {});
}

// The rows by session and time.
std::vector<uint32_t> ClusteredOrder(const DedupSample& sample) {
  std::vector<uint32_t> order;
  if (sample.sessions.size() != sample.rows) return order;
  order.resize(sample.rows);
  std::iota(order.begin(), order.end(), 0);
  const bool timed = sample.times.size() == sample.rows;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (sample.sessions[a] != sample.sessions[b]) return sample.sessions[a] < sample.sessions[b];
    return timed && sample.times[a] < sample.times[b];
  });
  return order;
}

void Combine(std::vector<uint64_t>* hashes, const std::vector<uint64_t>& more) {
  for (size_t row = 0; row < hashes->size(); ++row)
    (*hashes)[row] = MixBits((*hashes)[row] ^ MixBits(more[row]));
}

// "sparse:17" and "sparse:20" -> "sparse:17+20"; long ones are cut.
std::string GroupName(const std::vector<std::string>& keys) {
  std::string name = keys.front();
  const size_t colon = name.find(':');
  const std::string map = colon == std::string::npos ? "" : name.substr(0, colon + 1);
  for (size_t i = 1; i < keys.size(); ++i) {
    const bool same = !map.empty() && keys[i].starts_with(map);
    const std::string part = "+" + (same ? keys[i].substr(map.size()) : keys[i]);
    if (name.size() + part.size() > 40) return name + fmt::format("+{} more", keys.size() - i);
    name += part;
  }
  return name;
}

struct Measurer {
  const DedupSample& sample;
  DedupScope scope;
  uint64_t batch_rows;
  std::vector<uint32_t> clustered;

  std::vector<uint64_t> Hashes(const std::vector<size_t>& features) const {
    std::vector<uint64_t> hashes = sample.features[features[0]].hashes;
    for (size_t i = 1; i < features.size(); ++i)
      Combine(&hashes, sample.features[features[i]].hashes);
    return hashes;
  }

  DedupFactor Measure(std::vector<size_t> features) const {
    std::sort(features.begin(), features.end());
    DedupFactor factor;
    for (const size_t i : features) {
      factor.keys.push_back(sample.features[i].name);
      factor.bytes += sample.features[i].bytes;
    }
    factor.weighted = sample.features[features[0]].weighted;
    factor.name = GroupName(factor.keys);
    const std::vector<uint64_t> hashes = Hashes(features);
    uint64_t unique_bytes = 0;
    factor.now = Factor(hashes, {}, scope, batch_rows, [&](size_t row) {
      for (const size_t i : features)
        unique_bytes += sample.features[i].sizes[row] + sizeof(uint32_t);
    });
    const uint64_t inverse = sample.rows * sizeof(uint32_t);
    factor.bytes_now = static_cast<double>(std::max<uint64_t>(factor.bytes, 1)) /
                       static_cast<double>(std::max<uint64_t>(unique_bytes + inverse, 1));
    if (!clustered.empty()) factor.clustered = Factor(hashes, clustered, scope, batch_rows);
    return factor;
  }
};

// Bytes that a group with this factor saves, less its inverse.
double Saved(uint64_t bytes, double factor, uint64_t rows) {
  return static_cast<double>(bytes) * (1 - 1 / factor) -
         static_cast<double>(rows * sizeof(uint32_t));
}

struct Merging {
  std::vector<size_t> features;
  std::vector<uint64_t> hashes;
  uint64_t bytes = 0;
  double factor = 1, saved = 0;
};

std::vector<std::vector<size_t>> MeasuredGroups(const Measurer& measurer, bool by_clustered,
                                                const std::function<bool()>& give_up) {
  const DedupSample& sample = measurer.sample;
  const std::vector<uint32_t> order = by_clustered ? measurer.clustered : std::vector<uint32_t>();
  const auto factor = [&](const std::vector<uint64_t>& hashes) {
    return Factor(hashes, order, measurer.scope, measurer.batch_rows);
  };
  std::vector<Merging> single;
  for (size_t i = 0; i < sample.features.size(); ++i) {
    if (give_up && give_up()) return {};
    Merging one{{i}, sample.features[i].hashes, sample.features[i].bytes, 1, 0};
    one.factor = factor(one.hashes);
    one.saved = Saved(one.bytes, one.factor, sample.rows);
    single.push_back(std::move(one));
  }
  std::stable_sort(single.begin(), single.end(),
                   [](const Merging& a, const Merging& b) { return a.factor > b.factor; });
  std::vector<Merging> groups;
  for (Merging& feature : single) {
    if (give_up && give_up()) return {};
    // The groups made last have the nearest factors.
    Merging* best = nullptr;
    Merging merged;
    double gain = 0;
    const size_t from = groups.size() > kMergeCandidates ? groups.size() - kMergeCandidates : 0;
    for (size_t g = from; g < groups.size(); ++g) {
      if (sample.features[groups[g].features[0]].weighted !=
          sample.features[feature.features[0]].weighted)
        continue;
      Merging both = groups[g];
      both.features.push_back(feature.features[0]);
      Combine(&both.hashes, feature.hashes);
      both.bytes += feature.bytes;
      both.factor = factor(both.hashes);
      both.saved = Saved(both.bytes, both.factor, sample.rows);
      const double apart = std::max(groups[g].saved, 0.0) + std::max(feature.saved, 0.0);
      const double now = both.saved - (1 - kMergeLoss) * apart;
      if (both.saved <= 0 || now < gain) continue;
      gain = now;
      best = &groups[g];
      merged = std::move(both);
    }
    if (best != nullptr) {
      *best = std::move(merged);
    } else {
      groups.push_back(std::move(feature));
    }
  }
  std::vector<std::vector<size_t>> features;
  for (const Merging& group : groups) features.push_back(group.features);
  return features;
}

std::vector<std::vector<size_t>> GivenGroups(const DedupSample& sample,
                                             const DedupOptions& options) {
  std::map<std::string, size_t> place;
  std::vector<std::string> names;
  for (size_t i = 0; i < sample.features.size(); ++i) {
    place[sample.features[i].name] = i;
    names.push_back(sample.features[i].name);
  }
  std::vector<std::vector<size_t>> groups;
  std::set<size_t> taken;
  for (const std::vector<std::string>& keys : options.groups) {
    std::vector<size_t>& group = groups.emplace_back();
    for (const std::string& key : keys) {
      const auto found = place.find(key);
      if (found == place.end()) {
        const std::string nearest = NearestName(key, names);
        throw Error(
            ExitCode::kUsage,
            fmt::format("there is no sparse feature '{}' to deduplicate", Printable(key)),
            "dedup.groups",
            nearest.empty() ? "add it to [projection.maps]" : "did you mean '" + nearest + "'?");
      }
      if (!taken.insert(found->second).second)
        throw Error(ExitCode::kUsage, fmt::format("feature '{}' is in two groups", Printable(key)),
                    "dedup.groups");
      group.push_back(found->second);
      if (sample.features[group[0]].weighted != sample.features[found->second].weighted)
        throw Error(
            ExitCode::kUsage,
            fmt::format("the group of '{}' has features with weights and without", Printable(key)),
            "dedup.groups", "make a group of each kind");
    }
  }
  return groups;
}

}  // namespace

void AddToSample(const FlatMapBatch& batch, const std::string& session, const std::string& time,
                 DedupSample* sample) {
  if (sample->features.empty())
    for (const SparseColumn& column : batch.sparse)
      sample->features.push_back(
          {column.name, column.weighted || !column.weights.empty(), {}, {}, 0});
  for (size_t i = 0; i < batch.sparse.size(); ++i) {
    const SparseColumn& column = batch.sparse[i];
    DedupSample::Feature& feature = sample->features[i];
    feature.bytes += ListBytes(column);
    feature.hashes.reserve(feature.hashes.size() + batch.rows);
    for (uint64_t row = 0; row < batch.rows; ++row) {
      const uint32_t begin = column.offsets[row], length = column.offsets[row + 1] - begin;
      uint64_t hash = HashBytes(column.values.data() + begin, length * sizeof(int64_t),
                                length * 2 + column.present.Get(row));
      if (!column.weights.empty())
        hash = HashBytes(column.weights.data() + begin, length * sizeof(float), hash);
      feature.hashes.push_back(hash);
      const size_t width = sizeof(int64_t) + (column.weights.empty() ? 0 : sizeof(float));
      feature.sizes.push_back(static_cast<uint32_t>(length * width));
    }
  }
  for (const ScalarColumn& column : batch.scalars) {
    if (column.is_float) continue;
    if (column.name == session)
      sample->sessions.insert(sample->sessions.end(), column.integers.begin(),
                              column.integers.end());
    if (column.name == time)
      sample->times.insert(sample->times.end(), column.integers.begin(), column.integers.end());
  }
  sample->rows += batch.rows;
}

DedupFactor MeasureGroup(const DedupSample& sample, const std::vector<size_t>& features,
                         DedupScope scope, uint64_t batch_rows) {
  return Measurer{sample, scope, batch_rows, ClusteredOrder(sample)}.Measure(features);
}

std::vector<DedupFactor> MeasureGroups(const DedupSample& sample, const DedupOptions& options,
                                       uint64_t batch_rows, bool by_clustered,
                                       const std::function<bool()>& give_up) {
  const Measurer measurer{sample, options.scope, batch_rows, ClusteredOrder(sample)};
  const std::vector<std::vector<size_t>> groups =
      options.groups.empty()
          ? MeasuredGroups(measurer, by_clustered && !measurer.clustered.empty(), give_up)
          : GivenGroups(sample, options);
  std::vector<DedupFactor> factors;
  for (const std::vector<size_t>& group : groups) {
    if (give_up && give_up()) return {};
    factors.push_back(measurer.Measure(group));
  }
  return factors;
}

FlatMapBatch ReadSplit(const Table& table, const Split& split, const dwrf::Projection& projection) {
  const auto& file = table.files[split.file_index];
  FetchedStripe fetched =
      Fetch(dwrf::MakePlan(*file, file->ReadStripe(split.stripe), projection), file->source(), {});
  FlatMapBatch batch =
      dwrf::Extract(dwrf::Decode(dwrf::Decompress(dwrf::Decrypt(std::move(fetched)))));
  batch.first_row = split.first_row;
  return batch;
}

DedupPlan PlanDedup(const Table& table, const dwrf::Projection& projection,
                    const DedupOptions& options, uint64_t batch_rows, bool skip_corrupt) {
  DedupPlan plan;
  plan.scope = options.scope;
  if (options.mode == DedupMode::kOff || table.splits.empty()) return plan;
  DedupSample sample;
  const size_t count = std::min(kSampleSplits, table.splits.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t end = (i + 1) * table.splits.size() / count;
    for (size_t split = i * table.splits.size() / count; split < end; ++split) {
      if (table.splits[split].rows == 0) continue;
      try {
        AddToSample(ReadSplit(table, table.splits[split], projection), {}, {}, &sample);
        break;
      } catch (const Error& error) {
        if (!skip_corrupt || error.code() != ExitCode::kBadData) throw;
      }
    }
  }
  if (sample.rows == 0) return plan;  // all of it is damaged, or without rows
  for (DedupFactor& group : MeasureGroups(sample, options, batch_rows))
    if (options.mode == DedupMode::kOn ||
        std::min(group.now, group.bytes_now) >= options.min_factor) {
      // Long names are cut and may meet.
      for (const DedupFactor& other : plan.groups)
        if (other.name == group.name) group.name += fmt::format("#{}", plan.groups.size());
      plan.groups.push_back(std::move(group));
    }
  return plan;
}

DedupBytes Deduplicate(const DedupPlan& plan, size_t g, FlatMapBatch* batch, RowHash hash) {
  const DedupFactor& group = plan.groups[g];
  std::vector<size_t> columns;
  for (size_t i = 0, key = 0; i < batch->sparse.size() && key < group.keys.size(); ++i) {
    if (batch->sparse[i].name != group.keys[key]) continue;
    columns.push_back(i);
    ++key;
  }
  return Deduplicate(batch, group.name, columns, plan.scope, hash);
}

}  // namespace headrace::reader
