// The statistics of a file: what its footer says about each node, and whether the rows agree.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reader/dwrf/encode/statistics_builder.h"
#include "reader/dwrf/file_reader.h"

namespace headrace::reader::dwrf {

// Per node, including those of encrypted columns that are open. Empty where the footer has none.
// Throws Error kBadData.
std::vector<proto::ColumnStatistics> StoredStatistics(const FileReader& file);

// A figure that metadata and rows disagree on.
struct Disagreement {
  std::string figure;           // "count", "maximum"
  std::string stored, decoded;  // "17", "16"
};

// Compares the figures in `stored` with those of `decoded`, for a node of type `kind`. Adds the
// names of the compared figures to `compared`, and returns those that differ. Sums of
// floating-point numbers may differ by rounding; only the first StatisticsBuilder::kMaxBoundBytes +
// 1 bytes of string bounds are compared. Not compared: estimated sizes, bounds of floats where a
// value is NaN, and string bounds without `trust_text`.
std::vector<Disagreement> Compare(const proto::ColumnStatistics& stored,
                                  const StatisticsBuilder& decoded, TypeKind kind, bool trust_text,
                                  std::set<std::string>* compared);

}  // namespace headrace::reader::dwrf
