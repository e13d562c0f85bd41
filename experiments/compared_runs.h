// Recorded runs as the sides of a comparison: found by the word that names a side, and as the
// samples that are compared.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "analysis/run/run_slice.h"
#include "analysis/run/run_view.h"
#include "dashboards/comparison_notes.h"
#include "experiments/ab_runner.h"

namespace headrace::experiments {

// The runs of two sides. "tag:NAME" is all runs that have the tag, in the order in which they
// began; "RUN@FROM-TO" is a part of one run (times since it began; without one of them: from its
// begin, to its end); anything else is one run, by id or name. Throws Error: kBadData where there
// is none or no database, kUsage where a run is on both sides, unless in parts that do not overlap,
// kInconclusive where nothing was recorded between the times.
dashboards::ComparedRuns LoadSides(const std::string& database, const std::string& a,
                                   const std::string& b);

// How long the blocks of two sides are of which each is one run or a part of one.
int64_t BlockLength(const dashboards::ComparedRuns& runs);

// The side `label` ("A") of the runs `views`, of which there is at least one, that `said` names.
// Each run is a sample; one that is still being recorded is left out. `block_ns` above 0: the
// samples are blocks of the one run, or the whole run where it has no steady phase. `times`: the
// part of the run that it is, if it is one.
analysis::ComparedSide ComparedSideOf(const std::string& label, const std::string& said,
                                      const std::vector<analysis::RunView>& views,
                                      const std::optional<analysis::RunTimes>& times,
                                      int64_t block_ns);

// Adds the two runs of a pair to the samples of their sides.
void AddPair(const AbPair& pair, analysis::ComparisonInput* input);

// The runs of the samples of both sides. Throws Error kBadData where one is gone.
dashboards::ComparedRuns LoadRuns(const std::string& database,
                                  const analysis::ComparisonInput& input);

}  // namespace headrace::experiments
