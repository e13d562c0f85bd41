// The slices of a trace: what the store knows of a run as spans of time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "dashboards/export/export.h"
#include "dashboards/export/trace_writer.h"

namespace headrace::dashboards {

struct TraceSlice {
  int64_t begin_ns = 0, end_ns = 0;  // since the run began
  std::string name;
  TraceArguments arguments;
};

// The part of each slice in [first_ns, last_ns); a slice outside of it is left out. One that ends
// before it begins, which only a damaged store has, ends where it begins.
std::vector<TraceSlice> CutSlices(std::vector<TraceSlice> slices, int64_t first_ns,
                                  int64_t last_ns);

// Sorts slices into lanes, in each of which a slice lies within another or apart from it: a slice
// goes to the first lane where it does. Within a lane in order of their begin, the longer one
// first.
std::vector<std::vector<TraceSlice>> NestingLanes(std::vector<TraceSlice> slices);

// The run, with what is known about it as arguments, and its phases within it. Phases need all
// windows in memory, so a run of more than 300,000 operator rows goes without them and says so.
std::vector<TraceSlice> RunSlices(const ExportRequest& request, const ExportedRun& run);
// A tuner's decisions: from the decision to where its effect was judged.
std::vector<TraceSlice> DecisionSlices(const ExportRequest& request);
// Where the flight recorder kept full detail.
std::vector<TraceSlice> DetailSlices(const ExportRequest& request);
// Moments in which a stage had more threads, to see what its store gives.
std::vector<TraceSlice> StoreProbeSlices(const ExportRequest& request);

}  // namespace headrace::dashboards
