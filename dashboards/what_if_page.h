// The page of hypothetical settings: the rate to expect at them, what limits then, and what one
// more of each resource would gain.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/contention.h"
#include "analysis/model/prediction.h"
#include "analysis/model/sensitivity.h"
#include "analysis/run/run_view.h"

namespace headrace::dashboards {

struct WhatIfPage {
  const analysis::RunView& run;
  const std::vector<std::string>& what_if;  // the settings as they were written
  double now = 0;                           // batches per second observed
  double rows_per_batch = 0;                // 0: the run recorded no rows
  const analysis::Prediction& prediction;
  const analysis::Contention& contention;
  analysis::Interval gain_interval;  // 90 %, of the predicted rate / now - 1
  const std::vector<analysis::Worth>& worths;
};

std::string WhatIfText(const WhatIfPage& page);

// One object, "schema": "headrace.what_if/1" (docs/schema/what_if.schema.json), SI base units.
std::string WhatIfJson(const WhatIfPage& page);

}  // namespace headrace::dashboards
