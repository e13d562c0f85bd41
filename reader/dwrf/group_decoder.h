// GroupDecoder: finds which rows of a group of sparse features repeat in a stripe, and decodes the
// lists of those that do not. DecodeGroups (decode_groups.h) and DecodeSlices (slices.h) share it.
// One stripe, one thread; memory is kept from one group to the next.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "reader/dwrf/decode/bool_expand.h"
#include "reader/dwrf/decode/presence_expand.h"
#include "reader/dwrf/decode/unique_lists.h"
#include "reader/dwrf/grouped_features.h"
#include "reader/dwrf/value_decoder.h"

namespace headrace::reader::dwrf {

// One feature of a group: the encoded lists of the rows found last or, where lists cannot be
// compared in encoded form, all lists decoded.
class GroupFeature {
 public:
  static constexpr uint32_t kNoList = UINT32_MAX;

  uint32_t feature() const { return feature_; }  // of the plan
  bool weighted() const { return weighted_; }
  uint64_t elements() const { return elements_; }  // ids of all rows of the stripe
  // Whether ids are copied from the decoded values of all lists, instead of being decoded for the
  // rows asked for.
  bool is_copied() const { return !is_encoded_; }

  // The dictionary, where ids stay in it and the copied values are indices into it; else null.
  const std::shared_ptr<const IdDictionary>& dictionary() const { return values_.dictionary; }

  // Computes presence and offsets of the rows `rows`, in that order; returns the number of their
  // ids.
  uint64_t Skeleton(std::span<const uint32_t> rows, PresenceBits* present,
                    uint32_t* offsets) const {
    present->words.assign(NumWords(rows.size()), 0);
    present->count = 0;
    uint64_t total = 0;
    offsets[0] = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (const uint32_t list = ListOf(rows[i]); list != kNoList) {
        present->words[i >> 6] |= uint64_t{1} << (i & 63);
        ++present->count;
        total += lengths()[list];
      }
      // Fits: the lists of unique rows are some of the stripe's, which have fewer than 2^32 ids.
      offsets[i + 1] = static_cast<uint32_t>(total);
    }
    return total;
  }

 private:
  friend class GroupDecoder;

  // Lists are numbered from the first one of the rows found last.
  uint32_t ListOf(uint64_t row) const {
    if (all_present_) return static_cast<uint32_t>(row) - first_list_;
    const uint64_t word = present_.words[row >> 6];
    if ((word >> (row & 63) & 1) == 0) return kNoList;
    const uint64_t below = word & ((uint64_t{1} << (row & 63)) - 1);
    return ranks_[row >> 6] + static_cast<uint32_t>(std::popcount(below)) - first_list_;
  }
  const uint32_t* lengths() const { return lengths_.data() + first_list_; }
  bool SameList(uint32_t a, uint32_t b) const {
    if (a == kNoList || b == kNoList) return a == b;
    const uint64_t size = starts_[a + 1] - starts_[a];
    return lengths()[a] == lengths()[b] && size == starts_[b + 1] - starts_[b] &&
           (size == 0 || std::memcmp(bytes_ + starts_[a], bytes_ + starts_[b], size) == 0) &&
           SameWeights(a, b);
  }
  bool SameWeights(uint32_t a, uint32_t b) const {
    return weights_ == nullptr || std::memcmp(weights_ + size_t{entries_[a]} * sizeof(float),
                                              weights_ + size_t{entries_[b]} * sizeof(float),
                                              size_t{lengths()[a]} * sizeof(float)) == 0;
  }

  uint32_t feature_ = 0;
  bool weighted_ = false, is_encoded_ = true, all_present_ = false;
  PresenceBits present_;         // over the rows of the stripe
  std::vector<uint32_t> ranks_;  // present rows before each word of present_
  Array<uint32_t> lengths_;      // of the lists of present rows
  uint64_t elements_ = 0;        // of all lists
  IntegerFormat format_;
  // The rows found last:
  uint32_t first_list_ = 0, lists_ = 0;
  std::vector<uint64_t> here_;  // the bits of present_ for these rows
  const uint8_t* bytes_ = nullptr;
  const uint8_t* end_ = nullptr;      // of the stream
  std::vector<uint64_t> starts_;      // bytes of list i: [starts_[i], starts_[i + 1])
  std::vector<uint64_t> changed_;     // bit i: list i differs from list i - 1
  std::vector<uint32_t> entries_;     // values of list i from entries_[i] on; where needed
  const uint8_t* weights_ = nullptr;  // as stored
  DecodedFeature values_;             // all lists decoded, where they are not compared encoded
};

class GroupDecoder {
 public:
  // All outlive the decoder. `map_present[f]`: rows that have the map of plan feature f; null: all.
  GroupDecoder(const StripePlan& plan, ValueDecoder* decoder,
               const std::vector<const PresenceBits*>& map_present, DedupScope scope, RowHash hash)
      : plan_(plan), decoder_(*decoder), map_present_(map_present), scope_(scope), hash_(hash) {}

  // Whether lists of the feature with equal bytes are always equal lists, so that encoded lists can
  // be compared.
  static bool CanCompare(const FeaturePlan& feature) {
    if (feature.map != NodePlan::kNone || feature.kind == FeatureKind::kDense) return false;
    if (!feature.in_stripe) return true;
    return ValueDecoder::IsPlain(feature.item) &&
           (feature.kind == FeatureKind::kSparse ||
            (feature.weight.kind == TypeKind::kFloat && feature.weight.present == NodePlan::kNone));
  }

  // Begins a group: `features` of the plan, without dense features and maps. If a feature cannot be
  // compared in encoded form, all features of the group are decoded.
  void Open(std::span<const uint32_t> features) {
    if (features_.size() < features.size()) features_.resize(features.size());
    used_ = features.size();
    first_row_ = end_row_ = 0;
    is_encoded_ = std::all_of(features.begin(), features.end(), [&](uint32_t feature) {
      return CanCompare(plan_.features[feature]);
    });
    for (size_t i = 0; i < used_; ++i) {
      Presence(features[i], &features_[i]);
      features_[i].is_encoded_ = is_encoded_;
      features_[i].values_ = {};
      is_encoded_ ? Encoded(&features_[i]) : Values(&features_[i]);
    }
    if (!is_encoded_) ByValues();
  }
  // Classifies the group's rows from the end of the previous call up to `end` by their content.
  // rows() and Decode are about these rows until the next call.
  void Find(uint64_t end) {
    if (!is_encoded_) return;  // all rows are already classified
    first_row_ = std::exchange(end_row_, end);
    for (GroupFeature& feature : std::span(features_.data(), used_)) FindLists(&feature);
    if (scope_ == DedupScope::kNeighbours) {
      Neighbours();
    } else {
      WholeBatch();
    }
  }
  std::span<const GroupFeature> features() const { return {features_.data(), used_}; }
  const RowClasses& rows() const { return rows_; }  // from row first_row() of the stripe on
  uint64_t first_row() const { return first_row_; }

  // Writes the ids (or indices) of rows `rows` (ascending), as many as Skeleton returned, and for a
  // weighted feature their weights. Up to kDecodeSlack ids after them are overwritten.
  void Decode(const GroupFeature& from, std::span<const uint32_t> rows, int64_t* ids,
              float* weights) {
    std::span<const uint32_t> lists = rows;
    if (!from.all_present_ || from.first_list_ > 0) {
      lists_.clear();
      for (const uint32_t row : rows)
        if (const uint32_t list = from.ListOf(row); list != GroupFeature::kNoList)
          lists_.push_back(list);
      lists = lists_;
    }
    if (from.is_encoded_ &&
        !DecodeLists(from.bytes_, lists, from.lengths(), from.starts_.data(), from.format_, ids))
      decoder_.TooShort(plan_.features[from.feature_].item.data, from.elements_);
    if (from.is_encoded_ && weights == nullptr) return;
    for (const uint32_t list : lists) {
      const size_t entry = from.entries_[list], count = from.lengths()[list];
      if (count == 0) continue;
      if (!from.is_encoded_) {
        std::memcpy(ids, from.values_.values.data() + entry, count * sizeof(int64_t));
        ids += count;
      }
      if (weights == nullptr) continue;
      std::memcpy(weights,
                  from.is_encoded_
                      ? from.weights_ + entry * sizeof(float)
                      : reinterpret_cast<const uint8_t*>(from.values_.weights.data() + entry),
                  count * sizeof(float));
      weights += count;
    }
  }

 private:
  void Presence(uint32_t index, GroupFeature* out) {
    const FeaturePlan& feature = plan_.features[index];
    out->feature_ = index;
    out->weighted_ = feature.kind == FeatureKind::kWeightedSparse;
    DecodedFeature rows;
    decoder_.Rows(feature, map_present_[index], &rows);
    out->present_ = RowsPresent(map_present_[index], plan_.rows, &rows);
    out->all_present_ = out->present_.count == plan_.rows;
    out->first_list_ = out->lists_ = 0;
    if (out->all_present_) return;
    out->ranks_.resize(out->present_.words.size());
    uint32_t rank = 0;
    for (size_t w = 0; w < out->ranks_.size(); ++w) {
      out->ranks_[w] = rank;
      rank += static_cast<uint32_t>(std::popcount(out->present_.words[w]));
    }
  }

  // Reads the lengths, and finds where the encoded lists are.
  void Encoded(GroupFeature* out) {
    const FeaturePlan& feature = plan_.features[out->feature_];
    static const uint8_t kNothing[1] = {};
    ValueDecoder::PlainIntegers ids;
    ids.at = ids.end = kNothing;
    out->elements_ = decoder_.Lengths(feature.value, out->present_.count, &out->lengths_);
    if (out->elements_ > 0) ids = decoder_.Plain(feature.item, out->elements_);
    out->format_ = ids.format;
    out->bytes_ = ids.at;
    out->end_ = ids.end;
    out->weights_ = nullptr;
    if (out->weighted_ && out->elements_ > 0)
      out->weights_ = decoder_.PackedFloats(feature.weight, out->elements_).data();
  }

  // Finds which lists of rows [first_row_, end_row_) differ from the one before; the first one
  // always counts as different.
  void FindLists(GroupFeature* out) {
    if (out->lists_ > 0) {  // behind those found before
      out->bytes_ += out->starts_[out->lists_];
      if (out->weights_ != nullptr) out->weights_ += out->entries_[out->lists_] * sizeof(float);
      out->first_list_ += out->lists_;
    }
    const uint64_t rows = end_row_ - first_row_;
    out->lists_ = static_cast<uint32_t>(rows);
    if (!out->all_present_) {
      out->here_.clear();
      AppendBits(out->present_.words, first_row_, rows, 0, &out->here_);
      out->lists_ = static_cast<uint32_t>(CountBits(out->here_.data(), out->here_.size()));
    }
    out->changed_.resize(NumWords(out->lists_));
    out->starts_.resize(out->lists_ + 1);
    if (out->lists_ == 0) return;
    if (!FindChangedLists(out->bytes_, out->end_, out->format_.fixed_width,
                          {out->lengths(), out->lists_}, out->starts_.data(), out->changed_.data()))
      decoder_.TooShort(plan_.features[out->feature_].item.data, out->elements_);
    if (out->weights_ == nullptr) return;
    FindEntries(out);
    for (uint32_t i = 1; i < out->lists_; ++i) {
      if ((out->changed_[i >> 6] >> (i & 63) & 1) == 0 && !out->SameWeights(i, i - 1))
        out->changed_[i >> 6] |= uint64_t{1} << (i & 63);
    }
  }

  static void FindEntries(GroupFeature* out) {
    out->entries_.resize(out->lists_ + 1);
    out->entries_[0] = 0;
    for (size_t i = 0; i < out->lists_; ++i)
      out->entries_[i + 1] = out->entries_[i] + out->lengths()[i];
  }

  void Values(GroupFeature* out) {
    const FeaturePlan& feature = plan_.features[out->feature_];
    out->lengths_ = Array<uint32_t>(kDecodeSlack);
    out->lists_ = static_cast<uint32_t>(out->present_.count);
    if (out->lists_ > 0) {
      decoder_.Values(feature, out->lists_, &out->values_, true);
      out->lengths_ = std::move(out->values_.lengths);
    }
    FindEntries(out);
    out->elements_ = out->entries_.back();
  }

  // A row is unique where any feature came, went or changed.
  void Neighbours() {
    const uint64_t rows = end_row_ - first_row_;
    const size_t words = NumWords(rows);
    unique_.assign(words, 0);
    spread_.resize(words);
    for (const GroupFeature& one : features()) {
      if (one.all_present_) {
        for (size_t w = 0; w < words; ++w) unique_[w] |= one.changed_[w];
        continue;
      }
      const auto& present = one.here_;
      DepositBits(one.changed_.data(), one.changed_.size(), present.data(), words, spread_.data());
      uint64_t before = 0;
      for (size_t w = 0; w < words; ++w) {
        unique_[w] |= spread_[w] | (present[w] ^ (present[w] << 1 | before));
        before = present[w] >> 63;
      }
    }
    if (words > 0) unique_[0] |= 1;
    if (rows % 64 != 0) unique_[words - 1] &= (uint64_t{1} << (rows % 64)) - 1;
    rows_.inverse.resize(rows);
    rows_.first_row.clear();
    for (size_t w = 0; w < words; ++w) {
      auto number = static_cast<uint32_t>(rows_.first_row.size()) - 1;
      const uint64_t end = std::min<uint64_t>(rows, (w + 1) * 64);
      for (uint64_t row = w * 64, bits = unique_[w]; row < end; ++row, bits >>= 1)
        rows_.inverse[row] = number += static_cast<uint32_t>(bits & 1);
      for (uint64_t bits = unique_[w]; bits != 0; bits &= bits - 1)
        rows_.first_row.push_back(
            static_cast<uint32_t>(w * 64 + static_cast<uint64_t>(std::countr_zero(bits))));
    }
  }

  void WholeBatch() {
    const auto hash = [&](uint32_t row) {
      uint64_t sum = 0;
      for (const GroupFeature& one : features()) {
        const uint32_t list = one.ListOf(first_row_ + row);
        const bool absent = list == GroupFeature::kNoList;
        sum = sum * 0x9e3779b97f4a7c15u + 1 + (absent ? 0 : 1 + one.lengths()[list]);
        if (absent || one.lengths()[list] == 0) continue;
        sum = hash_(one.bytes_ + one.starts_[list], one.starts_[list + 1] - one.starts_[list], sum);
        if (one.weights_ != nullptr)
          sum = hash_(one.weights_ + size_t{one.entries_[list]} * sizeof(float),
                      size_t{one.lengths()[list]} * sizeof(float), sum);
      }
      return sum;
    };
    const auto same = [&](uint32_t a, uint32_t b) {
      return std::all_of(features().begin(), features().end(), [&](const GroupFeature& one) {
        return one.SameList(one.ListOf(first_row_ + a), one.ListOf(first_row_ + b));
      });
    };
    rows_ = ClassifyByHash(end_row_ - first_row_, hash, same);
  }

  void ByValues() {
    std::vector<SparseColumn> columns(used_);
    std::vector<const SparseColumn*> pointers;
    for (size_t i = 0; i < used_; ++i) {
      GroupFeature& one = features_[i];
      SparseColumn& column = columns[i];
      column.present = one.present_;
      column.offsets.resize(plan_.rows + 1);
      if (one.present_.count > 0) {
        ExpandLengths(one.lengths_.data(), one.present_.words.data(), plan_.rows,
                      column.offsets.data());
      } else {
        std::fill(column.offsets.begin(), column.offsets.end(), 0u);
      }
      column.values = Borrowed(&one.values_.values);
      column.weights = Borrowed(&one.values_.weights);
      column.dictionary = one.values_.dictionary;
      pointers.push_back(&column);
    }
    rows_ = ClassifyRows(pointers, plan_.rows, scope_, hash_);
  }

  template <typename T>
  static Array<T> Borrowed(Array<T>* of) {
    return Array<T>::Borrow({of->data(), of->size()}, {std::shared_ptr<const void>(), of});
  }

  const StripePlan& plan_;
  ValueDecoder& decoder_;
  const std::vector<const PresenceBits*>& map_present_;
  const DedupScope scope_;
  const RowHash hash_;
  std::vector<GroupFeature> features_;  // the first used_ of them belong to the current group
  size_t used_ = 0;
  bool is_encoded_ = true;
  uint64_t first_row_ = 0, end_row_ = 0;  // found last
  RowClasses rows_;
  std::vector<uint64_t> unique_, spread_;
  std::vector<uint32_t> lists_;
};

}  // namespace headrace::reader::dwrf
