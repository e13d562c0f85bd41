// Names on a page come from files, command lines and other programs. Whatever a terminal or a
// browser would obey instead of showing is shown as what it is, in this one place, for every text
// of a report.
#pragma once
#include <string>

#include "dashboards/report/report.h"

namespace headrace::dashboards {

// `text` with control characters and invalid UTF-8 as \xNN, and with characters that reorder, hide
// or end a line of text as \uNNNN: marks of writing direction (U+061C, U+200E, U+200F, U+202A to
// U+202E, U+2066 to U+2069), zero-width ones (U+200B to U+200D, U+2060, U+FEFF), line separators
// (U+2028, U+2029) and C1 controls.
std::string SafeText(const std::string& text);

// The report with all of its texts so.
Report SafeToPrint(Report report);

}  // namespace headrace::dashboards
