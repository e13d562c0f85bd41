#include "dashboards/report/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace::dashboards {
namespace {

// Every page says at its top how much could be seen, and what kept it from being more.
std::string TitleOf(const analysis::RunView& run) {
  std::string title = fmt::format("run {} '{}', ", run.run.run_id, run.run.name);
  title += run.run.accounting_level == 0
               ? "seen from outside"
               : fmt::format("accounting level {}", run.run.accounting_level);
  if (run.run.level_asked) return title + fmt::format(" (--level {})", *run.run.level_asked);
  if (run.run.accounting_level >= 3) return title;
  for (const analysis::ProbeRow& probe : run.probes) {
    if (probe.probe == "off-CPU time" && probe.state == "unavailable") {
      return title + fmt::format("; no eBPF: {}", probe.reason);
    }
  }
  return title;
}

}  // namespace

Report MakeReport(const analysis::RunView& run, const analysis::Statements& statements) {
  Report report;
  report.title = TitleOf(run);
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
