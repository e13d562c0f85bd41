// Recorded runs as the sides of a comparison: found by the word that names a side, and as the
// samples that are compared.
#pragma once
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "analysis/run/run_view.h"
#include "dashboards/comparison_notes.h"

namespace headrace::experiments {

// The runs of a side: "tag:NAME" is all that have the tag, in the order in which they began;
// anything else is one run, by id or name. Throws Error kBadData where there is none.
std::vector<analysis::RunView> LoadSide(const std::string& database, const std::string& side);

// The side `label` ("A") of the runs `views`, of which there is at least one, that `said` names.
// `blocks`: the samples are blocks of the one run, none where it has no steady phase; else each run
// is one, and a run that is still being recorded is left out.
analysis::ComparedSide ComparedSideOf(const std::string& label, const std::string& said,
                                      const std::vector<analysis::RunView>& views, bool blocks);

// The runs of the samples of both sides. Throws Error kBadData where one is gone.
dashboards::ComparedRuns LoadRuns(const std::string& database,
                                  const analysis::ComparisonInput& input);

}  // namespace headrace::experiments
