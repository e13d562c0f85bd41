// Reports of runs: the first page, then all sections that have something to say.
#pragma once
#include <string>
#include <vector>

#include "dashboards/report/report.h"

namespace headrace::dashboards {

Report MakeReport(const analysis::RunView& run, const analysis::Statements& statements);

// The sections that people may ask for by name: "operators", "bytes", "block io", in order of the
// page.
std::vector<std::string> SectionNames();

// The report with only these sections, in this order, and without its first page. Throws Error
// kUsage for a name that no section has, and kInconclusive where the run has nothing to say on one.
Report OnlySections(Report report, const std::vector<std::string>& names);

}  // namespace headrace::dashboards
