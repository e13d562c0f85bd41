#include "analysis/advice/tried.h"

#include <fmt/format.h>

namespace headrace::analysis {

std::optional<Tried> TriedBefore(const RunView& run, const Allocation& plan) {
  if (plan.changes.empty() || !plan.caches.empty() || run.tried.empty()) return std::nullopt;
  const TriedRow& own = run.tried.front();
  if (own.run_id != run.run.run_id || !(own.rows_per_s > 0)) return std::nullopt;
  std::map<std::string, std::string> wanted = own.knobs;
  for (const Change& change : plan.changes) wanted[change.knob] = std::to_string(change.to);
  for (const TriedRow& other : run.tried) {
    if (other.run_id == own.run_id || other.knobs != wanted) continue;
    const double gain = other.rows_per_s / own.rows_per_s - 1;
    return Tried{other.run_id, gain, gain < plan.gain_interval.low};
  }
  return std::nullopt;
}

std::string ToText(const Tried& tried) {
  return fmt::format("Run {} had these settings and brought {:+.0f} %.", tried.run_id,
                     100 * tried.gain);
}

std::string FellShort(const RunView& run, const Allocation& plan) {
  const std::optional<Tried> tried = TriedBefore(run, plan);
  return tried && tried->fell_short ? ToText(*tried) : "";
}

}  // namespace headrace::analysis
