// The part of `headrace layout --dedup`: how often the rows of a table repeat, by groups of
// features, in the order they have and in that of sessions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "reader/pipeline/dedup_plan.h"
#include "reader/pipeline/split.h"

namespace headrace::cli {

struct DedupReportOptions {
  reader::DedupOptions dedup;
  uint64_t batch_rows = 512;
  uint64_t rows = 65'536;                                  // read at most so many, whole splits
  std::string session = "session_id", time = "timestamp";  // columns that say what clusters
};

// Bytes of lists for each that would be kept if the rows lay by session, of the table's first rows;
// nothing where the projection has no sparse feature, or the table no column of sessions. Reads no
// further split after `limit_ns`.
std::optional<double> ClusteredFactor(const reader::Table& table,
                                      reader::dwrf::Projection projection,
                                      const DedupReportOptions& options, int64_t limit_ns);

// Reads the projection's sparse features of the table's first rows, and prints text or JSON
// (headrace.dedup/1) to stdout. Throws Error kUsage when the projection has no sparse feature.
void PrintDedup(const reader::Table& table, const std::string& name,
                reader::dwrf::Projection projection, const DedupReportOptions& options, bool json);

}  // namespace headrace::cli
