// The part of a comparison's page that says which operators cause the change.
#pragma once
#include "analysis/comparison/attribution.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

// "because decode uses 31 % less CPU a row: +17.1 % of +18.0 %; ..."; empty where nothing can be
// said. For the line under a verdict.
std::string AttributionSentence(const analysis::Attribution& attribution);

// Key "attribution": sentences, facts, and the table "attribution_parts": one row for each
// operator, setting and resource.
Section MakeAttributionSection(const analysis::Attribution& attribution);

}  // namespace headrace::dashboards
