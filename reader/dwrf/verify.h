// Verification: metadata held against the rows. A checksum covers a stripe's bytes, and anybody can
// compute it again after a change; row counts, statistics and row indexes are a second account of
// the same rows, and readers believe it: they skip by statistics and seek by positions.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "reader/dwrf/file_reader.h"

namespace headrace::reader::dwrf {

// What was held against what was decoded, all of it equal.
struct Verification {
  uint64_t stripes = 0, rows = 0;
  uint64_t checksums = 0;                // of stripes
  uint64_t footer_nodes = 0;             // nodes with statistics in the footer
  uint64_t index_entries = 0;            // row index entries with statistics
  uint64_t seeks = 0;                    // strides read again from the positions of the row index
  std::set<std::string> figures;         // of the statistics: "count", "minimum", ...
  std::vector<std::string> not_checked;  // what could not be, and why
};

// Reads every row of every column that is open, twice where there is a row index: in order, and
// from each stride's positions. Throws Error kBadData naming file, stripe, column, and what was
// expected and found, at the first difference; as RowReader does for damage. Memory: one batch of
// about 32 MB, and of one stripe the row indexes and statistics per key of the flattened maps: a
// stripe of which these need more than 256 MB and more than 64 times its stored bytes, or more than
// 1 GB, is kBadData, and so is one of more strides than its bytes can mean. Time: reading the
// strides again ends where more than 1 GB and 1024 times the stripe's stored bytes were unpacked.
Verification Verify(const std::shared_ptr<const FileReader>& file);

// For people: "verified: ...", one line for each kind of thing.
std::string VerificationText(const Verification& verification);

}  // namespace headrace::reader::dwrf
