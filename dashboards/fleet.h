// The fleet's page: what to buy, what limits the fleet, how sure that is, what more nodes would
// gain, and what would limit it next; then the evidence.
#pragma once
#include <string>
#include <vector>

#include "analysis/fleet/fleet.h"
#include "analysis/fleet/fleet_scenarios.h"
#include "analysis/fleet/plan_check.h"
#include "analysis/run/run_view.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

// What the page is about. May be null: `simulation`, it was not run; `check`, the run is no
// member's of a job.
struct FleetPage {
  const analysis::RunView& run;
  const analysis::RowCost& cost;
  const analysis::NodesFile& nodes;
  const analysis::FleetPlan& plan;
  const analysis::FleetSimulation* simulation = nullptr;
  const analysis::PlanCheck* check = nullptr;
};

// For RenderText and RenderMarkdown.
Report MakeFleetReport(const FleetPage& page);

// What the figures rest on, a sentence each: the run's own, then the fleet's.
std::vector<std::string> FleetAssumptions(const analysis::RowCost& cost,
                                          const analysis::NodesFile& nodes,
                                          const analysis::FleetPlan& plan);

}  // namespace headrace::dashboards
