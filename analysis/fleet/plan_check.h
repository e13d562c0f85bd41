// PlanCheck: what the model of a plan says of the nodes that a job of the preprocessing service ran
// on (`have` in the nodes file), beside the rate that the job had. The job's interval comes from
// its windows, drawn again; that of the nodes from the draws of their fits.
#pragma once
#include <string>

#include "analysis/fleet/fleet.h"
#include "analysis/fleet/job_findings.h"

namespace headrace::analysis {

struct PlanCheck {
  std::string job;
  // Why the two cannot be compared, and what to do; empty: they are.
  std::string unavailable, fix;
  JobLimit limit = JobLimit::kWorkers;             // of the job
  double workers = 0;                              // of the job, mean
  int planned_workers = 0;                         // processes that the model puts on the nodes
  size_t hosts = 0;                                // that they ran on
  double measured = 0, predicted = 0;              // rows per second
  Interval measured_interval, predicted_interval;  // 90 %
  double error_ratio = 0;                          // predicted / measured - 1
  bool lacks_storage = false;                      // was the limit, and the file says nothing of it
  bool agrees = false;                             // the intervals overlap
};

PlanCheck CheckPlan(const JobView& job, const NodesFile& nodes, const FleetPlan& plan);

}  // namespace headrace::analysis
