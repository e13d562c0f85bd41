// The rows of one documented view, for the formats of rows.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "dashboards/export/export.h"

namespace headrace::dashboards {

// The documented views in alphabetical order.
std::vector<std::string> ExportedViews();

// The columns of the request's view. Throws Error kUsage: no such view, which names the nearest, or
// a part of the run asked of a view without start_ns.
std::vector<std::string> ColumnsOfView(const ExportRequest& request);

// Calls `visit` with each row that belongs to the run, in portions; of a view without runs
// (calibration_summary, comparison_summary, split_rule), with all rows. Nothing for
// ExportPart::kFixed.
void ForEachRow(const ExportRequest& request,
                const std::function<void(const std::vector<collectors::SqlValue>&)>& visit);

// Rows that the size estimate counts: 0 for a view without a course.
int64_t CountViewRows(const ExportRequest& request);

}  // namespace headrace::dashboards
