// FileTail: postscript, footer and schema of a DWRF file, read and checked before anything else is
// believed.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "reader/dwrf/codec.h"
#include "reader/dwrf/dwrf.pb.h"
#include "reader/schema.h"
#include "reader/source/source.h"

namespace headrace::reader::dwrf {

namespace proto = ::headrace::dwrf::proto;

enum class CacheMode : uint8_t { kNone = 0, kIndex, kFooter, kBoth };
enum class ChecksumKind : uint8_t {
  kNone = 0,
  kCrc32 = 1,
  kMurmur3 = 2,
  kAdler32 = 3,
  kXxHash = 4
};

struct FileTail {
  proto::PostScript postscript;
  proto::Footer footer;
  Schema schema;
  CompressionKind compression = CompressionKind::kNone;
  uint64_t block_size = 0;  // largest uncompressed chunk
  uint64_t file_size = 0;
  uint64_t footer_offset = 0, footer_length = 0;
  uint64_t cache_offset = 0, cache_length = 0;  // length 0: no usable cache
  std::vector<bool> encrypted_nodes;            // per node; all false without encryption
  uint64_t number_of_rows = 0;                  // sum over stripes
};

// Throws Error kBadData, with the byte offset, for anything that is not a whole DWRF file; names
// Apache ORC, Parquet, Arrow, Nimble and compressed files as such.
FileTail ReadTail(const Source& source);

}  // namespace headrace::reader::dwrf
