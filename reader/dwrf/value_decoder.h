// ValueDecoder: the values of a stripe's streams, node by node; what Decode (feature_stream.h) and
// DecodeSlices (slices.h) share. One stripe, one thread. Every size is checked against the streams:
// damage is Error kBadData that names file, stripe, feature and stream.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "reader/batch/append_bits.h"
#include "reader/batch/id_dictionary.h"
#include "reader/dwrf/decode/bool_expand.h"
#include "reader/dwrf/decode/look_up.h"
#include "reader/dwrf/decode/rle_simd.h"
#include "reader/dwrf/decode/varint_simd.h"
#include "reader/dwrf/decoded_stripe.h"

namespace headrace::reader::dwrf {

// One byte of a stream of runs holds at most this many values (a control byte of 127 starts a run
// of 130).
constexpr uint64_t kMaxValuesPerByte = 130;

[[noreturn]] inline void Damaged(const StripePlan& plan, uint32_t stream, const std::string& what) {
  throw Error(ExitCode::kBadData, what, plan.Where(stream),
              fmt::format("the file is damaged (try 'headrace inspect {}')", plan.file));
}

class ValueDecoder {
 public:
  static constexpr uint32_t kNone = NodePlan::kNone;

  // All outlive the decoder. Without `dictionaries` every id is looked up.
  ValueDecoder(const StripePlan& plan, const std::vector<std::span<const uint8_t>>& streams,
               const DictionaryRequest* dictionaries = nullptr)
      : plan_(plan), streams_(streams), dictionaries_(dictionaries) {}

  // Reads into `out` which rows have the feature. Returns the number of its values; nothing when it
  // is not in the stripe, or in a map that is not flattened.
  std::optional<uint64_t> Rows(const FeaturePlan& feature, const PresenceBits* map_present,
                               DecodedFeature* out) {
    if (!feature.in_stripe || feature.map != kNone) return std::nullopt;
    const uint64_t maps = map_present == nullptr ? plan_.rows : map_present->count;
    if (feature.in_map == kNone) {
      if (maps == 0) return std::nullopt;
      throw Error(ExitCode::kBadData, "the IN_MAP stream is missing",
                  fmt::format("{}: stripe {}, feature {}", plan_.file, plan_.stripe_index,
                              Printable(feature.name)),
                  "the file is damaged");
    }
    Bits(feature.in_map, maps, &out->in_map);
    uint64_t values = out->in_map.count;
    if (feature.value.present != kNone) {
      Bits(feature.value.present, values, &out->value_present);
      values = out->value_present.count;
    }
    return values;
  }

  void Feature(const FeaturePlan& feature, const PresenceBits* map_present, DecodedFeature* out) {
    if (const auto values = Rows(feature, map_present, out)) Values(feature, *values, out, true);
  }

  // `may_keep`: ids may stay in their dictionary if `dictionaries` asks for that.
  void Values(const FeaturePlan& feature, uint64_t values, DecodedFeature* out,
              bool may_keep = false) {
    const double* const least =
        may_keep && dictionaries_ != nullptr ? dictionaries_->Find(feature.name) : nullptr;
    const KeepAs keep{least, &out->dictionary};
    switch (feature.kind) {
      case FeatureKind::kDense:
        return Dense(feature.value, values, out);
      case FeatureKind::kSparse:
        return Sparse(feature, values, out, keep);
      case FeatureKind::kWeightedSparse:
        return Weighted(feature, values, out, keep);
    }
  }

  // Whether ids may stay indices of a dictionary, and where to put that dictionary.
  struct KeepAs {
    // They do from this many values per entry on; null: they may not.
    const double* least = nullptr;
    std::shared_ptr<const IdDictionary>* dictionary = nullptr;
  };
  // Integers stored one after the other in their stream: no runs, no dictionary, no nulls. They can
  // be decoded in portions, and skipped.
  struct PlainIntegers {
    uint32_t stream = kNone;
    IntegerFormat format;
    const uint8_t* at = nullptr;
    const uint8_t* end = nullptr;
  };
  static bool IsPlain(const NodePlan& node) {
    return node.present == kNone && node.encoding != EncodingKind::kDictionary &&
           (node.kind == TypeKind::kShort || node.kind == TypeKind::kInt ||
            node.kind == TypeKind::kLong);
  }
  // `count` > 0 values of a plain node.
  PlainIntegers Plain(const NodePlan& node, uint64_t count) const {
    const uint32_t stream = Need(node.data, node, "DATA", count);
    const std::span<const uint8_t> bytes = streams_[stream];
    if (count > bytes.size()) TooShort(stream, count);
    return {stream, {true, WidthOf(stream, node.kind)}, bytes.data(), bytes.data() + bytes.size()};
  }
  // A stream of indices into a dictionary, some of them literal values.
  struct Indices {
    const NodePlan* node = nullptr;
    uint32_t stream = kNone;
    std::span<const int64_t> entries;
    int unused_bits = 0;
    PresenceBits in_dictionary;

    const uint64_t* inside() const {
      return in_dictionary.words.empty() ? nullptr : in_dictionary.words.data();
    }
    bool IsLiteral(size_t i) const { return !in_dictionary.words.empty() && !in_dictionary.Get(i); }
    int64_t Literal(int64_t value) const {
      return static_cast<int64_t>(static_cast<uint64_t>(value) << unused_bits) >> unused_bits;
    }
  };
  // Integers stored as indices into a dictionary, without nulls: they can be decoded in portions,
  // too.
  struct IndexedIntegers {
    Indices indices;
    RleCursor cursor;
    const uint8_t* end = nullptr;
    IntegerFormat format;
    uint64_t count = 0, place = 0;  // of all values, of the next one
  };
  static bool IsIndexed(const NodePlan& node) {
    return node.present == kNone && node.encoding == EncodingKind::kDictionary &&
           (node.kind == TypeKind::kShort || node.kind == TypeKind::kInt ||
            node.kind == TypeKind::kLong);
  }
  // `count` > 0 values of an indexed node, which outlives the result.
  IndexedIntegers Indexed(const NodePlan& node, uint64_t count) {
    const uint32_t stream = Need(node.data, node, "DATA", count);
    const std::span<const uint8_t> bytes = streams_[stream];
    if (count > bytes.size() * kMaxValuesPerByte) TooShort(stream, count);
    IndexedIntegers out;
    out.indices = {&node, stream, Dictionary(node), 64 - 8 * WidthOfKind(node.kind), {}};
    if (node.in_dictionary != kNone) Bits(node.in_dictionary, count, &out.indices.in_dictionary);
    out.cursor.at = bytes.data();
    out.end = bytes.data() + bytes.size();
    out.format = {false, WidthOf(stream, node.kind)};
    out.count = count;
    return out;
  }
  // Passes over `skip` values, then looks `take` up into `out`, which has room for kDecodeSlack
  // more.
  void DecodeIndexed(uint64_t skip, uint64_t take, IndexedIntegers* from, int64_t* out,
                     InstructionSet set) {
    const Indices& indices = from->indices;
    if (!DecodeRle(&from->cursor, from->end, skip, from->format, nullptr, set) ||
        !DecodeRle(&from->cursor, from->end, take, from->format, out, set))
      TooShort(indices.stream, from->count);
    from->place += skip;
    const uint64_t* inside = indices.inside();
    if (inside != nullptr) {
      inside_.clear();
      AppendBits(indices.in_dictionary.words, from->place, take, 0, &inside_);
      inside = inside_.data();
    }
    from->place += take;
    if (!LookUpIndices(indices.entries, inside, indices.unused_bits, out, take, set))
      TooLarge(indices, from->count);
  }
  // `count` > 0 floats of a float node without nulls, as stored.
  std::span<const uint8_t> PackedFloats(const NodePlan& node, uint64_t count) const {
    const uint32_t stream = Need(node.data, node, "DATA", count);
    if (streams_[stream].size() / sizeof(float) < count) TooShort(stream, count);
    return streams_[stream].first(count * sizeof(float));
  }

  void Map(const MapPlan& map, DecodedMap* out) {
    uint64_t maps = plan_.rows;
    if (map.map.present != kNone) {
      Bits(map.map.present, maps, &out->present);
      maps = out->present.count;
    }
    const uint64_t entries = Lengths(map.map, maps, &out->lengths);
    if (map.key.present != kNone && entries > 0)
      Damaged(plan_, map.key.present, "keys of a map cannot be null");
    Integers(map.key, entries, &out->keys);
    uint64_t values = entries;
    if (map.value.present != kNone) {
      Bits(map.value.present, values, &out->values.value_present);
      values = out->values.value_present.count;
    }
    FeaturePlan feature;
    feature.name = map.name;
    feature.kind = map.kind;
    feature.value = map.value;
    feature.item = map.item;
    feature.weight = map.weight;
    Values(feature, values, &out->values);
  }

  void Column(const ColumnPlan& column, DecodedColumn* out) {
    uint64_t values = plan_.rows;
    const bool is_real =
        column.value.kind == TypeKind::kFloat || column.value.kind == TypeKind::kDouble;
    if (column.is_locked) {
      is_real ? out->floats.assign(values, 0.0f) : out->integers.assign(values, 0);
      return;
    }
    if (column.value.present != kNone) {
      Bits(column.value.present, values, &out->present);
      values = out->present.count;
    }
    if (is_real) {
      Floats(column.value, values, &out->floats);
    } else {
      Integers(column.value, values, &out->integers);
    }
  }

  void Bits(uint32_t stream, uint64_t count, PresenceBits* out) {
    const std::span<const uint8_t> bytes = streams_[stream];
    if (count / 8 > bytes.size() * kMaxValuesPerByte) TooShort(stream, count);
    out->words.resize(NumWords(count));
    if (!DecodeBits(bytes, count, out->words.data())) TooShort(stream, count);
    out->count = CountBits(out->words.data(), out->words.size());
  }

  // Lengths of `count` lists; returns their total.
  uint64_t Lengths(const NodePlan& node, uint64_t count, Array<uint32_t>* out) {
    *out = Array<uint32_t>(count + kDecodeSlack);
    if (count == 0) return 0;
    const uint32_t stream = Need(node.length, node, "LENGTH", count);
    const std::span<const uint8_t> bytes = streams_[stream];
    const IntegerFormat format{false,
                               static_cast<uint8_t>(plan_.streams[stream].use_vints ? 0 : 4)};
    uint64_t total = 0;
    if (DecodeLengths(bytes.data(), bytes.data() + bytes.size(), count, format, out->data(),
                      &total) == nullptr)
      TooShort(stream, count);
    if (total > UINT32_MAX)
      Damaged(plan_, stream,
              fmt::format("its lists have {} elements; more than 2^32 in one stripe cannot be read",
                          total));
    return total;
  }

  [[noreturn]] void TooShort(uint32_t stream, uint64_t count) const {
    Damaged(plan_, stream,
            fmt::format("its {} bytes do not hold the {} values expected", streams_[stream].size(),
                        count));
  }

 private:
  // The stream of a node that must exist because there are values.
  uint32_t Need(uint32_t stream, const NodePlan& node, const char* kind, uint64_t count) const {
    if (stream != kNone) return stream;
    throw Error(ExitCode::kBadData,
                fmt::format("stream {} of node {}, sequence {} is missing, {} values expected",
                            kind, node.node, node.sequence, count),
                fmt::format("{}: stripe {}", plan_.file, plan_.stripe_index),
                "the file is damaged");
  }

  void Dense(const NodePlan& node, uint64_t count, DecodedFeature* out) {
    if (node.kind == TypeKind::kFloat) {
      if (count == 0) return;
      out->packed_floats = PackedFloats(node, count);
      return;
    }
    Floats(node, count, &out->floats);
    out->floats.resize(count + kDecodeSlack);
    out->packed_floats = {reinterpret_cast<const uint8_t*>(out->floats.data()),
                          count * sizeof(float)};
  }

  // Any number as float.
  void Floats(const NodePlan& node, uint64_t count, Array<float>* out) {
    if (count == 0) return;
    if (node.kind != TypeKind::kFloat && node.kind != TypeKind::kDouble) {
      Integers(node, count, &scratch_);
      out->assign(scratch_.begin(), scratch_.end());
      return;
    }
    const uint32_t stream = Need(node.data, node, "DATA", count);
    const std::span<const uint8_t> bytes = streams_[stream];
    if (bytes.size() / (node.kind == TypeKind::kFloat ? sizeof(float) : sizeof(double)) < count)
      TooShort(stream, count);
    *out = Array<float>(count);
    if (node.kind == TypeKind::kFloat) {
      std::memcpy(out->data(), bytes.data(), count * sizeof(float));
      return;
    }
    for (uint64_t i = 0; i < count; ++i) {
      double value;
      std::memcpy(&value, bytes.data() + i * sizeof(double), sizeof(double));
      (*out)[i] = static_cast<float>(value);
    }
  }

  void Integers(const NodePlan& node, uint64_t count, Array<int64_t>* out) {
    Integers(node, count, out, KeepAs());
  }
  // Decodes any integer or boolean as int64; for a node with a dictionary perhaps as indices
  // (LookUp).
  void Integers(const NodePlan& node, uint64_t count, Array<int64_t>* out, const KeepAs& keep) {
    out->clear();
    if (count == 0) return;
    const uint32_t stream = Need(node.data, node, "DATA", count);
    const std::span<const uint8_t> bytes = streams_[stream];
    if (node.kind == TypeKind::kBoolean) return Booleans(stream, count, out);
    if (node.kind == TypeKind::kByte) return SignedBytes(stream, count, out);
    const bool is_dictionary = node.encoding == EncodingKind::kDictionary;
    const IntegerFormat format{!is_dictionary, WidthOf(stream, node.kind)};
    const uint64_t most = is_dictionary ? bytes.size() * kMaxValuesPerByte : bytes.size();
    if (count > most) TooShort(stream, count);
    *out = Array<int64_t>(count + kDecodeSlack);
    const uint8_t* begin = bytes.data();
    const uint8_t* end = begin + bytes.size();
    const uint8_t* used = is_dictionary ? DecodeRle(begin, end, count, format, out->data())
                                        : DecodePlain(begin, end, count, format, out->data());
    if (used == nullptr) TooShort(stream, count);
    out->resize(count);
    if (is_dictionary) LookUp(node, stream, out, keep);
  }

  void Booleans(uint32_t stream, uint64_t count, Array<int64_t>* out) {
    PresenceBits bits;
    Bits(stream, count, &bits);
    out->resize(count);
    for (uint64_t i = 0; i < count; ++i) (*out)[i] = bits.Get(i);
  }

  void SignedBytes(uint32_t stream, uint64_t count, Array<int64_t>* out) {
    if (count > streams_[stream].size() * kMaxValuesPerByte) TooShort(stream, count);
    std::vector<uint8_t> bytes(count);
    if (!DecodeByteRle(streams_[stream], count, bytes.data())) TooShort(stream, count);
    out->resize(count);
    for (uint64_t i = 0; i < count; ++i) (*out)[i] = static_cast<int8_t>(bytes[i]);
  }

  // Replaces indices by values; an index that IN_DICTIONARY marks 0 is the value itself (FORMAT
  // 8.1). The values may stay indices, if `keep` allows it.
  void LookUp(const NodePlan& node, uint32_t stream, Array<int64_t>* values, const KeepAs& keep) {
    const std::span<const int64_t> entries = Dictionary(node);
    Indices indices{&node, stream, entries, 64 - 8 * WidthOfKind(node.kind), {}};
    if (node.in_dictionary != kNone)
      Bits(node.in_dictionary, values->size(), &indices.in_dictionary);
    const uint64_t literals =
        node.in_dictionary == kNone ? 0 : values->size() - indices.in_dictionary.count;
    const uint64_t all = entries.size() + literals;
    if (keep.least != nullptr && dictionaries_->always && all > values->size()) {
      *keep.dictionary = Used(indices, values);
    } else if (keep.least != nullptr &&
               (dictionaries_->always ||
                DictionaryRequest::Pays(all, values->size(), *keep.least))) {
      *keep.dictionary =
          literals == 0 ? Shared(node, indices, *values) : WithLiterals(indices, literals, values);
    } else if (!LookUpIndices(entries, indices.inside(), indices.unused_bits, values->data(),
                              values->size())) {
      TooLarge(indices, values->size());
    }
  }
  // The values were overwritten, so they are decoded again to find the one to tell.
  [[noreturn]] void TooLarge(const Indices& indices, size_t count) const {
    const std::span<const uint8_t> bytes = streams_[indices.stream];
    Array<int64_t> values(count + kDecodeSlack);
    DecodeRle(bytes.data(), bytes.data() + bytes.size(), count,
              {false, WidthOf(indices.stream, indices.node->kind)}, values.data());
    for (size_t i = 0; i < count; ++i)
      if (!indices.IsLiteral(i)) Checked(indices, i, values[i]);
    Damaged(plan_, indices.stream, "an index is beyond its dictionary");
  }

  size_t Checked(const Indices& indices, size_t i, int64_t value) const {
    const auto index = static_cast<uint64_t>(value);
    if (index < indices.entries.size()) return index;
    Damaged(plan_, indices.stream,
            fmt::format("value {}: index {} of a dictionary of {} entries", i, index,
                        indices.entries.size()));
  }

  // The dictionary unchanged, shared by all features that use it.
  std::shared_ptr<const IdDictionary> Shared(const NodePlan& node, const Indices& indices,
                                             const Array<int64_t>& values) {
    // First combine the signs of all: a negative v is below 0, a negative last - v is above the
    // last.
    const auto last = static_cast<int64_t>(indices.entries.size()) - 1;
    int64_t signs = last;
    for (const int64_t v : values) {
      signs |= v | static_cast<int64_t>(static_cast<uint64_t>(last) - static_cast<uint64_t>(v));
    }
    if (signs < 0)
      for (size_t i = 0; i < values.size(); ++i) Checked(indices, i, values[i]);
    return std::make_shared<const IdDictionary>(stripe_dictionaries_.at(node.dictionary),
                                                Uses(values));
  }

  // The dictionary with the literal values appended to its entries.
  std::shared_ptr<const IdDictionary> WithLiterals(const Indices& indices, uint64_t literals,
                                                   Array<int64_t>* values) const {
    Array<int64_t> entries(indices.entries.size() + literals);
    int64_t next = static_cast<int64_t>(indices.entries.size());
    std::copy(indices.entries.begin(), indices.entries.end(), entries.begin());
    for (size_t i = 0; i < values->size(); ++i) {
      int64_t& value = (*values)[i];
      if (!indices.IsLiteral(i)) {
        Checked(indices, i, value);
        continue;
      }
      entries[static_cast<size_t>(next)] = indices.Literal(value);
      value = next++;
    }
    return std::make_shared<const IdDictionary>(std::move(entries), Uses(*values));
  }

  // A dictionary of only the used entries, in the order of their first use, with the literal values
  // among them.
  std::shared_ptr<const IdDictionary> Used(const Indices& indices, Array<int64_t>* values) {
    constexpr int64_t kUnused = -1;
    places_.resize(std::max(places_.size(), indices.entries.size()), kUnused);
    Array<int64_t> entries(values->size());
    used_.clear();
    int64_t next = 0;
    for (size_t i = 0; i < values->size(); ++i) {
      int64_t& value = (*values)[i];
      if (indices.IsLiteral(i)) {
        entries[static_cast<size_t>(next)] = indices.Literal(value);
        value = next++;
        continue;
      }
      const size_t index = Checked(indices, i, value);
      if (places_[index] == kUnused) {
        used_.push_back(index);
        entries[static_cast<size_t>(next)] = indices.entries[index];
        places_[index] = next++;
      }
      value = places_[index];
    }
    for (const size_t index : used_) places_[index] = kUnused;
    entries.resize(static_cast<size_t>(next));
    // Clone, because the memory was reserved for as many entries as values.
    return std::make_shared<const IdDictionary>(entries.Clone(), Uses(*values));
  }

  uint64_t Uses(const Array<int64_t>& values) const {
    return dictionaries_->always ? IdDictionary::kAlways : values.size();
  }

  // Each dictionary stream is decoded once: all keys of a map may share one, and must then agree on
  // its size.
  std::span<const int64_t> Dictionary(const NodePlan& node) {
    if (node.dictionary_size == 0) return {};
    const uint32_t stream = Need(node.dictionary, node, "DICTIONARY_DATA", node.dictionary_size);
    const auto known = stripe_dictionaries_.find(stream);
    if (known != stripe_dictionaries_.end()) {
      if (known->second->size() != node.dictionary_size)
        Damaged(plan_, stream,
                fmt::format("a dictionary of {} entries, of {} for another key",
                            node.dictionary_size, known->second->size()));
      return {known->second->data(), known->second->size()};
    }
    const std::span<const uint8_t> bytes = streams_[stream];
    const size_t count = node.dictionary_size;
    if (count > bytes.size()) TooShort(stream, count);
    Array<int64_t> entries(count + kDecodeSlack);
    const IntegerFormat format{true, WidthOf(stream, node.kind)};
    if (DecodePlain(bytes.data(), bytes.data() + bytes.size(), count, format, entries.data()) ==
        nullptr)
      TooShort(stream, count);
    entries.resize(count);
    const auto shared = std::make_shared<const Array<int64_t>>(std::move(entries));
    stripe_dictionaries_.emplace(stream, shared);
    return {shared->data(), shared->size()};
  }

  static int WidthOfKind(TypeKind kind) {
    return kind == TypeKind::kShort ? 2 : kind == TypeKind::kInt ? 4 : 8;
  }
  uint8_t WidthOf(uint32_t stream, TypeKind kind) const {
    return plan_.streams[stream].use_vints ? uint8_t{0} : static_cast<uint8_t>(WidthOfKind(kind));
  }

  // The bits of a PRESENT stream over list elements; empty words when there is none.
  PresenceBits ElementsPresent(const NodePlan& node, uint64_t count) {
    PresenceBits bits;
    if (node.present != kNone) Bits(node.present, count, &bits);
    return bits;
  }

  void Sparse(const FeaturePlan& feature, uint64_t lists, DecodedFeature* out, const KeepAs& keep) {
    const uint64_t elements = Lengths(feature.value, lists, &out->lengths);
    const PresenceBits present = ElementsPresent(feature.item, elements);
    Integers(feature.item, present.words.empty() ? elements : present.count, &out->values, keep);
    if (present.words.empty()) return;
    // Nulls have no value in the stream: only the lengths change.
    uint64_t element = 0;
    for (uint64_t list = 0; list < lists; ++list) {
      uint32_t kept = 0;
      for (const uint64_t stop = element + out->lengths[list]; element < stop; ++element)
        kept += present.Get(element);
      out->lengths[list] = kept;
    }
  }

  void Weighted(const FeaturePlan& feature, uint64_t lists, DecodedFeature* out,
                const KeepAs& keep) {
    const uint64_t entries = Lengths(feature.value, lists, &out->lengths);
    const PresenceBits keys = ElementsPresent(feature.item, entries),
                       weights = ElementsPresent(feature.weight, entries);
    Integers(feature.item, keys.words.empty() ? entries : keys.count, &out->values, keep);
    Floats(feature.weight, weights.words.empty() ? entries : weights.count, &out->weights);
    if (!keys.words.empty() || !weights.words.empty()) DropNullEntries(keys, weights, lists, out);
  }

  // Keeps the entries that have both key and weight.
  static void DropNullEntries(const PresenceBits& keys, const PresenceBits& weights, uint64_t lists,
                              DecodedFeature* out) {
    uint64_t entry = 0, key = 0, weight = 0, kept = 0;
    for (uint64_t list = 0; list < lists; ++list) {
      const uint64_t before = kept;
      for (const uint64_t stop = entry + out->lengths[list]; entry < stop; ++entry) {
        const bool has_key = keys.words.empty() || keys.Get(entry),
                   has_weight = weights.words.empty() || weights.Get(entry);
        if (has_key && has_weight) {
          out->values[kept] = out->values[key];
          out->weights[kept++] = out->weights[weight];
        }
        key += has_key;
        weight += has_weight;
      }
      out->lengths[list] = static_cast<uint32_t>(kept - before);
    }
    out->values.resize(kept);
    out->weights.resize(kept);
  }

  const StripePlan& plan_;
  const std::vector<std::span<const uint8_t>>& streams_;
  const DictionaryRequest* const dictionaries_;
  // Dictionaries decoded so far.
  std::map<uint32_t, IdDictionary::Entries> stripe_dictionaries_;  // by stream
  Array<int64_t> places_;  // by entry: its index among the used ones; -1: not used
  Array<size_t> used_;
  Array<int64_t> scratch_;
  std::vector<uint64_t> inside_;
};

// The PRESENT bits of the map that stream `stream` holds; null when there is none.
inline const PresenceBits* MapPresent(const DecodedStripe& stripe, uint32_t stream) {
  const auto place =
      std::find(stripe.map_present_streams.begin(), stripe.map_present_streams.end(), stream);
  return place == stripe.map_present_streams.end()
             ? nullptr
             : &stripe.map_present[static_cast<size_t>(place - stripe.map_present_streams.begin())];
}

// Which rows have the feature: its bits over map rows, spread over all rows, less its nulls.
inline PresenceBits RowsPresent(const PresenceBits* map_present, uint64_t rows,
                                DecodedFeature* feature) {
  PresenceBits present = std::move(feature->in_map);
  if (map_present != nullptr && !present.words.empty()) {
    std::vector<uint64_t> spread(NumWords(rows));
    DepositBits(present.words.data(), present.words.size(), map_present->words.data(),
                spread.size(), spread.data());
    present.words = std::move(spread);
  }
  present.words.resize(NumWords(rows));
  const PresenceBits& values = feature->value_present;
  if (values.words.empty()) return present;
  DepositBits(values.words.data(), values.words.size(), present.words.data(), present.words.size(),
              present.words.data());
  present.count = values.count;
  return present;
}

// `packed` values at the set bits, zero elsewhere.
template <typename T>
Array<T> Spread(Array<T>&& packed, const PresenceBits& present, uint64_t rows) {
  if (present.words.empty()) return std::move(packed);
  Array<T> out(rows, T{});
  size_t next = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    if (present.Get(row)) out[row] = packed[next++];
  }
  return out;
}

}  // namespace headrace::reader::dwrf
