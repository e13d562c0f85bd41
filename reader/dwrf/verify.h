// Verification: checks metadata against the rows. A checksum only covers a stripe's bytes, and
// anybody can recompute it after a change. Row counts, statistics and row indexes describe the same
// rows a second time, and readers rely on them: they skip by statistics and seek by positions.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "reader/dwrf/file_reader.h"

namespace headrace::reader::dwrf {

// Counts of what was compared with the decoded rows and found equal.
struct Verification {
  uint64_t stripes = 0, rows = 0;
  uint64_t checksums = 0;                // of stripes
  uint64_t footer_nodes = 0;             // nodes with statistics in the footer
  uint64_t index_entries = 0;            // row index entries with statistics
  uint64_t seeks = 0;                    // strides read again from the positions of the row index
  std::set<std::string> figures;         // of the statistics: "count", "minimum", ...
  std::vector<std::string> not_checked;  // what could not be checked, and why
};

// Reads every row of every column that is open, twice where there is a row index: in order, and
// from each stride's positions. Throws Error kBadData naming file, stripe, column, and what was
// expected and found, at the first difference; as RowReader does for damage. Memory: one batch of
// about 32 MB, plus one stripe's row indexes and its statistics per key of flattened maps. A stripe
// is kBadData if these need more than 1 GB, or more than both 256 MB and 64 times its stored bytes,
// or if it claims more strides than its bytes can hold. Time: reading the strides again stops once
// more than 1 GB plus 1024 times the stripe's stored bytes was unpacked.
Verification Verify(const std::shared_ptr<const FileReader>& file);

// For people: "verified: ...", one line for each kind of thing.
std::string VerificationText(const Verification& verification);

}  // namespace headrace::reader::dwrf
