// DedupPlan: which sparse features a run deduplicates, and in which groups. Decided once from
// measured rows, then fixed, so that results do not depend on threads or on the order of splits.
//
//   factor now            rows per unique row within one batch, rows in the table's order
//   factor if clustered   the same with the rows sorted by session and time: what `rewrite
//                         --cluster` would make of it (RecD, section 4.2)
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reader/batch/dedup_rows.h"
#include "reader/dwrf/projection.h"

namespace headrace::reader {

struct Table;
struct Split;

enum class DedupMode : uint8_t {
  kOff,
  kAuto,  // groups whose factor reaches min_factor, in rows and in bytes
  kOn     // all groups
};

// [dedup] of pipeline.toml.
struct DedupOptions {
  DedupMode mode = DedupMode::kOff;
  DedupScope scope = DedupScope::kNeighbours;
  double min_factor = 1.3;
  // Groups by feature names; empty: measured ones.
  std::vector<std::vector<std::string>> groups;
};

// The contents of a sample's rows as one hash per list, which is enough to count equal lists.
struct DedupSample {
  struct Feature {
    std::string name;
    bool weighted = false;
    std::vector<uint64_t> hashes;  // one per row
    std::vector<uint32_t> sizes;   // bytes of each row's ids and weights
    uint64_t bytes = 0;            // of all lists
  };
  uint64_t rows = 0;
  std::vector<Feature> features;         // sparse ones, in the order of the batch
  std::vector<int64_t> sessions, times;  // one per row; empty: not known
};
// Appends the rows of a batch without groups to the sample. `session` and `time` name plain columns
// of the batch; if it has no such column, the sample has none of these values.
void AddToSample(const FlatMapBatch& batch, const std::string& session, const std::string& time,
                 DedupSample* sample);

struct DedupFactor {
  std::string name;               // of the group: its features, joined by '+'
  std::vector<std::string> keys;  // in the order of the batch
  bool weighted = false;
  uint64_t bytes = 0;  // of the sample's lists
  double now = 1;
  // Bytes of all rows / bytes of the unique rows and the inverse. It is lower than `now` if the
  // lists that repeat are not the long ones, as with features that most rows lack.
  double bytes_now = 1;
  std::optional<double> clustered;  // nothing where sessions are not known
};

// The factor of one group of the sample's features (indices), in batches of `batch_rows` rows.
DedupFactor MeasureGroup(const DedupSample& sample, const std::vector<size_t>& features,
                         DedupScope scope, uint64_t batch_rows);
// The groups asked for, or else measured ones: features join a group while that costs less than 5 %
// of the bytes saved. With `by_clustered`, factors with clustered rows decide. Throws Error kUsage
// for a feature in two groups, one that is not in the sample (with the nearest name), and a group
// of features with and without weights. Work grows with rows times features; `give_up` is asked
// between features, and once it says so there are no groups.
std::vector<DedupFactor> MeasureGroups(const DedupSample& sample, const DedupOptions& options,
                                       uint64_t batch_rows, bool by_clustered = false,
                                       const std::function<bool()>& give_up = {});

// The groups a run uses.
struct DedupPlan {
  DedupScope scope = DedupScope::kNeighbours;
  std::vector<DedupFactor> groups;
};

// All rows of a split as the pipeline's first batch: for samples, before anything runs.
FlatMapBatch ReadSplit(const Table& table, const Split& split, const dwrf::Projection& projection);

// Makes the plan from a sample of the table: kSampleSplits splits with rows, spread over the table.
// With skip_corrupt, a split that cannot be read is replaced by the next one that can.
constexpr size_t kSampleSplits = 2;
DedupPlan PlanDedup(const Table& table, const dwrf::Projection& projection,
                    const DedupOptions& options, uint64_t batch_rows, bool skip_corrupt = false);

// Makes group `g` of the plan in a batch, which has the features of the sample. Groups are made in
// their order.
DedupBytes Deduplicate(const DedupPlan& plan, size_t g, FlatMapBatch* batch,
                       RowHash hash = HashBytes);

}  // namespace headrace::reader
