// The report of a job of the preprocessing service: what limits its ranks, how sure that is, what
// to change, what that gains and what limits then, on a first page of eleven lines; then the
// evidence.
#pragma once
#include <string>

#include "analysis/fleet/job_findings.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

struct JobPage {
  const analysis::JobView& job;
  const analysis::JobFindings& findings;
  std::string program = "headrace", database_option;  // as in RunView: for commands to paste
};

Report MakeJobReport(const JobPage& page);

// One object, "schema": "headrace.job/1", SI base units. What is not known is null.
std::string JobJson(const JobPage& page);

// "rank 3", "worker 2 (process 71 on node4)".
std::string MemberName(const analysis::Member& member);
// What to change, in one sentence; empty where nothing is to be.
std::string JobFix(const JobPage& page);

}  // namespace headrace::dashboards
