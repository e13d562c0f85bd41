// DedupSample: how often the rows of a table repeat, from its first rows, as they lie and as they
// would if sessions were together.
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
  uint64_t rows = 65'536;       // read at most so many, whole splits
  uint64_t lists = UINT64_MAX;  // of these rows and all features: at most so many, for the memory
  std::string session = "session_id", time = "timestamp";  // columns that say what clusters
};

// Bytes of lists for each that would be kept, of one sample.
struct SampledDedup {
  double now = 1;        // as its rows lie
  double clustered = 1;  // by session
};

// Of the table's first rows; nothing where the projection has no sparse feature, the table no
// column of sessions, one split is too much for the options, `read_ns` times four have passed, or
// `stop` says so. Reads no further split after `read_ns`. Throws Error kPrivilege where a column
// that it needs is locked, whatever the projection says of those.
std::optional<SampledDedup> SampleDedup(const reader::Table& table,
                                        reader::dwrf::Projection projection,
                                        const DedupSampleOptions& options, int64_t read_ns,
                                        const std::function<bool()>& stop);

// Whole splits of the table, as far as `options`, `read_ns` and `stop` let it.
reader::DedupSample ReadDedupSample(const reader::Table& table, reader::dwrf::Projection projection,
                                    const DedupSampleOptions& options, int64_t read_ns,
                                    const std::function<bool()>& stop = {});

struct DedupTotals {
  double bytes = 0, now = 0;
  std::optional<double> clustered;  // bytes that remain
};

DedupTotals SumOf(const std::vector<reader::DedupFactor>& groups);

}  // namespace headrace::experiments
