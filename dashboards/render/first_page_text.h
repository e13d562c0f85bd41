// The first page for a terminal: at most FirstPage::most_lines, wrapped at 80 columns or the
// terminal's width if that is less or a little more.
#pragma once
#include <string>

#include "dashboards/render/render.h"
#include "dashboards/report/page.h"

namespace headrace::dashboards {

// `page` must be safe to print (SafeToPrint). `whole`: print everything, however many lines it
// takes, and no pointer to the rest, because the rest follows.
std::string RenderFirstPage(const std::string& title, const FirstPage& page,
                            const TextOptions& options, bool whole = false);

}  // namespace headrace::dashboards
