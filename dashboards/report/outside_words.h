// The verdict of a run that was seen from outside, for machines and for the first page.
#pragma once
#include <string>

#include "analysis/advice/statements.h"
#include "analysis/outside/outside.h"
#include "dashboards/report/page.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

// Adds facts (with the keys of a verdict from accounts) and the table of findings. `seen` must have
// a verdict.
void AddOutsideFacts(const analysis::RunView& run, const analysis::Outside& seen, Section* section);

// The same for people: badge, verdict, picture and lines. `seen` must have a verdict.
void AddOutsidePage(const analysis::RunView& run, const analysis::Outside& seen, FirstPage* page);

}  // namespace headrace::dashboards
