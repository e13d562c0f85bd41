// The statistics of a file: what its footer says of each node, and whether what was read agrees.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reader/dwrf/encode/statistics_builder.h"
#include "reader/dwrf/file_reader.h"

namespace headrace::reader::dwrf {

// Per node, as far as the file tells: with those of encrypted columns that are open. Empty where
// the footer has none. Throws Error kBadData.
std::vector<proto::ColumnStatistics> StoredStatistics(const FileReader& file);

// A figure that metadata and rows disagree on.
struct Disagreement {
  std::string figure;           // "count", "maximum"
  std::string stored, decoded;  // "17", "16"
};

// Holds the figures that `stored` has against `decoded`, the values of a node of type `kind`, adds
// their names to `compared`, and returns those that differ. Sums of floating numbers may differ by
// rounding; of string bounds the first StatisticsBuilder::kMaxBoundBytes + 1 bytes are compared.
// Not held: estimated sizes, bounds of floats where a value is NaN, and string bounds without
// `trust_text`.
std::vector<Disagreement> Compare(const proto::ColumnStatistics& stored,
                                  const StatisticsBuilder& decoded, TypeKind kind, bool trust_text,
                                  std::set<std::string>* compared);

}  // namespace headrace::reader::dwrf
