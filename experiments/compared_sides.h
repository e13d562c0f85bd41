// The two sides of a comparison that is yet to run: what each runs, and what the page calls it.
#pragma once
#include <string>
#include <vector>

#include "analysis/comparison/comparability.h"
#include "experiments/ab_runner.h"
#include "reader/pipeline/spec.h"

namespace headrace::experiments {

struct ComparedSides {
  AbSide a, b;
  std::string a_what, b_what;  // as the page names them
  analysis::IntendedDifference intended;
  bool cold = false;  // each run begins with none of its table in the page cache
};

// Settings on top of pipeline files, KEY=VALUE.
struct SideSettings {
  std::vector<std::string> both, a, b;  // a side's own go on top of those of both
};

// The pipeline of a side with its settings, as its runs will have it. Throws Error as LoadPipeline.
reader::PipelineSpec LoadSpecOf(const AbSide& side);

// Two pipeline files, or one twice. `cold`: the page cache forgets the pipeline's own table before
// each run. Both are loaded, so that a mistake shows before the first run and not after it: throws
// the Error with the side in front ("side B: ..."), kUsage for `cold` without a table.
ComparedSides PipelineSides(const std::string& a, const std::string& b,
                            const SideSettings& settings, bool cold);

// Two commands of the shell.
ComparedSides CommandSides(const std::string& a, const std::string& b);

}  // namespace headrace::experiments
