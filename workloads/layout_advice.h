// AdviseLayout: what rewriting a table for each goal would give a job that reads it, measured: the
// first stripes are copied into a temporary folder, as they are and in each layout, and scanned
// there. The table may be remote: its stripes are read once.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reader/dwrf/layout_cost.h"
#include "reader/dwrf/projection.h"
#include "reader/pipeline/split.h"

namespace headrace::workloads {

struct AdvisedLayout {
  reader::dwrf::LayoutGoal goal = reader::dwrf::LayoutGoal::kFixed;  // kFixed: as the table is
  reader::dwrf::CompressionKind compression = reader::dwrf::CompressionKind::kNone;
  uint64_t stripe_rows = 0;  // of the first stripe
  uint64_t rows = 0;         // copied, and scanned in each round: the same of every layout
  double stored_bytes = 0;   // a row: stripes whole
  double read_bytes = 0;     // a row: the streams of the projection
  // CPU time a row, one per round: to fetch from the page cache, decompress, decode and align by
  // rows. Rounds of all layouts are interleaved: round i of one is compared with round i of
  // another.
  std::vector<double> cpu_ns;
};

struct LayoutAdviceOptions {
  // Rounded up to whole stripes of the table. 0: two stripes of the size advised; fewer rows, but
  // no less than one, where two have more than 512 MiB of values.
  uint64_t rows = 0;
  int rounds = 9;
  // Called many times a second; may throw to stop, and no copy is left behind.
  std::function<void()> check;
};

// First the table as it is, then balanced, read, size. Throws Error kPrivilege where the table is
// encrypted: the copies would not be; kUsage where TMPDIR names no folder or the table has no rows;
// and as OpenTable, MakePlan and FileWriter do.
std::vector<AdvisedLayout> AdviseLayout(const reader::Table& table,
                                        const reader::dwrf::Projection& projection,
                                        const LayoutAdviceOptions& options = {});

}  // namespace headrace::workloads
