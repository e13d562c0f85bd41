// Budget: what a plan may use, and what it should reach.
#pragma once
#include <cstdint>
#include <optional>

#include "analysis/program/cache_choice.h"

namespace headrace::analysis {

struct Budget {
  std::optional<double> cores;           // none: what the run had
  std::optional<uint64_t> memory_bytes;  // none: the run's own limit
  std::optional<double> target;          // batches per second; none: as many as possible
  int max_threads = 0;                   // per stage; 0: max(8, 4 per core, what it has)
  std::optional<CacheQuestion> cache;    // none: no output may be kept
  bool one_cache = false;                // the pipeline can have only one cache
  std::optional<double> price_per_core_hour, watts_per_core;
};

}  // namespace headrace::analysis
