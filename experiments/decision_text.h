// A tuner's decision, read back from the store: its detail, which is JSON that any program may have
// written, and the whole decision as text for people.
//
// These members of the detail are read (schema headrace.decision/1,
// docs/schema/decision.schema.json): "effect_ratio", "effect_interval": {"low", "high"},
// "pairs_count", "then_limited_by". The rest of a decision has columns of its own.
#pragma once
#include <string>

#include "analysis/run/read_run.h"
#include "analysis/run/run_view.h"

namespace headrace::experiments {

struct DecisionDetail {
  // It is an object of at most 1 MiB and 16 levels, so it may be passed on as JSON.
  bool whole = false;
  analysis::Real effect, effect_low, effect_high;  // as shares: 0.1 is 10 % faster
  double pairs = 0;                                // pairs of blocks compared
  std::string then_limited_by;
};

// Members that are missing, damaged or of another type stay empty; throws nothing.
DecisionDetail ReadDetail(const std::string& detail_json);

// Several lines, each ended by a newline. Nothing from the store can break a line or reach a
// terminal as a control sequence.
std::string DecisionText(const analysis::DecisionRow& decision);

}  // namespace headrace::experiments
