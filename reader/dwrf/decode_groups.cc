#include "reader/dwrf/decode_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "base/error.h"
#include "probes/account/scope.h"
#include "reader/dwrf/decode/bool_expand.h"
#include "reader/dwrf/decode/presence_expand.h"
#include "reader/dwrf/decode/rle_simd.h"
#include "reader/dwrf/decode/unique_lists.h"
#include "reader/dwrf/decode/varint_simd.h"

namespace headrace::reader::dwrf {
namespace {

constexpr uint32_t kNone = NodePlan::kNone, kNoList = UINT32_MAX;
// One byte of a stream of runs holds at most this many values.
constexpr uint64_t kMaxValuesPerByte = 130;

// The streams of a stripe, each checked against what is expected of it.
class Streams {
 public:
  Streams(const StripePlan& plan, const std::vector<std::span<const uint8_t>>& streams)
      : plan_(plan), streams_(streams) {}

  [[noreturn]] void TooShort(uint32_t stream, uint64_t count) const {
    throw Error(ExitCode::kBadData,
                fmt::format("its {} bytes do not hold the {} values expected",
                            streams_[stream].size(), count),
                plan_.Where(stream),
                fmt::format("the file is damaged (try 'headrace inspect {}')", plan_.file));
  }
  // The stream of a node that must be there because there are values.
  std::span<const uint8_t> Need(uint32_t stream, const NodePlan& node, const char* kind,
                                uint64_t count) const {
    if (stream != kNone) return streams_[stream];
    throw Error(ExitCode::kBadData,
                fmt::format("stream {} of node {}, sequence {} is missing, {} values expected",
                            kind, node.node, node.sequence, count),
                fmt::format("{}: stripe {}", plan_.file, plan_.stripe_index),
                "the file is damaged");
  }
  void Bits(uint32_t stream, uint64_t count, PresenceBits* out) const {
    const std::span<const uint8_t> bytes = streams_[stream];
    if (count / 8 > bytes.size() * kMaxValuesPerByte) TooShort(stream, count);
    out->words.resize(NumWords(count));
    if (!DecodeBits(bytes, count, out->words.data())) TooShort(stream, count);
    out->count = CountBits(out->words.data(), out->words.size());
  }
  uint64_t Lengths(const NodePlan& node, uint64_t count, Array<uint32_t>* out) const {
    out->resize(count + kDecodeSlack);
    if (count == 0) return 0;
    const std::span<const uint8_t> bytes = Need(node.length, node, "LENGTH", count);
    const IntegerFormat format{false,
                               static_cast<uint8_t>(plan_.streams[node.length].use_vints ? 0 : 4)};
    uint64_t total = 0;
    if (DecodeLengths(bytes.data(), bytes.data() + bytes.size(), count, format, out->data(),
                      &total) == nullptr ||
        total > UINT32_MAX)
      TooShort(node.length, count);
    return total;
  }
  IntegerFormat Format(const NodePlan& node) const {
    const int width = node.kind == TypeKind::kShort ? 2 : node.kind == TypeKind::kInt ? 4 : 8;
    return {true, static_cast<uint8_t>(plan_.streams[node.data].use_vints ? 0 : width)};
  }

  // Rows that have the feature.
  PresenceBits Rows(const FeaturePlan& feature, const PresenceBits* map_present) const {
    PresenceBits rows, values;
    rows.words.resize(NumWords(plan_.rows), 0);
    const uint64_t maps = map_present == nullptr ? plan_.rows : map_present->count;
    if (!feature.in_stripe || maps == 0) return rows;
    PresenceBits in_map;
    Need(feature.in_map, feature.value, "IN_MAP", maps);
    Bits(feature.in_map, maps, &in_map);
    if (map_present == nullptr) {
      rows = std::move(in_map);
    } else {
      rows.count = in_map.count;
      DepositBits(in_map.words.data(), in_map.words.size(), map_present->words.data(),
                  rows.words.size(), rows.words.data());
    }
    if (feature.value.present == kNone) return rows;
    Bits(feature.value.present, rows.count, &values);
    DepositBits(values.words.data(), values.words.size(), rows.words.data(), rows.words.size(),
                rows.words.data());
    rows.count = values.count;
    return rows;
  }

 private:
  const StripePlan& plan_;
  const std::vector<std::span<const uint8_t>>& streams_;
};

// One feature of a group: where its lists are encoded.
struct EncodedLists {
  uint32_t feature = 0;  // of the plan
  bool weighted = false;
  PresenceBits present;     // over rows
  Array<uint32_t> lengths;  // of the lists of present rows
  size_t lists = 0;
  const uint8_t* ids = nullptr;
  IntegerFormat format;
  std::vector<uint64_t> starts;   // bytes of list i: [starts[i], starts[i + 1]) behind `ids`
  std::vector<uint64_t> changed;  // bit i: list i differs from list i - 1
  const uint8_t* weights = nullptr;
  std::vector<uint32_t> entries;  // weights of list i: [entries[i], entries[i + 1])
  std::vector<uint32_t> list_of;  // of each row; kNoList: absent. Where rows are looked up

  bool SameList(uint32_t a, uint32_t b) const {
    if (a == kNoList || b == kNoList) return a == b;
    const uint64_t size = starts[a + 1] - starts[a];
    return lengths[a] == lengths[b] && size == starts[b + 1] - starts[b] &&
           std::memcmp(ids + starts[a], ids + starts[b], size) == 0 && SameWeights(a, b);
  }
  bool SameWeights(uint32_t a, uint32_t b) const {
    return weights == nullptr || std::memcmp(weights + size_t{entries[a]} * sizeof(float),
                                             weights + size_t{entries[b]} * sizeof(float),
                                             size_t{lengths[a]} * sizeof(float)) == 0;
  }
};

bool CanCompare(const FeaturePlan& feature) {
  if (feature.map != kNone || feature.kind == FeatureKind::kDense) return false;
  if (!feature.in_stripe) return true;
  const NodePlan& item = feature.item;
  const bool plain = item.present == kNone && item.encoding != EncodingKind::kDictionary &&
                     (item.kind == TypeKind::kShort || item.kind == TypeKind::kInt ||
                      item.kind == TypeKind::kLong);
  return plain && (feature.kind == FeatureKind::kSparse ||
                   (feature.weight.kind == TypeKind::kFloat && feature.weight.present == kNone));
}

class GroupDecoder {
 public:
  GroupDecoder(const StripePlan& plan, const std::vector<std::span<const uint8_t>>& streams,
               const std::vector<const PresenceBits*>& map_present, const GroupRequests& requests)
      : plan_(plan), streams_(plan, streams), map_present_(map_present), requests_(requests) {}

  void Decode(const GroupRequest& request, const std::vector<uint32_t>& features,
              GroupedFeatures* out) {
    std::vector<EncodedLists> lists;
    DedupGroup group;
    uint64_t expanded = 0;
    {
      account::OperatorScope scope(request.account);
      for (const uint32_t feature : features) lists.push_back(Open(feature));
      group.name = request.name;
      first_rows_.clear();
      if (requests_.scope == DedupScope::kNeighbours) {
        Neighbours(lists, &group);
      } else {
        WholeBatch(&lists, &group);
      }
    }
    uint64_t unique = group.inverse.size() * sizeof(uint32_t);
    for (EncodedLists& one : lists) {
      uint64_t elements = 0;
      for (size_t i = 0; i < one.lists; ++i) elements += one.lengths[i];
      expanded += elements * (sizeof(int64_t) + (one.weighted ? sizeof(float) : 0)) +
                  (plan_.rows + 1) * sizeof(uint32_t);
      out->columns.push_back(Unique(one));
      out->columns.back().group = static_cast<int32_t>(out->groups.size());
      out->features.push_back(one.feature);
      unique += ListBytes(out->columns.back());
    }
    hr_done(request.account, 1, plan_.rows, expanded, unique);
    out->decoded_bytes += unique;
    out->groups.push_back(std::move(group));
  }

 private:
  EncodedLists Open(uint32_t index) {
    const FeaturePlan& feature = plan_.features[index];
    EncodedLists lists;
    lists.feature = index;
    lists.weighted = feature.kind == FeatureKind::kWeightedSparse;
    lists.present = streams_.Rows(feature, map_present_[index]);
    lists.lists = lists.present.count;
    const uint64_t elements = streams_.Lengths(feature.value, lists.lists, &lists.lengths);
    lists.starts.resize(lists.lists + 1, 0);
    lists.changed.resize(NumWords(lists.lists), 0);
    lists.entries.resize(lists.lists + 1, 0);
    if (lists.lists == 0) return lists;
    static const uint8_t kNothing[1] = {};
    std::span<const uint8_t> bytes(kNothing, 0);
    if (elements > 0) {
      bytes = streams_.Need(feature.item.data, feature.item, "DATA", elements);
      lists.format = streams_.Format(feature.item);
    }
    lists.ids = bytes.data();
    const std::span<const uint32_t> lengths(lists.lengths.data(), lists.lists);
    if (!FindChangedLists(bytes.data(), bytes.data() + bytes.size(), lists.format.fixed_width,
                          lengths, lists.starts.data(), lists.changed.data()))
      streams_.TooShort(feature.item.data, elements);
    if (!lists.weighted || elements == 0) return lists;
    const std::span<const uint8_t> weights =
        streams_.Need(feature.weight.data, feature.weight, "DATA", elements);
    if (weights.size() / sizeof(float) < elements) streams_.TooShort(feature.weight.data, elements);
    lists.weights = weights.data();
    for (size_t i = 0; i < lists.lists; ++i) {
      lists.entries[i + 1] = lists.entries[i] + lists.lengths[i];
      if ((lists.changed[i >> 6] >> (i & 63) & 1) == 0 &&
          !lists.SameWeights(static_cast<uint32_t>(i), static_cast<uint32_t>(i - 1)))
        lists.changed[i >> 6] |= uint64_t{1} << (i & 63);
    }
    return lists;
  }

  // A row is unique where any feature came, went or changed.
  void Neighbours(const std::vector<EncodedLists>& lists, DedupGroup* group) {
    const size_t words = NumWords(plan_.rows);
    std::vector<uint64_t> changed(words, 0), spread(words);
    for (const EncodedLists& one : lists) {
      const auto& present = one.present.words;
      DepositBits(one.changed.data(), one.changed.size(), present.data(), words, spread.data());
      uint64_t before = 0;
      for (size_t w = 0; w < words; ++w) {
        changed[w] |= spread[w] | (present[w] ^ (present[w] << 1 | before));
        before = present[w] >> 63;
      }
    }
    if (words > 0) changed[0] |= 1;
    group->inverse.resize(plan_.rows);
    for (uint64_t row = 0; row < plan_.rows; ++row) {
      if (changed[row >> 6] >> (row & 63) & 1) first_rows_.push_back(static_cast<uint32_t>(row));
      group->inverse[row] = static_cast<uint32_t>(first_rows_.size() - 1);
    }
    group->unique_rows = static_cast<uint32_t>(first_rows_.size());
  }

  void WholeBatch(std::vector<EncodedLists>* lists, DedupGroup* group) {
    for (EncodedLists& one : *lists) FindLists(&one);
    const auto hash = [&](uint32_t row) {
      uint64_t sum = 0;
      for (const EncodedLists& one : *lists) {
        const uint32_t list = one.list_of[row];
        sum = sum * 0x9e3779b97f4a7c15u + 1 + (list == kNoList ? 0 : 1 + one.lengths[list]);
        if (list == kNoList || one.lengths[list] == 0) continue;
        sum = requests_.hash(one.ids + one.starts[list], one.starts[list + 1] - one.starts[list],
                             sum);
        if (one.weights != nullptr)
          sum = requests_.hash(one.weights + size_t{one.entries[list]} * sizeof(float),
                               size_t{one.lengths[list]} * sizeof(float), sum);
      }
      return sum;
    };
    const auto same = [&](uint32_t a, uint32_t b) {
      return std::all_of(lists->begin(), lists->end(), [&](const EncodedLists& one) {
        return one.SameList(one.list_of[a], one.list_of[b]);
      });
    };
    RowClasses classes = ClassifyByHash(plan_.rows, hash, same);
    group->unique_rows = static_cast<uint32_t>(classes.first_row.size());
    group->inverse = std::move(classes.inverse);
    first_rows_ = std::move(classes.first_row);
  }

  void FindLists(EncodedLists* lists) {
    lists->list_of.resize(plan_.rows);
    uint32_t next = 0;
    for (uint64_t row = 0; row < plan_.rows; ++row)
      lists->list_of[row] = lists->present.Get(row) ? next++ : kNoList;
  }

  // The column of the unique rows: only their lists are decoded, neighbours in one call.
  SparseColumn Unique(EncodedLists& lists) {
    if (lists.list_of.empty()) FindLists(&lists);
    SparseColumn column;
    column.name = plan_.features[lists.feature].name;
    column.weighted = lists.weighted;
    const size_t rows = first_rows_.size();
    column.present.words.resize(NumWords(rows), 0);
    column.offsets.resize(rows + 1, 0);
    uint64_t total = 0;
    for (size_t i = 0; i < rows; ++i) {
      const uint32_t list = lists.list_of[first_rows_[i]];
      if (list != kNoList) {
        column.present.words[i >> 6] |= uint64_t{1} << (i & 63);
        ++column.present.count;
        total += lists.lengths[list];
      }
      column.offsets[i + 1] = static_cast<uint32_t>(total);
    }
    column.values.resize(total + kDecodeSlack);
    if (lists.weighted) column.weights.resize(total);
    uint64_t done = 0;
    for (size_t i = 0; i < rows;) {
      const uint32_t first = lists.list_of[first_rows_[i]];
      if (first == kNoList) {
        ++i;
        continue;
      }
      // Absent rows between two lists that follow each other part nothing.
      uint32_t end = first + 1;
      for (++i; i < rows; ++i) {
        const uint32_t list = lists.list_of[first_rows_[i]];
        if (list == kNoList) continue;
        if (list != end) break;
        ++end;
      }
      done += DecodeLists(lists, first, end, done, &column);
    }
    column.values.resize(total);
    return column;
  }

  uint64_t DecodeLists(const EncodedLists& lists, uint32_t first, uint32_t end, uint64_t at,
                       SparseColumn* column) {
    uint64_t count = 0;
    for (uint32_t i = first; i < end; ++i) count += lists.lengths[i];
    if (count == 0) return 0;
    if (DecodePlain(lists.ids + lists.starts[first], lists.ids + lists.starts[end], count,
                    lists.format, column->values.data() + at) == nullptr)
      streams_.TooShort(plan_.features[lists.feature].item.data, count);
    if (lists.weights != nullptr)
      std::memcpy(column->weights.data() + at,
                  lists.weights + size_t{lists.entries[first]} * sizeof(float),
                  count * sizeof(float));
    return count;
  }

  const StripePlan& plan_;
  const Streams streams_;
  const std::vector<const PresenceBits*>& map_present_;
  const GroupRequests& requests_;
  std::vector<uint32_t> first_rows_;  // of the group at hand
};

}  // namespace

GroupedFeatures DecodeGroups(const StripePlan& plan,
                             const std::vector<std::span<const uint8_t>>& streams,
                             const std::vector<const PresenceBits*>& map_present,
                             const GroupRequests& requests) {
  GroupedFeatures grouped;
  std::map<std::string_view, uint32_t> places;
  for (uint32_t i = 0; i < plan.features.size(); ++i) places.emplace(plan.features[i].name, i);
  GroupDecoder decode(plan, streams, map_present, requests);
  for (const GroupRequest& request : requests.groups) {
    std::vector<uint32_t> features;
    for (const std::string& name : request.features) {
      const auto place = places.find(name);
      if (place != places.end() && CanCompare(plan.features[place->second]))
        features.push_back(place->second);
    }
    if (features.size() == request.features.size()) decode.Decode(request, features, &grouped);
  }
  return grouped;
}

}  // namespace headrace::reader::dwrf
