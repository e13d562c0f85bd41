#include "dashboards/report/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace::dashboards {

Report MakeReport(const analysis::RunView& run, const analysis::Statements& statements) {
  Report report;
  report.title = fmt::format("run {} '{}'", run.run.run_id, run.run.name);
  std::vector<std::pair<int, const SectionEntry*>> order;
  for (const auto& [name, entry] : Registry<SectionEntry>::Global().entries()) {
    order.push_back({entry.order, &entry});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [position, entry] : order) {
    if (std::optional<Section> section = entry->make(run, statements)) {
      report.sections.push_back(std::move(*section));
    }
  }
  report.decided = statements.bottleneck.has_value()
                       ? statements.bottleneck->verdict != analysis::Verdict::kUndecided
                       : statements.outside.has_value() && statements.outside->decided;
  return report;
}

}  // namespace headrace::dashboards
