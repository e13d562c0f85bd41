// A part of a run, reported as a run of its own: `report --since 10s --until 20s`.
#pragma once
#include <string>

#include "analysis/advice/statements.h"
#include "analysis/run/run_view.h"
#include "dashboards/report/report.h"

namespace headrace::cli {

struct RunPart {
  std::string since, until;  // times of the run as users write them ("10s"); "": its start, its end
  bool whole() const { return since.empty() && until.empty(); }
};

// `view` becomes the part: the windows that lie wholly between the two times. Throws Error kUsage
// for what is no time, or an empty range; kInconclusive for a run without windows there.
void CutToPart(const RunPart& part, analysis::RunView* view);

// The report of such a view, without the sections whose figures were recorded for the whole run
// only; its first page says which part it is about.
dashboards::Report ReportOfPart(const RunPart& part, const analysis::RunView& view,
                                const analysis::Statements& statements);

}  // namespace headrace::cli
