// A part of a run, reported as a run of its own: `report --since 10s --until 20s`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/advice/statements.h"
#include "analysis/run/run_slice.h"
#include "analysis/run/run_view.h"
#include "dashboards/report/report.h"

namespace headrace::cli {

struct RunPart {
  std::string since, until;  // times of the run as users write them ("10s"); "": its start, its end
  // Whether all of the run is meant.
  bool whole() const { return since.empty() && until.empty(); }
};

// The two times. Throws Error kUsage for what is no time, or an empty range.
analysis::RunTimes TimesOf(const RunPart& part);

// The report of such a view, without the sections whose figures were recorded for the whole run
// only; with only those of `sections`, unless it is empty. Its title, its first page and its facts
// say which part it is about. Throws Error kUsage where a section is of whole runs only, and as
// OnlySections.
dashboards::Report ReportOfPart(const analysis::RunTimes& times, const analysis::RunView& view,
                                const analysis::Statements& statements,
                                const std::vector<std::string>& sections);

}  // namespace headrace::cli
