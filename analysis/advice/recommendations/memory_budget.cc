// R24: more memory for splits in work.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "analysis/advice/recommendations.h"
#include "analysis/model/limits/bounds.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/memory_account.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr double kMiB = 1048576;
// Budgets are named in steps of this.
constexpr double kStepBytes = 16 * kMiB;

Recommendation RaiseMemory(const Evidence& e) {
  const std::optional<double> budget = BytesSettingOf(e.run().run, "pipeline.memory");
  const std::optional<MemoryAccount> account = MemoryAccountOf(e.run());
  if (budget == 0.0) return DoesNotFire("the pipeline has no memory budget (pipeline.memory)");
  if (!budget || !account) {
    return CannotSay("whether splits waited for memory is not recorded",
                     "a run of a pipeline file by this version");
  }
  const Limit* row = nullptr;
  double other = std::numeric_limits<double>::infinity();
  const std::vector<Limit> rows = Bounds(e.model(), e.model().demands(), e.model().current());
  for (const Limit& limit : rows) {
    if (limit.Is(kMemoryBudgetLimit)) {
      row = &limit;
    } else if (!limit.kind->estimated()) {
      other = std::min(other, limit.bound);
    }
  }
  if (row == nullptr || !std::isfinite(row->bound) || row->bound >= other) {
    return DoesNotFire("splits do not wait for memory, or wait because a stage is slower");
  }
  // The memory that is needed goes with the rate, as each split takes as long as before.
  const double share = std::min(1.0, row->bound / (kBudgetBeyond * other));
  const double more = account->room_bytes * (1 / share - 1);
  const double wanted = std::ceil((*budget + more) / kStepBytes) * kStepBytes;
  if (const auto& machine = e.run().run.memory_bytes) {
    const double most = kPipelineMemory * static_cast<double>(*machine);
    if (wanted > most) {
      return CannotSay(fmt::format("it would take {}, and the pipeline may use {}",
                                   FormatBytes(wanted), FormatBytes(most)),
                       "a run with smaller stripes, of which more fit");
    }
  }
  const auto with = [&](double left) {
    Variant change = e.Now();
    change.scales.push_back({Scaled::kResource, row->index, left});
    return change;
  };
  // Splits beside each other take longer than one alone, by how much is not known: the least is
  // half of the way to where the budget no longer limits.
  const Outcome outcome = e.Predict(with(std::sqrt(share)), with(share), with(share));
  Recommendation result = IfWorthwhile(
      e, outcome, row->kind->Because(e.model(), *row, e.model().demands().rate / row->bound),
      fmt::format("raise pipeline.memory from {} to {}", FormatBytes(*budget), FormatBytes(wanted)),
      e.RunWith(fmt::format("pipeline.memory={:.0f}MiB", wanted / kMiB)));
  if (result.effects.reader_memory.now.available()) {
    const double now = result.effects.reader_memory.now.value();
    result.effects.reader_memory.then =
        Quantity::Of(now + wanted - *budget, headrace::Unit::kBytes, Source::kEstimate)
            .WithInterval(now, now + wanted - *budget);
  }
  return result;
}

HR_RECOMMENDATION(24, "more memory for splits in work", "", RaiseMemory);

}  // namespace
}  // namespace headrace::analysis
