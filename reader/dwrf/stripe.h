// Stripe: the rows [first_row, first_row + rows) of one file and the checked byte range of each of
// their streams. Holds no data. Made by FileReader::ReadStripe; immutable.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/dwrf/crypto/cipher.h"

namespace headrace::reader::dwrf {

class FileKeys;

// Numbers are the format's.
enum class StreamKind : uint8_t {
  kPresent = 0,
  kData,
  kLength,
  kDictionaryData,
  kDictionaryCount,
  kNanoData,
  kRowIndex,
  kInDictionary,
  kStrideDictionary,
  kStrideDictionaryLength,
  kBloomFilterUtf8,
  kInMap,
};
const char* StreamKindName(StreamKind kind);  // "PRESENT", "DATA", ...
inline bool IsIndexStream(StreamKind kind) {
  return kind == StreamKind::kRowIndex || kind == StreamKind::kBloomFilterUtf8;
}

struct StreamInfo {
  uint32_t node = 0, sequence = 0;
  StreamKind kind = StreamKind::kData;
  uint64_t offset =
      0;  // absolute in the file; [offset, offset + length) lies within the stripe's streams
  uint64_t length = 0;  // stored bytes
  bool use_vints = true;
  uint32_t column = 0;  // informational
  uint32_t group = 0;   // 0: not encrypted; else 1 + the index of its encryption group
  // Number within its group in the stripe: data streams from 0, index streams from 2^31.
  uint32_t ordinal = 0;
};

// The ChunkPlace of the stream for encryption. Each chunk must add its own position and whether it
// is original.
ChunkPlace PlaceOf(uint32_t stripe, const StreamInfo& stream);

enum class EncodingKind : uint8_t { kDirect = 0, kDictionary = 1, kMapFlat = 4 };
const char* EncodingKindName(EncodingKind kind);
struct Encoding {
  EncodingKind kind = EncodingKind::kDirect;
  uint32_t dictionary_size = 0;
};

// A key of a flattened map.
struct MapKey {
  bool is_text = false;
  int64_t integer = 0;
  std::string text;
  static MapKey Of(int64_t value) { return {false, value, {}}; }
  static MapKey Of(std::string value) { return {true, 0, std::move(value)}; }
  std::strong_ordering operator<=>(const MapKey&) const = default;
  bool operator==(const MapKey&) const = default;
  std::string ToString() const;  // "17", or the text with control characters escaped
};

struct FlatKey {
  MapKey key;
  uint32_t sequence =
      0;  // 1.. within this stripe; the same key has other sequences in other stripes
};

struct Stripe {
  uint32_t index = 0;
  uint64_t first_row = 0, rows = 0;  // rows of the file
  uint64_t offset = 0, index_length = 0, data_length = 0, footer_length = 0;
  // In the order of the stripe footer: unencrypted streams, then those of each group that is open.
  std::vector<StreamInfo> streams;
  std::vector<std::pair<std::pair<uint32_t, uint32_t>, Encoding>> encodings;  // by (node, sequence)
  std::map<uint32_t, std::vector<FlatKey>> flat_keys;  // map node -> keys, by ascending sequence

  std::shared_ptr<const FileKeys> keys;  // of the file

  // Null when the stripe has no such stream.
  const StreamInfo* Find(uint32_t node, uint32_t sequence, StreamKind kind) const;
  const Encoding* FindEncoding(uint32_t node, uint32_t sequence) const;
  // Keys of a MAP_FLAT map in this stripe; empty for other nodes.
  std::span<const FlatKey> FlatKeys(uint32_t map_node) const;
  bool IsFlatMap(uint32_t node) const;

  // (node, sequence, kind) -> index into `streams`, sorted; filled by ReadStripe.
  struct StreamKey {
    uint32_t node, sequence;
    StreamKind kind;
    uint32_t index;
  };
  std::vector<StreamKey> lookup;
};

}  // namespace headrace::reader::dwrf
