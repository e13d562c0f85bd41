// What `headrace top` shows, for programs.
#pragma once
#include <string>

#include "dashboards/terminal/top_model.h"

namespace headrace::dashboards {

// One object, schema headrace.top/1 (docs/top.md), with a line end: seconds, bytes and ratios; null
// where a figure is not known.
std::string TopJson(const TopModel& model);

}  // namespace headrace::dashboards
