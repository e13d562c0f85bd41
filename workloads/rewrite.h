// RewriteTable: the same rows in another layout, so that two layouts can be compared.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reader/dwrf/layout_policy.h"
#include "reader/pipeline/split.h"
#include "workloads/coread_log.h"
#include "workloads/generator.h"

namespace headrace::workloads {

enum class MapLayout : uint8_t { kKeep, kFlat, kMap };
enum class FeatureOrder : uint8_t {
  kKeep,        // as in the first stripe of the source
  kDeclared,    // by key, ascending
  kRandom,      // by `seed`
  kPopularity,  // by the log of reads
};

// Options that are not set keep what the source has.
struct RewriteOptions {
  MapLayout layout = MapLayout::kKeep;
  FeatureOrder order = FeatureOrder::kKeep;
  uint64_t seed = 1;            // of a random order
  std::vector<CoreadJob> jobs;  // for popularity
  std::optional<uint64_t> stripe_rows;
  // Chooses what no other option names; kFixed: nothing is chosen, codec and stripes stay.
  std::optional<reader::dwrf::LayoutGoal> optimize;
  std::optional<std::string> compression;
  std::optional<int> level;
  std::optional<double> min_ratio;
  std::map<std::string, reader::dwrf::ColumnOptions> columns;  // by path
  std::string cluster;         // a top-level integer or string column; empty: rows as they are
  TableEncryption encryption;  // keys also open the source
};

struct RewrittenTable {
  uint64_t files = 0, rows = 0, stripes = 0;
  uint64_t bytes_before = 0, bytes = 0;
  reader::Schema schema;
  reader::dwrf::LayoutChoice layout;
};

// Bytes of a row's values, neither encoded nor compressed: the mean of the table, by the footers of
// its files. 0 where they tell no size.
double MeanRowBytes(const reader::Table& table);

// How RewriteTable writes the table's files. Throws Error kUsage for an unknown codec, and as
// reading the table does: for the keys of maps.
reader::dwrf::WriterOptions RewriteWriterOptions(const reader::Table& table,
                                                 const RewriteOptions& options);

// Reads the table (a folder or a file) at `source` and writes it to `folder`, file by file; a
// pipeline.toml beside the source comes along. Clustering puts rows of equal values of the column
// next to each other, in the order in which the values come first, and keeps their order among
// themselves; it holds one file's rows in memory. Throws Error as OpenTable and GenerateTable do.
RewrittenTable RewriteTable(const std::string& source, const std::string& folder,
                            const RewriteOptions& options, const GenerateProgress& progress = {},
                            bool replace = false);

}  // namespace headrace::workloads
