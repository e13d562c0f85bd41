// Names on a page come from files, command lines and other programs. Whatever a terminal or a
// browser would obey instead of showing is shown as what it is, for every text of a report.
#pragma once
#include <string>

#include "dashboards/report/report.h"

namespace headrace::dashboards {

// The report with all of its texts Printable (base/terminal_text.h).
Report SafeToPrint(Report report);

}  // namespace headrace::dashboards
