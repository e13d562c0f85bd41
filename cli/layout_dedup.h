// The part of `headrace layout --dedup`: how often the rows of a table repeat, by groups of
// features, in their present order and ordered by session.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "experiments/dedup_sample.h"

namespace headrace::cli {

// Reads the projection's sparse features of the table's first rows, and prints text or JSON
// (headrace.dedup/1) to stdout. Throws Error kUsage when the projection has no sparse feature, and
// kPrivilege as SampleDedup.
void PrintDedup(const reader::Table& table, const std::string& name,
                reader::dwrf::Projection projection, const experiments::DedupSampleOptions& options,
                bool json);

}  // namespace headrace::cli
