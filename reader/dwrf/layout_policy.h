// LayoutPolicy: the free choices of a writer, fixed before the first row: which top-level maps are
// flattened and in what order their features lie, which columns may use a dictionary, which streams
// are worth compressing. The file itself records the choices (Metadata).
//
// Columns are named by Schema::Path: "label", "sparse" (the map), "sparse.value" (what each key
// holds), "sparse.value.element" (the ids). In a flattened map an option on "sparse.value..." holds
// for every key.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reader/dwrf/crypto/file_keys.h"
#include "reader/dwrf/layout_cost.h"
#include "reader/dwrf/stripe.h"
#include "reader/dwrf/tail.h"
#include "reader/schema.h"

namespace headrace::reader::dwrf {

enum class DictionaryUse : uint8_t {
  // Where the share of distinct values is below the threshold and, without a goal, the encoded
  // streams become smaller, but never inside flattened maps; with a goal: where it costs less.
  kAuto,
  kNever,   // DIRECT
  kAlways,  // DICTIONARY in every stripe where the column has a value
  kShared,  // integers inside a flattened map: one dictionary per stripe for all keys, at sequence
            // 0
};

struct ColumnOptions {
  DictionaryUse dictionary = DictionaryUse::kAuto;
  bool compress = true;  // false: this node's streams are stored original
  int level = 0;         // 0: the file's level; else a level of zstd or zlib, as there
  double min_ratio = 0;  // 0: the file's
};

struct WriterOptions {
  // With a goal the writer tries for each stream what the format has, and takes what costs a reader
  // least (layout_cost.h). Options of a column come before it.
  LayoutGoal goal = LayoutGoal::kFixed;
  bool choose_codec = false;  // with a goal: none, lz4 or zstd, tried on the first stripe
  bool ratio_by_goal = true;  // with a goal: it decides which chunks to compress, not min_ratio
  CompressionKind compression = CompressionKind::kZstd;  // kNone, kZlib, kZstd, kLz4, kSnappy
  int level = 3;                                         // zstd 1..19, zlib 1..12; others ignore it
  double min_ratio =
      1.15;  // a chunk is stored original unless plain size >= min_ratio x compressed size
  uint64_t min_compress_bytes = 128;  // smaller chunks are not tried
  uint64_t block_size = 256 << 10;    // largest plain chunk, 1 KiB .. 8 MiB - 1
  uint64_t stripe_bytes =
      64 << 20;  // a stripe ends at the first multiple of 256 rows with this many logical bytes
  uint64_t stripe_rows = 0;  // > 0: a stripe ends after exactly this many rows, whatever its bytes
  uint32_t row_index_stride = 10'000;  // 0: no row index
  std::vector<std::string> flat_maps;  // top-level map columns written as MAP_FLAT
  // Per flattened map: the features to put first, in this order; the rest follows by key,
  // ascending. Streams of a feature are adjacent, so features that are read together become one
  // read when they are neighbours here.
  std::map<std::string, std::vector<MapKey>> feature_order;
  std::map<std::string, ColumnOptions> columns;  // by path
  double integer_dictionary_threshold = 0.7;     // kAuto: distinct / total at most this
  double string_dictionary_threshold = 0.8;
  bool stripe_cache = true;
  uint64_t stripe_cache_bytes = 8 << 20;        // sections beyond this are left out
  bool checksum = true;                         // XXH64 of each stripe
  bool use_vints = true;                        // false: fixed-width integers, for testing readers
  std::map<std::string, std::string> metadata;  // added to the file's user metadata
  // Groups of top-level columns to encrypt, under keys of `keys`. The data keys are drawn anew for
  // every file, so that files of equal rows differ.
  std::vector<EncryptionGroupSpec> encryption;
  std::shared_ptr<const KeyRing> keys;
};

class LayoutPolicy {
 public:
  // Throws Error kUsage for options that do not fit the schema (an unknown path or map, a flattened
  // map with a key type that cannot be one, a block size out of range), naming the option;
  // kPrivilege for an encryption key that the ring does not have.
  LayoutPolicy(const Schema& schema, WriterOptions options);

  const WriterOptions& options() const { return options_; }
  // Before anything was encoded.
  void SetCompression(CompressionKind kind) { options_.compression = kind; }
  bool IsFlat(uint32_t node) const { return flat_[node]; }
  // True for the value node of a flattened map and all below it.
  bool InFlat(uint32_t node) const { return in_flat_[node]; }
  const ColumnOptions& column(uint32_t node) const { return columns_[node]; }
  // 0: not encrypted; else 1 + the place of its group in options().encryption.
  uint32_t GroupOf(uint32_t node) const { return group_of_[node]; }
  // Sorts before another key of the same map: place in feature_order, then key.
  uint64_t FeatureRank(uint32_t map_node, const MapKey& key) const;
  // The user metadata: orc.writer.name and .version, headrace.version, headrace.* for the choices
  // above, and the caller's own items, which win.
  std::map<std::string, std::string> Metadata() const;

 private:
  WriterOptions options_;
  std::vector<bool> flat_, in_flat_;
  std::vector<ColumnOptions> columns_;
  std::vector<uint32_t> group_of_;
  std::map<uint32_t, std::map<MapKey, uint64_t>> ranks_;
};

}  // namespace headrace::reader::dwrf
