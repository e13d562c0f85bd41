// The page of a plan: what to change, the rate to expect, what limits then, what one more of each
// resource would gain, and the command that comes next.
#pragma once
#include <string>
#include <vector>

#include "analysis/advice/emit/emit.h"
#include "analysis/model/sensitivity.h"
#include "analysis/program/allocation.h"
#include "analysis/run/run_view.h"
#include "dashboards/cache_page.h"

namespace headrace::dashboards {

// What the plan was asked for, as far as the page says it.
struct PlanAsked {
  double cores = 0;                   // 0: those of the run
  std::string memory;                 // as it was written; empty: the run's own limit
  bool target = false;                // to reach a rate, not the highest
  bool price = false, power = false;  // each was given, and is an objective
  bool explain = false;               // the objectives and the program are to be shown
  std::string options;  // with which a command makes this plan again: " --cores 4"; may be empty
  std::string output;   // the file that the plan was written to; empty: none
};

struct PlanPage {
  const analysis::RunView& run;
  const analysis::Allocation& plan;
  const std::vector<analysis::Worth>& worths;
  PlanAsked asked;
  const analysis::Curve* over_cores = nullptr;  // null: cores are not known
  const CachePage* cache = nullptr;             // null: no cache was asked for
  const analysis::Emitted* emitted = nullptr;   // null: not asked for
};

// Whether what the asked budget leaves is surely slower than what ran, whatever is set.
bool TooSlow(const PlanPage& page);

std::string PlanText(const PlanPage& page);

// One object, "schema": "headrace.plan/1" (docs/schema/plan.schema.json), SI base units. What is
// not known is null.
std::string PlanJson(const PlanPage& page);

}  // namespace headrace::dashboards
