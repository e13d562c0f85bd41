#include "reader/dwrf/stripe.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace headrace::reader::dwrf {

const char* StreamKindName(StreamKind kind) {
  constexpr const char* kNames[] = {"PRESENT",
                                    "DATA",
                                    "LENGTH",
                                    "DICTIONARY_DATA",
                                    "DICTIONARY_COUNT",
                                    "NANO_DATA",
                                    "ROW_INDEX",
                                    "IN_DICTIONARY",
                                    "STRIDE_DICTIONARY",
                                    "STRIDE_DICTIONARY_LENGTH",
                                    "BLOOM_FILTER_UTF8",
                                    "IN_MAP"};
  return kNames[static_cast<size_t>(kind)];
}

ChunkPlace PlaceOf(uint32_t stripe, const StreamInfo& stream) {
  ChunkPlace place;
  place.stripe = stripe;
  place.ordinal = stream.ordinal;
  place.node = stream.node;
  place.sequence = stream.sequence;
  place.kind = static_cast<uint8_t>(stream.kind);
  return place;
}

const char* EncodingKindName(EncodingKind kind) {
  switch (kind) {
    case EncodingKind::kDirect:
      return "DIRECT";
    case EncodingKind::kDictionary:
      return "DICTIONARY";
    case EncodingKind::kMapFlat:
      return "MAP_FLAT";
  }
  return "";
}

std::string MapKey::ToString() const { return is_text ? Printable(text) : std::to_string(integer); }

const StreamInfo* Stripe::Find(uint32_t node, uint32_t sequence, StreamKind kind) const {
  const auto wanted = std::tuple(node, sequence, kind);
  auto it = std::lower_bound(
      lookup.begin(), lookup.end(), wanted,
      [](const StreamKey& a, const auto& b) { return std::tuple(a.node, a.sequence, a.kind) < b; });
  if (it == lookup.end() || std::tuple(it->node, it->sequence, it->kind) != wanted) return nullptr;
  return &streams[it->index];
}

const Encoding* Stripe::FindEncoding(uint32_t node, uint32_t sequence) const {
  const auto wanted = std::pair(node, sequence);
  const auto it = std::lower_bound(encodings.begin(), encodings.end(), wanted,
                                   [](const auto& a, const auto& b) { return a.first < b; });
  return it == encodings.end() || it->first != wanted ? nullptr : &it->second;
}

std::span<const FlatKey> Stripe::FlatKeys(uint32_t map_node) const {
  auto it = flat_keys.find(map_node);
  return it == flat_keys.end() ? std::span<const FlatKey>() : std::span<const FlatKey>(it->second);
}

bool Stripe::IsFlatMap(uint32_t node) const {
  const Encoding* encoding = FindEncoding(node, 0);
  return encoding != nullptr && encoding->kind == EncodingKind::kMapFlat;
}

}  // namespace headrace::reader::dwrf
