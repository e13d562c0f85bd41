#include "analysis/run_view.h"

namespace headrace::analysis {

const HostRow* RunView::FindHost(const std::string& metric) const {
  for (const HostRow& row : hosts) {
    if (row.metric == metric) return &row;
  }
  return nullptr;
}

}  // namespace headrace::analysis
