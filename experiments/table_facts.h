// What a characterization says about a table and about the part of it that a pipeline reads, as
// plain data: sizes and shares from the metadata of its files; coverage, lengths and repeats from a
// sample of rows.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "analysis/study/characterization.h"
#include "reader/pipeline/spec.h"

namespace headrace::experiments {

struct FactsOptions {
  uint64_t sample_rows = 16'384;  // the most rows to read; whole splits, at least one
  // Where popularity comes from, if anywhere: a log of jobs (`run --log-reads`), else table.json of
  // a generated table.
  std::string coread;
  std::string keys;  // of encrypted columns, as --keys
};

// Asks `stop` between splits and throws Error kInterrupted once it says so. Throws Error kUsage
// where the pipeline reads no table, as OpenTable and MapLayout do, and kBadData for a file that is
// not a log.
analysis::TableFacts ReadTableFacts(const reader::PipelineSpec& spec, const FactsOptions& options,
                                    const std::function<bool()>& stop);

}  // namespace headrace::experiments
