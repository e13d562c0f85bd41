// Memory: no rate of its own. It says how many more elements can be in work, and so how many more
// threads the slowest stage can have; plans hold it as a row of the integer program
// (HostProblem::memory_bytes).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr const char* kMemoryRoom = "memory (room, no rate)";

std::optional<size_t> SlowestStage(const PipelineModel& model) {
  std::optional<size_t> slowest;
  double longest = 0;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const double each = model.demands().stage_s[s] / model.stages()[s].parallelism;
    if (each <= longest) continue;
    slowest = s;
    longest = each;
  }
  return slowest;
}

class MemoryRoom final : public LimitKind {
 public:
  MemoryRoom() : LimitKind("memory", 70) {}

  void AddRows(const PipelineModel& /*model*/, const Demands& /*demands*/,
               const Settings& /*settings*/, std::vector<Limit>* /*rows*/) const override {}
  Relief Relieve(const PipelineModel& /*model*/, const Variant& at, const Limit& /*limit*/,
                 Step /*step*/) const override {
    return {at, "more memory"};
  }

  std::optional<UnboundedRow> Unbounded(const PipelineModel& model) const override {
    const HostRow* rss = model.run().FindHost("process_rss_bytes");
    if (rss == nullptr || !rss->maximum_value || *rss->maximum_value <= 0) {
      return UnknownRow(kMemoryRoom, "the process's memory was not recorded");
    }
    const auto& most = model.run().run.memory_bytes;
    if (!most || *most <= 0) return UnknownRow(kMemoryRoom, "no memory limit was recorded");
    const double limit = static_cast<double>(*most);
    UnboundedRow row =
        UnknownRow(kMemoryRoom, "elements of the slowest stage have no recorded size");
    row.used_ratio =
        Quantity::Of(*rss->maximum_value / limit, headrace::Unit::kRatio, Source::kCounter);
    const std::optional<size_t> slowest = SlowestStage(model);
    if (!slowest || model.stages()[*slowest].element_bytes.value_or(0) <= 0) return row;
    const StageModel& stage = model.stages()[*slowest];
    const double more =
        std::floor(std::max(0.0, limit - *rss->maximum_value) / *stage.element_bytes);
    row.attainable = Quantity::Unavailable(
        fmt::format(
            "memory allows a number of threads, not a rate: {} more threads of {} fit, {} each",
            more > kManyThreads ? fmt::format("over {:.0f}", kManyThreads)
                                : fmt::format("{:.0f}", more),
            stage.name, FormatBytes(*stage.element_bytes)),
        headrace::Unit::kPerSecond);
    row.note = fmt::format("{} of {} used", FormatBytes(*rss->maximum_value), FormatBytes(limit));
    return row;
  }
};

HR_LIMIT(MemoryRoom);

}  // namespace
}  // namespace headrace::analysis
