#include "reader/dwrf/feature_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.h"
#include "reader/batch/array.h"
#include "reader/batch/row_map_batch.h"
#include "reader/dwrf/codec.h"
#include "reader/dwrf/decode/bool_expand.h"
#include "reader/dwrf/decode/presence_expand.h"
#include "reader/dwrf/decode/rle_simd.h"
#include "reader/dwrf/decode/varint_simd.h"

namespace headrace::reader::dwrf {
namespace {

constexpr uint32_t kNone = NodePlan::kNone;
constexpr size_t kChunkHeaderBytes = 3;
constexpr size_t kStreamAlignment = 64;
// One byte of a stream of runs holds at most this many values (a control byte of 127 starts a run
// of 130).
constexpr uint64_t kMaxValuesPerByte = 130;

[[noreturn]] void Damaged(const StripePlan& plan, uint32_t stream, const std::string& what) {
  throw Error(ExitCode::kBadData, what, plan.Where(stream),
              fmt::format("the file is damaged (try 'headrace inspect {}')", plan.file));
}

struct Chunk {
  bool is_original;
  std::span<const uint8_t> payload;
};

// Takes the first chunk off `stored`.
Chunk NextChunk(std::span<const uint8_t>* stored, const StripePlan& plan, uint32_t stream) {
  const uint64_t position = plan.streams[stream].length - stored->size();
  if (stored->size() < kChunkHeaderBytes)
    Damaged(plan, stream, fmt::format("chunk header cut short at byte {} of the stream", position));
  const uint8_t* header = stored->data();
  const uint32_t word = header[0] | header[1] << 8 | header[2] << 16;
  const size_t length = word >> 1, left = stored->size() - kChunkHeaderBytes;
  if (length > left) {
    Damaged(plan, stream,
            fmt::format("chunk at byte {} of the stream claims {} bytes, {} are left", position,
                        length, left));
  }
  const Chunk chunk{(word & 1) != 0, stored->subspan(kChunkHeaderBytes, length)};
  *stored = stored->subspan(kChunkHeaderBytes + length);
  return chunk;
}

// Unpacked streams one after the other in one buffer, which may move while it grows.
class Arena {
 public:
  explicit Arena(uint64_t size) : buffer_(StripeBuffers().Take(size)) {}

  // Room for `bytes` more at the end of the stream being written.
  std::span<uint8_t> Room(size_t bytes) {
    if (end_ + bytes > buffer_->size())
      buffer_->Resize(std::max(end_ + bytes, buffer_->size() + buffer_->size() / 2));
    return {buffer_->data() + end_, bytes};
  }
  void Advance(size_t bytes) { end_ += bytes; }
  size_t end() const { return end_; }
  void Align() { end_ = (end_ + kStreamAlignment - 1) / kStreamAlignment * kStreamAlignment; }
  uint8_t* data() { return buffer_->data(); }
  BufferPool::Handle Release() {
    // The handle's size is what was used, so that the zeroed padding stands right behind it.
    buffer_->Resize(end_);
    return std::move(buffer_);
  }

 private:
  BufferPool::Handle buffer_;
  size_t end_ = 0;
};

// Appends the plain bytes of one framed stream.
void Unpack(std::span<const uint8_t> stored, const StripePlan& plan, uint32_t stream,
            Arena* arena) {
  while (!stored.empty()) {
    const Chunk chunk = NextChunk(&stored, plan, stream);
    if (chunk.is_original) {
      const std::span<uint8_t> room = arena->Room(chunk.payload.size());
      std::memcpy(room.data(), chunk.payload.data(), chunk.payload.size());
      arena->Advance(chunk.payload.size());
      continue;
    }
    try {
      arena->Advance(Decompress(plan.compression, chunk.payload, arena->Room(plan.block_size)));
    } catch (const Error& error) {
      throw error.Within(plan.Where(stream));
    }
  }
}

class Decoder {
 public:
  // Both outlive the decoder.
  explicit Decoder(const UnpackedStripe& unpacked)
      : plan_(unpacked.plan), streams_(unpacked.streams) {}

  void Feature(const FeaturePlan& feature, const PresenceBits* map_present, DecodedFeature* out) {
    if (!feature.in_stripe || feature.map != kNone) return;
    const uint64_t maps = map_present == nullptr ? plan_.rows : map_present->count;
    if (feature.in_map == kNone) {
      if (maps == 0) return;
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
    switch (feature.kind) {
      case FeatureKind::kDense:
        Dense(feature.value, values, out);
        break;
      case FeatureKind::kSparse:
        Sparse(feature, values, out);
        break;
      case FeatureKind::kWeightedSparse:
        Weighted(feature, values, out);
        break;
    }
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
    switch (map.kind) {
      case FeatureKind::kDense:
        return Dense(map.value, values, &out->values);
      case FeatureKind::kSparse:
        return Sparse(feature, values, &out->values);
      case FeatureKind::kWeightedSparse:
        return Weighted(feature, values, &out->values);
    }
  }

  void Column(const ColumnPlan& column, DecodedColumn* out) {
    uint64_t values = plan_.rows;
    if (column.value.present != kNone) {
      Bits(column.value.present, values, &out->present);
      values = out->present.count;
    }
    if (column.value.kind == TypeKind::kFloat || column.value.kind == TypeKind::kDouble) {
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

 private:
  [[noreturn]] void TooShort(uint32_t stream, uint64_t count) {
    Damaged(plan_, stream,
            fmt::format("its {} bytes do not hold the {} values expected", streams_[stream].size(),
                        count));
  }

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
      const uint32_t stream = Need(node.data, node, "DATA", count);
      if (streams_[stream].size() / sizeof(float) < count) TooShort(stream, count);
      out->packed_floats = streams_[stream].first(count * sizeof(float));
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

  // Any integer or boolean as int64.
  void Integers(const NodePlan& node, uint64_t count, Array<int64_t>* out) {
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
    if (is_dictionary) LookUp(node, stream, out);
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

  // From indices to values; an index that IN_DICTIONARY marks 0 is the value itself (FORMAT 8.1).
  void LookUp(const NodePlan& node, uint32_t stream, Array<int64_t>* values) {
    const std::vector<int64_t>& dictionary = Dictionary(node);
    PresenceBits in_dictionary;
    if (node.in_dictionary != kNone) Bits(node.in_dictionary, values->size(), &in_dictionary);
    const int unused = 64 - 8 * WidthOfKind(node.kind);
    for (size_t i = 0; i < values->size(); ++i) {
      const uint64_t index = static_cast<uint64_t>((*values)[i]);
      if (node.in_dictionary != kNone && !in_dictionary.Get(i)) {
        (*values)[i] = static_cast<int64_t>(index << unused) >> unused;
      } else if (index < dictionary.size()) {
        (*values)[i] = dictionary[index];
      } else {
        Damaged(plan_, stream,
                fmt::format("value {}: index {} of a dictionary of {} entries", i, index,
                            dictionary.size()));
      }
    }
  }

  // Decoded once per stream: all keys of a map may share one.
  const std::vector<int64_t>& Dictionary(const NodePlan& node) {
    static const std::vector<int64_t> empty;
    if (node.dictionary_size == 0) return empty;
    const uint32_t stream = Need(node.dictionary, node, "DICTIONARY_DATA", node.dictionary_size);
    const auto [place, is_new] = dictionaries_.try_emplace({stream, node.dictionary_size});
    if (!is_new) return place->second;
    const std::span<const uint8_t> bytes = streams_[stream];
    const size_t count = node.dictionary_size;
    if (count > bytes.size()) TooShort(stream, count);
    std::vector<int64_t>& dictionary = place->second;
    dictionary.resize(count + kDecodeSlack);
    const IntegerFormat format{true, WidthOf(stream, node.kind)};
    if (DecodePlain(bytes.data(), bytes.data() + bytes.size(), count, format, dictionary.data()) ==
        nullptr)
      TooShort(stream, count);
    dictionary.resize(count);
    return dictionary;
  }

  static int WidthOfKind(TypeKind kind) {
    return kind == TypeKind::kShort ? 2 : kind == TypeKind::kInt ? 4 : 8;
  }
  uint8_t WidthOf(uint32_t stream, TypeKind kind) const {
    return plan_.streams[stream].use_vints ? uint8_t{0} : static_cast<uint8_t>(WidthOfKind(kind));
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

  // The bits of a PRESENT stream over list elements; empty words when there is none.
  PresenceBits ElementsPresent(const NodePlan& node, uint64_t count) {
    PresenceBits bits;
    if (node.present != kNone) Bits(node.present, count, &bits);
    return bits;
  }

  void Sparse(const FeaturePlan& feature, uint64_t lists, DecodedFeature* out) {
    const uint64_t elements = Lengths(feature.value, lists, &out->lengths);
    const PresenceBits present = ElementsPresent(feature.item, elements);
    Integers(feature.item, present.words.empty() ? elements : present.count, &out->values);
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

  void Weighted(const FeaturePlan& feature, uint64_t lists, DecodedFeature* out) {
    const uint64_t entries = Lengths(feature.value, lists, &out->lengths);
    const PresenceBits keys = ElementsPresent(feature.item, entries),
                       weights = ElementsPresent(feature.weight, entries);
    Integers(feature.item, keys.words.empty() ? entries : keys.count, &out->values);
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
  std::map<std::pair<uint32_t, uint32_t>, std::vector<int64_t>> dictionaries_;
  Array<int64_t> scratch_;
};

const PresenceBits* MapPresent(const DecodedStripe& stripe, uint32_t stream) {
  const auto place =
      std::find(stripe.map_present_streams.begin(), stripe.map_present_streams.end(), stream);
  return place == stripe.map_present_streams.end()
             ? nullptr
             : &stripe.map_present[static_cast<size_t>(place - stripe.map_present_streams.begin())];
}

// Which rows have the feature: its bits over map rows, spread over all rows, less its nulls.
PresenceBits RowsPresent(const PresenceBits* map_present, uint64_t rows, DecodedFeature* feature) {
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

// The rows of a whole map; an entry without a value counts as absent.
RowMapColumn RowMaps(const MapPlan& plan, DecodedMap&& decoded, uint64_t rows) {
  RowMapColumn map;
  map.name = plan.name;
  map.kind = plan.kind;
  map.row_offsets.reserve(rows + 1);
  map.row_offsets.push_back(0);
  map.entries.reserve(decoded.keys.size());
  const DecodedFeature& values = decoded.values;
  if (plan.kind == FeatureKind::kDense) {
    map.floats.resize(values.packed_floats.size() / sizeof(float));
    if (!map.floats.empty())
      std::memcpy(map.floats.data(), values.packed_floats.data(), values.packed_floats.size());
  }
  uint64_t entry = 0, value = 0, list = 0;
  uint32_t item = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    const bool has_map = decoded.present.words.empty() || decoded.present.Get(row);
    for (uint32_t i = 0, count = has_map ? decoded.lengths[list] : 0; i < count; ++i, ++entry) {
      if (!values.value_present.words.empty() && !values.value_present.Get(entry)) continue;
      RowMapEntry made{decoded.keys[entry], static_cast<uint32_t>(value), 1};
      if (plan.kind != FeatureKind::kDense) {
        made.first = item;
        made.count = values.lengths[value];
        item += made.count;
      }
      ++value;
      map.entries.push_back(made);
    }
    list += has_map ? 1 : 0;
    std::stable_sort(map.entries.begin() + map.row_offsets.back(), map.entries.end(),
                     [](const RowMapEntry& a, const RowMapEntry& b) { return a.key < b.key; });
    map.row_offsets.push_back(static_cast<uint32_t>(map.entries.size()));
  }
  map.ids = std::move(decoded.values.values);
  if (plan.kind == FeatureKind::kWeightedSparse) map.floats = std::move(decoded.values.weights);
  return map;
}

void ExtractFeature(const FeaturePlan& plan, const PresenceBits* map_present, uint64_t rows,
                    DecodedFeature* feature, FlatMapBatch* batch) {
  PresenceBits present = RowsPresent(map_present, rows, feature);
  if (plan.kind == FeatureKind::kDense) {
    DenseColumn& column = batch->dense.emplace_back();
    column.name = plan.name;
    column.values = Array<float>(rows);
    if (present.count > 0) {
      ExpandFloats(feature->packed_floats.data(), present.words.data(), rows, column.values.data());
    } else {
      std::fill(column.values.begin(), column.values.end(), 0.0f);
    }
    column.present = std::move(present);
    return;
  }
  SparseColumn& column = batch->sparse.emplace_back();
  column.name = plan.name;
  column.offsets = Array<uint32_t>(rows + 1);
  if (present.count > 0) {
    ExpandLengths(feature->lengths.data(), present.words.data(), rows, column.offsets.data());
  } else {
    std::fill(column.offsets.begin(), column.offsets.end(), 0u);
  }
  column.present = std::move(present);
  column.values = std::move(feature->values);
  column.weights = std::move(feature->weights);
  column.weighted = plan.kind == FeatureKind::kWeightedSparse;
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

}  // namespace

// The column of plan feature `feature` where it was decoded with its group, else null.
static SparseColumn* GroupedColumn(GroupedFeatures& grouped, size_t feature) {
  const auto place = std::find(grouped.features.begin(), grouped.features.end(), feature);
  return place == grouped.features.end() ? nullptr
                                         : &grouped.columns[place - grouped.features.begin()];
}

UnpackedStripe Decompress(FetchedStripe&& fetched) {
  UnpackedStripe unpacked;
  const StripePlan& plan = fetched.plan;
  for (uint32_t i = 0; i < plan.streams.size(); ++i) {
    if (plan.streams[i].group == 0) continue;
    throw Error(ExitCode::kUsage,
                "an encrypted stream is to be decompressed before it is decrypted", plan.Where(i),
                "put the operator decrypt between fetch and decompress");
  }
  unpacked.stored_bytes = fetched.stream_bytes;
  unpacked.streams.resize(plan.streams.size());
  Arena arena(
      plan.compression == CompressionKind::kNone ? 0 : 2 * fetched.stream_bytes + plan.block_size);
  // Where each stream went; spans come last, as the arena may move.
  std::vector<std::pair<size_t, size_t>> places(plan.streams.size());
  std::vector<bool> in_arena(plan.streams.size());
  for (uint32_t i = 0; i < plan.streams.size(); ++i) {
    std::span<const uint8_t> stored = fetched.stored[i];
    if (plan.compression == CompressionKind::kNone) {
      unpacked.streams[i] = stored;
      continue;
    }
    std::span<const uint8_t> rest = stored;
    const Chunk first = NextChunk(&rest, plan, i);
    if (first.is_original && rest.empty()) {
      unpacked.streams[i] = first.payload;
      continue;
    }
    arena.Align();
    places[i].first = arena.end();
    Unpack(stored, plan, i, &arena);
    places[i].second = arena.end() - places[i].first;
    in_arena[i] = true;
  }
  unpacked.unpacked = arena.Release();
  for (uint32_t i = 0; i < plan.streams.size(); ++i) {
    if (in_arena[i])
      unpacked.streams[i] = {unpacked.unpacked->data() + places[i].first, places[i].second};
    unpacked.unpacked_bytes += unpacked.streams[i].size();
  }
  unpacked.bytes = std::move(fetched.bytes);
  unpacked.decrypted = std::move(fetched.decrypted);
  unpacked.plan = std::move(fetched.plan);
  return unpacked;
}

DecodedStripe Decode(UnpackedStripe&& unpacked, const GroupRequests* groups) {
  DecodedStripe decoded;
  const StripePlan& plan = unpacked.plan;
  Decoder decoder(unpacked);
  for (const FeaturePlan& feature : plan.features) {
    if (feature.map_present == kNone || MapPresent(decoded, feature.map_present) != nullptr)
      continue;
    decoded.map_present_streams.push_back(feature.map_present);
    decoder.Bits(feature.map_present, plan.rows, &decoded.map_present.emplace_back());
  }
  decoded.features.resize(plan.features.size());
  if (groups != nullptr) {
    std::vector<const PresenceBits*> map_present;
    for (const FeaturePlan& feature : plan.features)
      map_present.push_back(MapPresent(decoded, feature.map_present));
    decoded.grouped = DecodeGroups(plan, unpacked.streams, map_present, *groups);
    decoded.decoded_bytes = decoded.grouped.decoded_bytes;
  }
  for (size_t i = 0; i < plan.features.size(); ++i) {
    if (GroupedColumn(decoded.grouped, i) != nullptr) continue;
    DecodedFeature& feature = decoded.features[i];
    decoder.Feature(plan.features[i], MapPresent(decoded, plan.features[i].map_present), &feature);
    decoded.decoded_bytes += 8 * feature.values.size() +
                             4 * (feature.weights.size() + feature.lengths.size()) +
                             feature.packed_floats.size() +
                             8 * (feature.in_map.words.size() + feature.value_present.words.size());
  }
  for (const MapPlan& map : plan.maps) {
    DecodedMap& whole = decoded.maps.emplace_back();
    decoder.Map(map, &whole);
    decoded.decoded_bytes +=
        8 * (whole.keys.size() + whole.values.values.size()) +
        4 * (whole.lengths.size() + whole.values.lengths.size() + whole.values.weights.size()) +
        whole.values.packed_floats.size();
  }
  decoded.columns.resize(plan.columns.size());
  for (size_t i = 0; i < plan.columns.size(); ++i) {
    DecodedColumn& column = decoded.columns[i];
    decoder.Column(plan.columns[i], &column);
    decoded.decoded_bytes += 8 * column.integers.size() + 4 * column.floats.size();
  }
  decoded.bytes = std::move(unpacked.bytes);
  decoded.decrypted = std::move(unpacked.decrypted);
  decoded.unpacked = std::move(unpacked.unpacked);
  decoded.plan = std::move(unpacked.plan);
  return decoded;
}

FlatMapBatch Extract(DecodedStripe&& decoded) {
  const StripePlan& plan = decoded.plan;
  FlatMapBatch batch;
  batch.rows = plan.rows;
  batch.first_row = plan.first_row;
  std::map<uint32_t, RowMapColumn> maps;  // of those not flattened, as needed
  batch.groups = std::move(decoded.grouped.groups);
  for (size_t i = 0; i < plan.features.size(); ++i) {
    const FeaturePlan& feature = plan.features[i];
    if (SparseColumn* column = GroupedColumn(decoded.grouped, i)) {
      batch.sparse.push_back(std::move(*column));
      continue;
    }
    if (feature.map == kNone) {
      ExtractFeature(feature, MapPresent(decoded, feature.map_present), plan.rows,
                     &decoded.features[i], &batch);
      continue;
    }
    // Features of one map that stand together are looked up in one pass over its rows.
    std::vector<RowMapFeature> wanted;
    size_t end = i;
    for (; end < plan.features.size() && plan.features[end].map == feature.map; ++end)
      wanted.push_back({plan.features[end].name, plan.features[end].key});
    if (maps.find(feature.map) == maps.end())
      maps.emplace(feature.map, RowMaps(plan.maps[feature.map],
                                        std::move(decoded.maps[feature.map]), plan.rows));
    ToColumns(maps.at(feature.map), wanted, &batch);
    i = end - 1;
  }
  for (size_t i = 0; i < plan.columns.size(); ++i) {
    DecodedColumn& source = decoded.columns[i];
    ScalarColumn& column = batch.scalars.emplace_back();
    const TypeKind kind = plan.columns[i].value.kind;
    column.name = plan.columns[i].name;
    column.is_float = kind == TypeKind::kFloat || kind == TypeKind::kDouble;
    if (column.is_float) {
      column.floats = Spread(std::move(source.floats), source.present, plan.rows);
    } else {
      column.integers = Spread(std::move(source.integers), source.present, plan.rows);
    }
  }
  // The step frees what it took.
  decoded.bytes.reset();
  decoded.decrypted.reset();
  decoded.unpacked.reset();
  decoded.features.clear();
  return batch;
}

}  // namespace headrace::reader::dwrf
