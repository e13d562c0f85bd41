// What a characterization says of a table and of what a pipeline takes of it, as plain data: sizes
// and shares from the metadata of its files, coverage, lengths and repeats from a sample of rows.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "analysis/study/characterization.h"
#include "reader/pipeline/spec.h"

namespace headrace::experiments {

struct FactsOptions {
  uint64_t sample_rows = 16'384;  // read at most so many, whole splits, one at least
  // Where popularity comes from, if anywhere: a log of jobs (`run --log-reads`), else table.json of
  // a generated table.
  std::string coread;
  std::string keys;  // of encrypted columns, as --keys
};

// `stop` is asked between splits; once it says so, Error kInterrupted. Throws Error kUsage where
// the pipeline reads no table, as OpenTable and MapLayout do, and kBadData for a log that is none.
analysis::TableFacts ReadTableFacts(const reader::PipelineSpec& spec, const FactsOptions& options,
                                    const std::function<bool()>& stop);

}  // namespace headrace::experiments
