// The tail of a DWRF file: postscript, footer and stripe metadata cache (FORMAT 2, 3, 5, 12).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/dwrf/dwrf.pb.h"
#include "reader/schema.h"
#include "reader/source/source.h"

namespace headrace::reader::dwrf {

namespace proto = ::headrace::dwrf::proto;

// Numbers are DWRF's, where ZSTD is 4 and LZ4 is 5 (Apache ORC has them swapped).
enum class CompressionKind : uint8_t { kNone = 0, kZlib, kSnappy, kLzo, kZstd, kLz4, kGzip };
const char* CompressionKindName(CompressionKind kind);  // "NONE", "ZLIB", ...

constexpr uint64_t kDefaultBlockSize = 262144;
// Chunks of more uncompressed bytes than this are refused whatever the postscript declares.
constexpr uint64_t kMaxBlockSize = uint64_t{256} << 20;

enum class CacheMode : uint8_t { kNone = 0, kIndex = 1, kFooter = 2, kBoth = 3 };

// All sizes and offsets are checked against the file. A value; immutable once read.
struct FileTail {
  proto::PostScript postscript;
  proto::Footer footer;
  Schema schema;
  CompressionKind compression = CompressionKind::kNone;
  uint64_t block_size = kDefaultBlockSize;  // largest uncompressed chunk, at most kMaxBlockSize
  uint64_t postscript_length = 0;
  uint64_t footer_offset = 0;               // in the file
  uint64_t cache_offset = 0;                // in the file
  CacheMode cache_mode = CacheMode::kNone;  // kNone also where the file's cache is unusable
  std::vector<uint64_t> cache_offsets;      // section borders within the cache; empty = no cache
  std::shared_ptr<const std::string> cache; // the cache's bytes, when they came with the tail
  std::vector<bool> encrypted_nodes;        // by node: belongs to an encryption group
  std::vector<uint64_t> first_rows;         // by stripe, and the total at the end

  bool HasEncryption() const;
};

// Throws Error kBadData, with the byte offset, for damaged files, and for Apache ORC files by name.
FileTail ReadTail(const Source& source);

// A stripe's copy of its index area (`index` true) or footer in the cache: {offset in the file, length}; none if absent.
struct CacheSection {
  uint64_t offset = 0, length = 0;
};
std::optional<CacheSection> FindCacheSection(const FileTail& tail, size_t stripe, bool index);

}  // namespace headrace::reader::dwrf
