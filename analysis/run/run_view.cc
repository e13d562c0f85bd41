#include "analysis/run/run_view.h"

#include <algorithm>

namespace headrace::analysis {

const HostRow* RunView::FindHost(const std::string& metric) const {
  for (const HostRow& row : hosts) {
    if (row.metric == metric) return &row;
  }
  return nullptr;
}

bool RunView::Has(const std::string& metric) const {
  return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
}

}  // namespace headrace::analysis
