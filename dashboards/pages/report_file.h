// The pages of one run in one file, which a mail can carry: the script, the style and the answers
// are in it, and it sends no request.
#pragma once
#include <string>

#include "dashboards/pages/page_run.h"

namespace headrace::dashboards {

// HTML that needs nothing else. Its own policy allows its script and style by their hashes and
// nothing beside them. Throws as the answers in it, which are those marked `in_file`.
std::string ReportFile(const std::string& database, std::shared_ptr<const LoadedRun> loaded);

}  // namespace headrace::dashboards
