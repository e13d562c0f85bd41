// The account of a run's memory budget (pipeline.memory): what splits took of it, and how long they
// waited for that (docs/pipeline.md, "Memory").
#pragma once
#include <optional>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct MemoryAccount {
  const ResourceRow* row = nullptr;  // of the run, which it must not outlive
  double room_bytes = 0;             // that splits may be charged with at once
  double split_bytes = 0;            // a split's charge, mean
};

// Empty where the run has no budget, or no split was charged while its need was known.
std::optional<MemoryAccount> MemoryAccountOf(const RunView& run);

}  // namespace headrace::analysis
