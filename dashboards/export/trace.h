// A run as a trace: tracks of counters by window and of slices, the same for every trace format.
//
// A window is what the store keeps (0.2 s, older ones longer). Single visits of an operator are not
// in the store, so no trace has them; the slice of the run says so.
#pragma once
#include <cstdint>

#include "dashboards/export/export.h"
#include "dashboards/export/trace_writer.h"

namespace headrace::dashboards {

// Reads the run and calls the writer. Throws Error.
void WriteTrace(const ExportRequest& request, TraceWriter* writer);
// Rows of interval views that WriteTrace reads.
int64_t CountTraceRows(const ExportRequest& request);

}  // namespace headrace::dashboards
