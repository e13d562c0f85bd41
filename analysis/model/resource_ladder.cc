#include "analysis/model/resource_ladder.h"

#include <algorithm>
#include <cmath>

#include "analysis/model/limits/limit_kind.h"

namespace headrace::analysis {

std::vector<Rung> ResourceLadder(const PipelineModel& model, const Bottleneck& bottleneck) {
  std::vector<Rung> rungs;
  for (size_t i = 0; i < bottleneck.findings.size(); ++i) {
    const Finding& finding = bottleneck.findings[i];
    const LimitKind& kind = *finding.limit.kind;
    Rung rung;
    rung.name = kind.SizedName(model, finding.limit);
    rung.kind = kind.name();
    rung.binding =
        !bottleneck.unexplained && (i == 0 || (bottleneck.verdict == Verdict::kBalanced && i == 1));
    if (std::isfinite(finding.limit.bound)) {
      rung.attainable = Quantity::Of(finding.limit.bound, Unit::kPerSecond, Source::kAccount)
                            .WithInterval(finding.bound_interval.low, finding.bound_interval.high);
      rung.used_ratio = Quantity::Of(finding.utilisation, Unit::kRatio, Source::kAccount);
    } else {
      const std::string why = kind.WhyUnlimited(model);
      rung.attainable = Quantity::Unavailable(why, Unit::kPerSecond);
      rung.used_ratio = Quantity::Unavailable(why, Unit::kRatio);
      rung.binding = false;
    }
    rungs.push_back(std::move(rung));
  }
  for (const LimitKind* kind : LimitKinds()) {
    const std::optional<UnboundedRow> row = kind->Unbounded(model);
    if (!row) continue;
    rungs.push_back({row->name, kind->name(), row->attainable, row->used_ratio, false, row->note});
  }
  std::stable_sort(rungs.begin(), rungs.end(), [](const Rung& a, const Rung& b) {
    if (a.attainable.available() != b.attainable.available()) return a.attainable.available();
    return a.attainable.available() && a.attainable.value() < b.attainable.value();
  });
  return rungs;
}

}  // namespace headrace::analysis
