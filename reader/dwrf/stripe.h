// Stripe: the parsed footer of one stripe: where each stream lies and how each column is encoded (FORMAT 6, 9).
//
// A stream is named by (node, sequence, kind). Node: type in schema pre-order. Sequence: 0 for ordinary columns; in the value
// subtree of a flattened map 1, 2, 3 ... one per key, numbered anew in each stripe.
#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/dwrf/tail.h"

namespace headrace::reader::dwrf {

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
constexpr uint32_t kNumStreamKinds = 12;
const char* StreamKindName(StreamKind kind);  // "PRESENT", "DATA", ...

struct StreamInfo {
  uint32_t node = 0, sequence = 0;
  StreamKind kind = StreamKind::kData;
  uint64_t offset = 0;  // in the file; the whole stream lies inside its stripe
  uint64_t length = 0;  // stored bytes, may be 0
  bool use_vints = true;
};

enum class EncodingKind : uint8_t { kDirect = 0, kDictionary = 1, kMapFlat = 4 };
const char* EncodingKindName(EncodingKind kind);  // "DIRECT", "DICTIONARY", "MAP_FLAT"

struct Encoding {
  EncodingKind kind = EncodingKind::kDirect;
  uint32_t dictionary_size = 0;  // declared, unchecked: bound it by what the streams hold
};

// A key of a flattened map: an integer, or text for string and binary keys.
struct MapKey {
  bool is_text = false;
  int64_t integer = 0;
  std::string text;

  static MapKey Integer(int64_t value) { return {false, value, {}}; }
  static MapKey Text(std::string value) { return {true, 0, std::move(value)}; }
  bool operator==(const MapKey&) const = default;
  // Integers numerically, before texts by unsigned bytes.
  std::strong_ordering operator<=>(const MapKey& other) const;
  std::string ToString() const;  // "17", "key-null"
};

struct FlatKey {
  MapKey key;
  uint32_t sequence = 0;
};

struct EncodingEntry {
  uint32_t node = 0, sequence = 0;
  Encoding encoding;
};

struct Stripe {
  uint32_t index = 0;
  uint64_t first_row = 0, rows = 0;
  uint64_t offset = 0, index_length = 0, data_length = 0, footer_length = 0;
  std::vector<StreamInfo> streams;       // in the footer's order
  std::vector<EncodingEntry> encodings;  // in the footer's order

  // The stream, or null if the stripe has none of that name. An absent stream and one of length 0 mean the same.
  const StreamInfo* Find(uint32_t node, uint32_t sequence, StreamKind kind) const;
  const Encoding* FindEncoding(uint32_t node, uint32_t sequence) const;
  // The keys of a flattened map in this stripe by ascending sequence; empty for other nodes. Every key has an IN_MAP stream.
  std::span<const FlatKey> FlatKeys(uint32_t map_node) const;

  // Filled by ParseStripe.
  std::unordered_map<uint64_t, uint32_t> stream_index;    // by StreamName
  std::unordered_map<uint64_t, uint32_t> encoding_index;  // by StreamName with kind 0
  std::unordered_map<uint32_t, std::vector<FlatKey>> flat_keys;
};

// From the uncompressed bytes of a stripe footer. `footer_offset` is its place in the file, for messages. Throws Error kBadData
// when streams leave the stripe, names repeat, kinds are unknown, or a flattened map's keys lack streams or encodings.
Stripe ParseStripe(const FileTail& tail, const std::string& file, size_t index, std::span<const uint8_t> footer,
                   uint64_t footer_offset);

}  // namespace headrace::reader::dwrf
