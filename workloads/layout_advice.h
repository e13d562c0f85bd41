// AdviseLayout: what rewriting a table for each goal would give a job that reads it, measured: the
// first rows are written in each layout into a temporary folder, and scanned there, as they are in
// the table.
#pragma once
#include <cstdint>
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
  uint64_t rows = 0;         // scanned in each round
  double stored_bytes = 0;   // a row: stripes whole
  double read_bytes = 0;     // a row: the streams of the projection
  // CPU time a row, one per round: to fetch from the page cache, decompress, decode and align by
  // rows. Rounds of all layouts are interleaved: round i of one is compared with round i of
  // another.
  std::vector<double> cpu_ns;
};

struct LayoutAdviceOptions {
  uint64_t rows = 0;  // at most; 0: two stripes of the size advised, or 512 MiB
  int rounds = 9;
};

// First the table as it is, then balanced, read, size. Throws Error kPrivilege where the table is
// encrypted: the copies would not be; and as OpenTable, MakePlan and FileWriter do.
std::vector<AdvisedLayout> AdviseLayout(const reader::Table& table,
                                        const reader::dwrf::Projection& projection,
                                        const LayoutAdviceOptions& options = {});

}  // namespace headrace::workloads
