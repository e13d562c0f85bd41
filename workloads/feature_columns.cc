#include "workloads/feature_columns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

namespace headrace::workloads {
namespace {

using reader::FeatureKind;

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
constexpr uint64_t kSmallIds = 16'384, kMediumIds = 100'000'000, kLargeIds = 500'000'000;
constexpr double kLongestScale = 4;
constexpr double kMostOwed = 1.5;      // a feature makes up for others by at most this factor
constexpr double kLongestList = 8191;  // half of the small ids, which the keys of a map must share

// Rows by the 4096 draws that they may have.
class RowsByDraw {
 public:
  void Add(uint32_t draw, uint32_t rows) {
    uint64_t& word = drawn_[draw / 64];
    const uint64_t bit = uint64_t{1} << draw % 64;
    rows_[draw] = (word & bit ? rows_[draw] : 0) + rows;
    word |= bit;
  }
  // Takes draws from the lowest while the rows come closer to `wanted`; the draws below the one
  // returned, and their rows. Draws without rows are taken until there are enough.
  std::pair<uint32_t, double> Fill(double wanted) const {
    double present = 0;
    uint32_t below = 0;
    for (uint32_t word = 0; word < drawn_.size(); ++word) {
      for (uint64_t left = drawn_[word]; left != 0; left &= left - 1) {
        const uint32_t draw = word * 64 + static_cast<uint32_t>(std::countr_zero(left));
        if (present > wanted) return {below, present};
        if (present + rows_[draw] / 2.0 > wanted) return {draw, present};
        present += rows_[draw];
        below = draw + 1;
      }
    }
    return {present > wanted ? below : kDraws, present};
  }

 private:
  static constexpr uint32_t kDraws = 4096;
  std::array<uint32_t, kDraws> rows_;  // set where drawn_ is: most partitions draw few
  std::array<uint64_t, kDraws / 64> drawn_{};
};

}  // namespace

DrawTables::DrawTables(const WorkloadSpec& spec)
    : lengths(LogNormalTable(spec.list_length_sigma)), mean_length(spec.list_length_mean) {
  for (int shape = 0; shape < 4; ++shape)
    shapes.emplace_back(static_cast<QuantileTable::Shape>(shape));
  ids.emplace_back(kSmallIds, 1.1);
  ids.emplace_back(kMediumIds, 1.05);
  ids.emplace_back(kLargeIds, 1.05);
}

FeatureColumns::FeatureColumns(Feature feature, std::shared_ptr<const DrawTables> tables)
    : feature_(feature), tables_(std::move(tables)), changes_(feature.repeat) {}

uint64_t FeatureColumns::SessionKey(uint64_t session_key) const {
  return Mix(feature_.random_key ^ session_key);
}

uint32_t FeatureColumns::Version(uint64_t key, uint32_t visit) const {
  if (changes_.every_row()) return visit;
  uint64_t random = Mix(key + kGolden);
  uint32_t version = 0;
  for (uint64_t next = changes_.Gap(random); next <= visit; next += changes_.Gap(random)) {
    ++version;
    random = version % 8 == 0 ? Mix(key + (version + 1) * kGolden) : random >> 8;
  }
  return version;
}

uint64_t FeatureColumns::ValueKey(uint64_t key, uint32_t version) {
  return Mix(key ^ (0xd6e8feb86659fd93ULL * (version + 1)));
}

uint32_t FeatureColumns::Length(uint64_t value_key) const {
  const double draw = tables_->lengths[value_key >> 40 & 0xfff];
  const double rounding = static_cast<double>(value_key >> 20 & 0xfffff) * 0x1p-20;
  const double more = (feature_.mean_length - 1) * correction_.length_scale * draw + rounding;
  return 1 + static_cast<uint32_t>(std::min(more, kLongestList));
}

std::vector<FeatureColumns::Segment> FeatureColumns::Segments(const SessionRows& partition) const {
  std::vector<Segment> segments;
  segments.reserve(partition.session_sizes.size());  // one at least of each
  for (size_t s = 0; s < partition.session_sizes.size(); ++s) {
    const uint64_t key = SessionKey(partition.session_keys[s]);
    uint32_t last = UINT32_MAX;
    for (uint32_t visit = 0; visit < partition.session_sizes[s]; ++visit) {
      const uint32_t version = Version(key, visit);
      if (version != last) segments.push_back({ValueKey(key, version), 0});
      last = version;
      ++segments.back().rows;
    }
  }
  return segments;
}

void FeatureColumns::StartPartition(const SessionRows& partition, Owed* owed) {
  std::vector<Segment> segments = Segments(partition);
  RowsByDraw rows_by_draw;
  for (const Segment& segment : segments)
    rows_by_draw.Add(static_cast<uint32_t>(segment.value_key >> 52), segment.rows);
  const auto all_rows = static_cast<double>(partition.rows.size());
  const double wanted = std::clamp(feature_.coverage * all_rows + owed->rows, 0.0, all_rows);
  const auto [below, present] = rows_by_draw.Fill(wanted);
  correction_.present_below = below;
  owed->rows += feature_.coverage * all_rows - present;
  if (feature_.kind == FeatureKind::kDense) return;
  std::erase_if(segments, [limit = below](const Segment& s) { return s.value_key >> 52 >= limit; });
  CorrectLengths(segments, present, owed);
  owed->ids -=
      (feature_.mean_length - tables_->mean_length) * (present - feature_.coverage * all_rows);
}

void FeatureColumns::CorrectLengths(const std::vector<Segment>& segments, double present,
                                    Owed* owed) {
  correction_.length_scale = 1;
  double drawn = 0;
  for (const Segment& segment : segments)
    drawn += segment.rows * tables_->lengths[segment.value_key >> 40 & 0xfff];
  const double ideal = present * feature_.mean_length;
  const double wanted = std::clamp(ideal + owed->ids, ideal / kMostOwed, ideal * kMostOwed);
  if (drawn > 0 && feature_.mean_length > 1)
    correction_.length_scale = std::clamp((wanted - present) / (drawn * (feature_.mean_length - 1)),
                                          1 / kLongestScale, kLongestScale);
  double ids = 0;
  for (const Segment& segment : segments)
    ids += static_cast<double>(segment.rows) * Length(segment.value_key);
  owed->ids += ideal - ids;
}

int64_t FeatureColumns::Id(uint64_t random) const {
  const uint64_t rank = tables_->ids[static_cast<size_t>(feature_.ids)].Rank(random);
  if (feature_.ids == IdClass::kSmall) return static_cast<int64_t>(rank);
  const uint64_t scattered = Mix(rank);  // one id space for all features, as for real entities
  if (feature_.ids == IdClass::kMedium) return static_cast<int64_t>(scattered & 0x7ffffff);
  return static_cast<int64_t>(scattered >> 1);
}

// Inner keys of a map are distinct: a repeated id is drawn again, and taken from the rest of the
// list's own number space when the draws keep repeating.
void FeatureColumns::MakeDistinct(size_t first, uint64_t value_key,
                                  std::vector<int64_t>* ids) const {
  const auto begin = ids->begin() + static_cast<int64_t>(first);
  for (auto it = begin; it != ids->end(); ++it) {
    for (uint64_t attempt = 1; std::find(begin, it, *it) != it; ++attempt) {
      const uint64_t random = Mix(value_key, attempt * 0x10001 + static_cast<uint64_t>(it - begin));
      *it = attempt <= 8                      ? Id(random)
            : feature_.ids == IdClass::kSmall ? static_cast<int64_t>((*it + 1) % kSmallIds)
                                              : static_cast<int64_t>(random & 0x7ffffff);
    }
  }
}

void FeatureColumns::AppendList(uint64_t session_key, uint64_t value_key, uint32_t version,
                                uint32_t length, FeatureBlock* block) const {
  const size_t first = block->integers.size();
  block->integers.resize(first + length);
  int64_t* out = block->integers.data() + first;
  // A history list shows the newest ids first: ids version + length - 1 down to version of the
  // session's own sequence, so consecutive versions overlap. Others start a sequence per value.
  const uint64_t base = feature_.history ? session_key + kGolden * (version + 1024ULL) : value_key;
  const uint64_t step = feature_.history ? 0 - kGolden : kGolden;
  for (uint32_t i = 0; i < length; ++i) out[i] = Id(Mix(base + step * (i + 1)));
  if (feature_.kind != FeatureKind::kWeightedSparse) return;
  MakeDistinct(first, value_key, &block->integers);
  const QuantileTable& weights = tables_->shapes[static_cast<size_t>(QuantileTable::Shape::kRatio)];
  for (uint32_t i = 0; i < length; ++i)
    block->floats.push_back(weights.Draw(Mix(value_key + ~kGolden * (i + 1))));
}

void FeatureColumns::Fill(const SessionRows& partition, uint64_t first, uint64_t count,
                          FeatureBlock* block) const {
  block->present.assign((count + 63) / 64, 0);
  block->lengths.clear();
  block->integers.clear();
  block->floats.clear();
  const QuantileTable& shape = tables_->shapes[static_cast<size_t>(feature_.shape)];
  for (uint64_t row = 0; row < count; ++row) {
    const SessionRow& at = partition.rows[first + row];
    const uint64_t key = SessionKey(partition.session_keys[at.session]);
    const uint32_t version = Version(key, at.visit);
    const uint64_t value_key = ValueKey(key, version);
    if (value_key >> 52 >= correction_.present_below) continue;
    block->present[row >> 6] |= 1ULL << (row & 63);
    if (feature_.kind == FeatureKind::kDense) {
      block->floats.push_back(shape.Draw(Mix(value_key)));
      continue;
    }
    const uint32_t length = Length(value_key);
    block->lengths.push_back(length);
    AppendList(key, value_key, version, length, block);
  }
}

}  // namespace headrace::workloads
