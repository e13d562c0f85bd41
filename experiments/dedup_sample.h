// DedupSample: how often lists repeat between rows of a table, from its first rows: in their
// present order, and as if the rows of each session were together.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reader/pipeline/dedup_plan.h"
#include "reader/pipeline/split.h"

namespace headrace::experiments {

struct DedupSampleOptions {
  reader::DedupOptions dedup;
  uint64_t batch_rows = 512;
  uint64_t rows = 65'536;       // the most rows to read; only whole splits are read
  uint64_t lists = UINT64_MAX;  // the most lists (rows times features) to read, to bound memory
  std::string session = "session_id", time = "timestamp";  // columns that say what clusters
};

// Bytes of lists / bytes left after deduplication, in one sample.
struct SampledDedup {
  double now = 1;        // rows in their present order
  double clustered = 1;  // rows clustered by session
};

// Deduplication factors of the table's first rows. Nothing where the projection has no sparse
// feature, the table has no session column, one split exceeds the options, four times `read_ns` has
// passed, or `stop` says so. Begins no further split after `read_ns`. Throws Error kPrivilege where
// a column that it needs is locked, whatever the projection says about locked columns.
std::optional<SampledDedup> SampleDedup(const reader::Table& table,
                                        reader::dwrf::Projection projection,
                                        const DedupSampleOptions& options, int64_t read_ns,
                                        const std::function<bool()>& stop);

// Reads whole splits of the table, as far as `options`, `read_ns` and `stop` allow.
reader::DedupSample ReadDedupSample(const reader::Table& table, reader::dwrf::Projection projection,
                                    const DedupSampleOptions& options, int64_t read_ns,
                                    const std::function<bool()>& stop = {});

struct DedupTotals {
  double bytes = 0, now = 0;
  std::optional<double> clustered;  // bytes that remain with rows clustered by session
};

DedupTotals SumOf(const std::vector<reader::DedupFactor>& groups);

}  // namespace headrace::experiments
