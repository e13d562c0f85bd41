// The lines of a first page, by their labels.
#pragma once
#include <string>

#include "dashboards/report/first_page.h"

namespace headrace::dashboards {

// The page's line of that label; empty: it has none.
inline std::string LineOf(const FirstPage& page, const std::string& label) {
  for (const PageLine& line : page.lines) {
    if (line.label == label) return line.text;
  }
  return "";
}

}  // namespace headrace::dashboards
