// A tuner's decision, read back from the store: its detail, which is JSON that any program may have
// put there, and all of it as text for people.
//
// Of a detail (schema headrace.decision/1, docs/schema/decision.schema.json) these are read:
// "effect_ratio", "effect_interval": {"low", "high"}, "pairs_count", "then_limited_by". The rest of
// a decision has columns of its own.
#pragma once
#include <string>

#include "analysis/run/read_run.h"
#include "analysis/run/run_view.h"

namespace headrace::experiments {

struct DecisionDetail {
  bool whole = false;  // it is an object of at most 1 MiB and 16 levels: may be handed on as JSON
  analysis::Real effect, effect_low, effect_high;  // shares: 0.1 is 10 % faster
  double pairs = 0;                                // of blocks compared
  std::string then_limited_by;
};

// What is missing, damaged or of another type is not there; throws nothing.
DecisionDetail ReadDetail(const std::string& detail_json);

// Several lines, the last with its end. Nothing in it can break a line or a terminal.
std::string DecisionText(const analysis::DecisionRow& decision);

}  // namespace headrace::experiments
