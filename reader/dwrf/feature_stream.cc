#include "reader/dwrf/feature_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "reader/batch/array.h"
#include "reader/batch/row_map_batch.h"
#include "reader/dwrf/codec.h"
#include "reader/dwrf/decode/bool_expand.h"
#include "reader/dwrf/decode/presence_expand.h"
#include "reader/dwrf/decode/rle_simd.h"
#include "reader/dwrf/decode_groups.h"
#include "reader/dwrf/value_decoder.h"

namespace headrace::reader::dwrf {
namespace {

constexpr size_t kChunkHeaderBytes = 3;
constexpr size_t kStreamAlignment = 64;
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
            uint64_t max_bytes, Arena* arena) {
  while (!stored.empty()) {
    if (arena->end() > max_bytes) {
      Damaged(plan, stream,
              fmt::format("the streams of the stripe unpack to more than {}",
                          FormatBytes(static_cast<double>(max_bytes))));
    }
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
  column.dictionary = std::move(feature->dictionary);
  if (column.dictionary) column.decoded_values = column.values.size();
  column.weights = std::move(feature->weights);
  column.weighted = plan.kind == FeatureKind::kWeightedSparse;
}

}  // namespace

// The column of plan feature `feature` where it was decoded with its group, else null.
static SparseColumn* GroupedColumn(GroupedFeatures& grouped, size_t feature) {
  const auto place = std::find(grouped.features.begin(), grouped.features.end(), feature);
  return place == grouped.features.end() ? nullptr
                                         : &grouped.columns[place - grouped.features.begin()];
}

UnpackedStripe Decompress(FetchedStripe&& fetched, uint64_t max_bytes) {
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
  // Streams may overlap in the file, so that their lengths say little about it.
  Arena arena(plan.compression == CompressionKind::kNone
                  ? 0
                  : std::min(2 * fetched.stream_bytes, max_bytes) + plan.block_size);
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
    Unpack(stored, plan, i, max_bytes, &arena);
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

DecodedStripe Decode(UnpackedStripe&& unpacked, const GroupRequests* groups,
                     const DictionaryRequest* dictionaries) {
  DecodedStripe decoded;
  const StripePlan& plan = unpacked.plan;
  ValueDecoder decoder(unpacked.plan, unpacked.streams, dictionaries);
  for (const FeaturePlan& feature : plan.features) {
    if (feature.map_present == NodePlan::kNone ||
        MapPresent(decoded, feature.map_present) != nullptr)
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
    if (feature.map == NodePlan::kNone) {
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
