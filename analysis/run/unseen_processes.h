// Processes of the program in which nothing is accounted.
#pragma once
#include <string>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// "3 processes python without instrumentation", where these, of those that lived for most of the
// run, use more than half of the CPU time of all processes of the program; else empty.
std::string UnseenProcessesWithMostCpu(const RunView& run);

// "101 short-lived processes, such as bzip2", where many began all through the run, soon ended, and
// used `least_s` of CPU time or more; else empty.
std::string ShortLivedProcesses(const RunView& run, double least_s);

}  // namespace headrace::analysis
