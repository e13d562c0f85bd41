// A comparison of runs that were recorded before.
#pragma once
#include <cstdint>
#include <string>

#include "dashboards/comparison.h"
#include "dashboards/comparison_notes.h"
#include "experiments/comparison_terms.h"

namespace headrace::experiments {

struct RecordedOptions {
  std::string a, b;  // the sides, as they were named
  ComparisonTerms terms;
  std::string name;
  uint64_t seed = 1;
  // For the command that compares the runs' pipelines anew.
  std::string program;          // as a shell takes it
  std::string database_option;  // " --db FILE"; empty for the default
};

// Compares `runs`, as LoadSides found them: block by block where there is one of each side, else
// run by run. Throws Error: kBadData where they are not comparable, unless it is forced;
// kInconclusive where no figure is known on both sides.
dashboards::ComparisonPage CompareRecorded(const dashboards::ComparedRuns& runs,
                                           const RecordedOptions& options);

}  // namespace headrace::experiments
