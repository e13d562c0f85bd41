// Uneven workers: each makes batches of its own items, of a shard say, and the trainer takes them
// in turn. Then the dearest of them sets the rate, whatever the others could do.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// The row's name where other workers have no data, or next to none.
constexpr const char* kOfSome = "workers with data";

class Uneven final : public LimitKind {
 public:
  Uneven() : LimitKind("uneven workers", 51) {}

  void AddRows(const PipelineModel& model, const Demands& demands, const Settings& settings,
               std::vector<Limit>* rows) const override {
    if (!model.uneven()) return;
    const size_t s = model.uneven()->stage;
    // Who has the dear items keeps them, however many workers are beside it.
    const int threads = std::min(settings.parallelism[s], model.current().parallelism[s]);
    if (threads <= 1) return;
    const double times = 1 + (model.uneven()->workers.times - 1) * demands.unevenness;
    rows->push_back({this, s, model.uneven()->workers.idle > 0 ? std::string(kOfSome) : name(),
                     BoundOf(threads, demands.stage_s[s] * times)});
  }

  std::string Describe(const Limit& limit) const override {
    return limit.name == kOfSome ? "the workers that have the data" : "the slowest worker";
  }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return Describe(limit);
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    return fmt::format("{}{}: {} at most",
                       limit.name == kOfSome ? "" : "batches are taken from the workers in turn; ",
                       Words(model.uneven()->workers), FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& limit,
                             const std::string& /*culprit*/) const override {
    if (limit.name == kOfSome) {
      return "More workers do not help. Divide the data into shards of equal size, one for each "
             "worker.";
    }
    return "No setting helps. Give each worker as much work as the others: mix long and short "
           "items in every shard.";
  }
  std::string Recommended(const PipelineModel& /*model*/, const Limit& /*limit*/) const override {
    return "R29";
  }
  std::string ResourceClass(const PipelineModel& /*model*/, const Limit& /*limit*/) const override {
    return std::string(kStageLimit);
  }

  std::optional<size_t> StageOf(const Limit& limit) const override { return limit.index; }
  std::optional<size_t> Culprit(const PipelineModel& model, const Limit& limit) const override {
    return LargestOf(model.stages()[limit.index].operators, OperatorSeconds(model.demands()));
  }
  // The trainer waits for the batch that is due because its worker is the slowest.
  bool Explains(const PipelineModel& /*model*/, const Demands& /*demands*/, const Limit& limit,
                const Limit& other) const override {
    return other.Is(kOrderLimit) && limit.bound < kUnevenExplains * other.bound;
  }

  Relief Relieve(const PipelineModel& /*model*/, const Variant& at, const Limit& limit,
                 Step step) const override {
    const double left = FactorOf(step);
    Relief relief{at, fmt::format("workers {:.0f} % less uneven", 100 * (1 - left))};
    relief.variant.scales.push_back({Scaled::kUneven, limit.index, left});
    return relief;
  }
  bool simulated() const override { return false; }
  double prediction_error() const override { return kOrderError; }
};

HR_LIMIT(Uneven);

}  // namespace
}  // namespace headrace::analysis
