// headrace report --fleet: the report of a job of the preprocessing service.
#pragma once
#include <string>

#include "cli/page_output.h"

namespace headrace::cli {

// `job`: a job's name, "latest", or a fleet file, which stands for its newest job. `database`: the
// file of a job that is named. Returns the exit code. Throws as LoadJob.
int ReportFleet(const std::string& job, const std::string& database, const PageOutput& page);

}  // namespace headrace::cli
