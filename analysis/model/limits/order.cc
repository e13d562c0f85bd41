// The order: where elements must leave in the order in which they came, threads wait for the
// slowest of them. Its bound is what the threads of the stage that loses most by that still do, by
// simulation of the stage alone; or, where it was measured how long the trainer waits for the batch
// that is due while others are there, what that wait leaves.
#include <fmt/format.h>

#include <limits>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr int kTimesLonger = 4;  // ordered queues and their window
constexpr int kEndless = 1 << 20;

// A queue that is as good as endless stays as it is.
int Longer(int length) { return length > kEndless ? length : length * kTimesLonger; }

class Order final : public LimitKind {
  static bool Measured(const PipelineModel& model) { return model.measures_order(); }

  // What the present threads lose was measured where it could be, and is not simulated; what others
  // would lose is, beside the present ones.
  static double Share(const PipelineModel& model, size_t stage, const Settings& settings) {
    const double share = model.OrderShare(stage, settings);
    if (!Measured(model)) return share;
    return share / model.OrderShare(stage, model.current());
  }

 public:
  Order() : LimitKind(std::string(kOrderLimit), 50) {}

  void AddRows(const PipelineModel& model, const Demands& demands, const Settings& settings,
               std::vector<Limit>* rows) const override {
    if (!model.ordered() || model.stages().empty()) return;
    Limit order{this, 0, name(), std::numeric_limits<double>::infinity()};
    for (size_t s = 0; s < model.stages().size(); ++s) {
      if (settings.parallelism[s] <= 1) continue;
      const double bound =
          Share(model, s, settings) * BoundOf(settings.parallelism[s], demands.stage_s[s]);
      if (bound < order.bound) {
        order.bound = bound;
        order.index = s;
      }
    }
    if (demands.order_wait_s > 0) {
      const double thread_s =
          demands.consumer_s + demands.order_wait_s + model.OnConsumers(settings, demands);
      order.bound = std::min(order.bound, BoundOf(1, thread_s));
    }
    rows->push_back(order);
  }

  std::string Describe(const Limit& /*limit*/) const override { return "the order"; }
  std::string ShortName(const Limit& /*limit*/) const override {
    return "the order of the batches";
  }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return limit.name;
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    const StageModel& stage = model.stages()[limit.index];
    if (Measured(model)) {
      return fmt::format(
          "batches are taken in order, and the trainer waits {} per batch for the one that is due "
          "while others are ready: {} at most",
          FormatDuration(model.demands().order_wait_most_s * model.consumers() * 1e9),
          FormatRate(limit.bound, "batches"));
    }
    return fmt::format(
        "batches leave in order, the {} thread{} of {} wait for the slowest, and the queue is too "
        "short for the others: {} at most",
        stage.parallelism, stage.parallelism == 1 ? "" : "s", stage.name,
        FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& model, const Limit& limit,
                             const std::string& /*culprit*/) const override {
    if (Measured(model)) return "No setting that was tried in the model helps; in_order=False may.";
    return fmt::format(
        "Give stage {} a longer queue, or set pipeline.order = \"any\" if the order of batches "
        "does not matter.",
        model.stages()[limit.index].name);
  }
  std::string WhyUnlimited(const PipelineModel& /*model*/) const override {
    return "no stage waits for the order";
  }

  std::optional<size_t> StageOf(const Limit& limit) const override { return limit.index; }
  std::optional<size_t> Culprit(const PipelineModel& model, const Limit& limit) const override {
    return LargestOf(model.stages()[limit.index].operators, OperatorSeconds(model.demands()));
  }

  Relief Relieve(const PipelineModel& model, const Variant& at, const Limit& /*limit*/,
                 Step step) const override {
    if (Measured(model)) return Faster(at, Scaled::kOrder, 0, step);
    Relief relief{at, fmt::format("queues and window {} times as long", kTimesLonger)};
    for (int& capacity : relief.variant.settings.queue_capacity) capacity = Longer(capacity);
    relief.variant.settings.order_window = Longer(relief.variant.settings.order_window);
    return relief;
  }
  std::string Recommended(const PipelineModel& model, const Limit& /*limit*/) const override {
    return Measured(model) ? "R18" : "";
  }
  bool estimated() const override { return true; }
  double prediction_error() const override { return kOrderError; }
};

HR_LIMIT(Order);

}  // namespace
}  // namespace headrace::analysis
