// The characterization study as a page: what limits each workload, the sheet of tables beside the
// published values, and the optimisation ladder.
#pragma once
#include <string>

#include "analysis/study/characterization.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

// A factor with enough digits to tell it from 1: "24", "1.15", "0.030".
std::string FactorText(double factor);

// For RenderText, RenderMarkdown and RenderHtml.
Report MakeCharacterizationReport(const analysis::Characterization& study);

// One object, "schema": "headrace.characterization/1" (docs/schema), SI base units. What is not
// known is null, with its reason under KEY_unavailable.
std::string CharacterizationJson(const analysis::Characterization& study);

}  // namespace headrace::dashboards
