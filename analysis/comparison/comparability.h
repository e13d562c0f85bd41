// Comparability: whether runs were made under the same conditions, so that what differs between
// them is what was meant to differ. What is not known of a run is said, not guessed.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

enum class ConditionSeverity : uint8_t {
  kNote,   // shown beside the figures
  kRefuse  // the two runs' figures cannot be compared; refused without --force
};

// A condition that differs, or that is known of one side alone.
struct ConditionDifference {
  std::string what;  // "cpu", "cores", "memory", "kernel", "host", "version", "table", "pipeline",
                     // "settings", "program", "kind", "cache", "accounting", "deep", "ring",
                     // "added work", "time", "state"
  std::string a, b;  // as recorded, for people; "not known" where it is not
  ConditionSeverity severity = ConditionSeverity::kNote;
  std::string text;  // a sentence: "cores: 2 (affinity) and 16 (cgroup quota)"
};

// Conditions that are meant to differ: a difference is noted, never refused.
struct IntendedDifference {
  bool pipeline = true;  // the pipeline file, its settings, or the command
  bool table = false;
  bool cache = false;  // cold against warm
  bool cores = false;  // cores and memory
};

struct Comparability {
  std::vector<ConditionDifference> differences;  // refusals first; each once

  bool refused() const;
  // "not comparable: CPU ..., another table (...)": what refuses, as one line without a full stop;
  // empty where nothing does.
  std::string Refusal() const;
};

// Compares the conditions of two runs. A pure function.
Comparability CompareConditions(const RunView& a, const RunView& b,
                                const IntendedDifference& intended = {});

// Compares the conditions of two sets of runs, each run against the first of `a`. Intended
// differences are allowed between the sides, not within one. Runs that differ within a side are
// named ("run 12"). Each difference is listed once, with the number of runs that show it.
Comparability CompareConditions(std::span<const RunView* const> a,
                                std::span<const RunView* const> b,
                                const IntendedDifference& intended = {});

}  // namespace headrace::analysis
