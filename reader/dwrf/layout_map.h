// LayoutMap: where everything is in the files of a table, and which bytes a projection reads,
// over-reads and skips.
//
//   file      | header | stripe: index area, data area, footer | stripe ... | cache | footer |
//   streams of one stripe      label  dense:3  dense:9  sparse:17  sparse:20
//   wanted                       x                x                   x
//   read in one piece                             ------------------------
//                                                 (sparse:17 is over-read)
//
// Made from the metadata alone; no stream is read. Bytes of the index and data areas are counted
// once each: wanted + over-read + skipped = all of them. Streams that overlap (no writer makes
// such) count as wanted where any of them is.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/projection.h"

namespace headrace::reader::dwrf {

struct LayoutOptions {
  const Projection* projection = nullptr;  // null: the map alone
  std::string projection_name;             // for people: where the projection comes from
  uint64_t max_gap_bytes = ReadPlanOptions().max_gap_bytes;
  uint64_t max_read_bytes = ReadPlanOptions().max_read_bytes;
};

// Sums over streams; `streams` counts them.
struct StoredBytes {
  uint64_t streams = 0, stored_bytes = 0;
  uint64_t wanted_bytes = 0, over_read_bytes = 0;
  uint64_t skipped_bytes() const { return stored_bytes - wanted_bytes - over_read_bytes; }
  void Add(const StoredBytes& other);
};

// A top-level column; its row index is counted separately.
struct ColumnLayout {
  std::string name, type;
  bool flattened = false;  // in at least one stripe
  bool encrypted = false;  // some part of it cannot be read without a key
  uint64_t keys = 0;       // distinct keys of a flattened map
  uint64_t wanted_keys = 0;
  uint64_t index_bytes = 0;
  StoredBytes data;
};

// One key of a flattened map.
struct KeyLayout {
  uint32_t column = 0;  // into LayoutMap::columns
  MapKey key;
  uint64_t stripes = 0;       // stripes that have it
  uint64_t first_offset = 0;  // of its first stream within the first stripe that has it
  uint32_t first_stripe = 0;  // over all files, and
  StoredBytes data;
  bool wanted = false;
};

// The projection's reads under one rule for joining them.
struct ReadRule {
  uint64_t max_gap_bytes = 0;
  uint64_t reads = 0, read_bytes = 0;
};

struct FileLayout {
  std::string name;
  uint64_t file_bytes = 0, rows = 0, stripes = 0;
  uint64_t data_bytes = 0, index_bytes = 0, stripe_footer_bytes = 0;
  uint64_t cache_bytes = 0, tail_bytes = 0;  // tail: file footer and postscript
  uint64_t other_bytes = 0;                  // the header, and whatever nothing points to
  CompressionKind compression = CompressionKind::kNone;
  uint64_t block_bytes = 0;
};

struct LayoutMap {
  LayoutOptions options;
  std::vector<FileLayout> files;
  std::vector<ColumnLayout> columns;
  std::vector<KeyLayout> keys;               // by place: stripe, then offset
  std::map<std::string, StoredBytes> kinds;  // by stream kind, ROW_INDEX among them
  uint64_t unnamed_bytes = 0;                // in the stripes' areas, of no stream

  // Totals of the projection over all stripes; zero without a projection.
  uint64_t wanted_streams = 0, wanted_bytes = 0;
  uint64_t reads = 0, read_bytes = 0;
  uint64_t absent_features = 0;   // projected, and in no stripe at all
  std::vector<ReadRule> rules;    // reads with other gaps, ascending
  uint64_t stripe_bytes() const;  // index + data areas of all files
  uint64_t over_read_bytes() const { return read_bytes - wanted_bytes; }
  uint64_t skipped_bytes() const { return stripe_bytes() - read_bytes; }
};

// Throws what MakePlan throws (an unknown column, an encrypted one), and Error kBadData for
// damage. The files have one schema.
LayoutMap MapLayout(const std::vector<std::shared_ptr<const FileReader>>& files,
                    const LayoutOptions& options);

// For people: the map in about a screen; with `keys` every key of every flattened map on a line of
// its own, in file order.
std::string LayoutText(const LayoutMap& map, bool keys);
// All of it (schema headrace.layout/1).
std::string LayoutJson(const LayoutMap& map);

}  // namespace headrace::reader::dwrf
