// The memory budget of a pipeline: a split waits to be read until what it will need fits beside the
// splits in work, so that few of them are in work at once.
//
// Its account has how long splits waited for room. While one waits, the rate is what those in work
// leave: where one always waits, the present rate is the most that the budget allows. But where a
// stage is slower than what comes to it, splits pile up before it until the budget is full, which
// is then no reason. How fast the budget would let a pipeline with empty queues be (by Little's
// law: the splits that fit, over the time that one is in work) tells these apart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/memory_account.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

const std::string kName(kMemoryBudgetLimit);

// Splits that fit at once; one always does.
double SplitsThatFit(const MemoryAccount& account) {
  return std::max(1.0, std::floor(account.room_bytes / account.split_bytes));
}

// The share of the time in which a split waits for room: one at a time, and the next behind it.
// Where a single thread reads, it cannot wait while it does so.
double WaitedShare(const RunView& run, const ResourceRow& row) {
  const double duration_ns = std::max(1.0, static_cast<double>(run.run.duration_ns));
  double reading_ns = 0;
  for (const StageRow& stage : run.stages) {
    if (stage.stage_index != 0 || stage.last_parallelism_count != 1) continue;
    for (const OperatorRow& op : run.operators) {
      if (op.stage == stage.name) reading_ns += static_cast<double>(op.busy_ns);
    }
  }
  const double free_ns = std::max(0.1 * duration_ns, duration_ns - reading_ns);
  return std::min(1.0, static_cast<double>(row.wait_ns) / free_ns);
}

void AddBudget(const RunView& run, std::vector<ResourceModel>* resources) {
  const std::optional<MemoryAccount> account = MemoryAccountOf(run);
  if (!account || run.steps.steps_count <= 0) return;
  ResourceModel budget{kName, kName, 1, {}};
  budget.counted_s = WaitedShare(run, *account->row) / kBudgetAlwaysFull *
                     static_cast<double>(run.run.duration_ns) * 1e-9 /
                     static_cast<double>(run.steps.steps_count);
  resources->push_back(std::move(budget));
}

// Seconds that a split holds its part beyond what it waits in queues: it waits there because a
// stage is slower, and needs no part for that.
double HeldSeconds(const RunView& run, const ResourceRow& row) {
  double held_s =
      static_cast<double>(row.hold_ns) * 1e-9 / static_cast<double>(row.acquisitions_count);
  for (const QueueRow& queue : run.queues) {
    if (queue.puts_count <= 0 || !queue.mean_occupancy_ratio) continue;
    held_s -= *queue.mean_occupancy_ratio * static_cast<double>(queue.capacity_count) *
              static_cast<double>(run.run.duration_ns) * 1e-9 /
              static_cast<double>(queue.puts_count);
  }
  return std::max(0.0, held_s);
}

// Seconds of the whole budget that a batch takes at that demand.
double SecondsOf(const PipelineModel& model, const Demands& demands, size_t resource) {
  const RunView& run = model.run();
  const MemoryAccount account = *MemoryAccountOf(run);
  const ResourceRow& row = *account.row;
  double stages_s = demands.consumer_s;
  for (const double stage_s : demands.stage_s) stages_s += stage_s;
  const double splits = static_cast<double>(row.acquisitions_count) /
                        static_cast<double>(std::max<int64_t>(1, run.steps.steps_count));
  const double held_s = std::max(stages_s, splits * HeldSeconds(run, row));
  // A larger budget is one of which a batch takes less time.
  const double now_s = model.demands().resources[resource].hold_s;
  const double waited_s = demands.resources[resource].hold_s;
  const double share = now_s > 0 ? waited_s / now_s : 1;
  return std::min(waited_s, share * held_s / SplitsThatFit(account));
}

std::optional<size_t> ResourceIn(const PipelineModel& model) {
  for (size_t r = 0; r < model.resources().size(); ++r) {
    if (model.resources()[r].kind == kName) return r;
  }
  return std::nullopt;
}

class MemoryBudget final : public LimitKind {
 public:
  // Behind what it can only be the consequence of.
  MemoryBudget() : LimitKind(kName, 45) {}

  void AddRows(const PipelineModel& model, const Demands& demands, const Settings& /*settings*/,
               std::vector<Limit>* rows) const override {
    const std::optional<size_t> r = ResourceIn(model);
    if (r) rows->push_back({this, *r, kName, BoundOf(1, SecondsOf(model, demands, *r))});
  }
  void AddLoads(const PipelineModel& model, const Demands& demands,
                std::vector<SharedLoad>* loads) const override {
    const std::optional<size_t> r = ResourceIn(model);
    if (!r) return;
    const double seconds = SecondsOf(model, demands, *r);
    if (seconds <= 0) return;
    loads->push_back({kName, 1, std::vector<double>(model.stages().size(), 0), seconds});
  }
  std::optional<size_t> ResourceOf(const Limit& limit) const override { return limit.index; }
  bool simulated() const override { return false; }
  bool ShowsAt(const PipelineModel& /*model*/, const Limit& /*limit*/,
               size_t /*stage*/) const override {
    return true;
  }

  std::string Describe(const Limit& /*limit*/) const override { return "the memory budget"; }
  std::string ShortName(const Limit& /*limit*/) const override { return kName; }
  std::string SizedName(const PipelineModel& model, const Limit& /*limit*/) const override {
    return fmt::format("memory budget ({})", Size(model));
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    const MemoryAccount account = *MemoryAccountOf(model.run());
    const double fit = SplitsThatFit(account);
    const double waited = static_cast<double>(account.row->wait_ns) /
                          static_cast<double>(model.run().run.duration_ns);
    return fmt::format(
        "the memory budget of {} has room for {:.0f} split{} of {} at a time. The next one waits "
        "for room {} of the time: {} at most",
        Size(model), fit, fit == 1 ? "" : "s", FormatBytes(account.split_bytes),
        FormatPercent(std::min(1.0, waited)), FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& /*limit*/,
                             const std::string& /*culprit*/) const override {
    return "More threads do not help: raise pipeline.memory.";
  }
  std::string WhyUnlimited(const PipelineModel& /*model*/) const override {
    return "no split waited for room";
  }
  std::string Recommended(const PipelineModel& /*model*/, const Limit& /*limit*/) const override {
    return "R24";
  }
  std::string ResourceClass(const PipelineModel& /*model*/, const Limit& /*limit*/) const override {
    return "memory_capacity";
  }
  Relief Relieve(const PipelineModel& /*model*/, const Variant& at, const Limit& limit,
                 Step step) const override {
    Relief relief = Faster(at, Scaled::kResource, limit.index, step);
    relief.what = fmt::format("{} more memory", FormatPercent(1 / FactorOf(step) - 1));
    return relief;
  }

 private:
  // "128 MiB"; the account's room where the setting is not recorded.
  static std::string Size(const PipelineModel& model) {
    const RunView& run = model.run();
    return FormatBytes(
        BytesSettingOf(run.run, "pipeline.memory").value_or(MemoryAccountOf(run)->room_bytes));
  }
};

HR_COUNTED_RESOURCES(kName, AddBudget);
HR_LIMIT(MemoryBudget);

}  // namespace
}  // namespace headrace::analysis
