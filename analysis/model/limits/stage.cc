// A stage: its threads work on so many batches at once, and each takes c + b of its operators.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/unknown_store.h"
#include "analysis/run/known_loaders.h"
#include "analysis/run/reads.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

class Stage final : public LimitKind {
 public:
  Stage() : LimitKind(std::string(kStageLimit), 30) {}

  void AddRows(const PipelineModel& model, const Demands& demands, const Settings& settings,
               std::vector<Limit>* rows) const override {
    for (size_t s = 0; s < model.stages().size(); ++s) {
      const int threads = settings.parallelism[s];
      rows->push_back({this, s, model.stages()[s].name,
                       threads > 0 ? BoundOf(threads, demands.stage_s[s])
                                   : std::numeric_limits<double>::infinity()});
    }
  }

  std::string ShortName(const Limit& limit) const override { return limit.name; }
  std::string SizedName(const PipelineModel& model, const Limit& limit) const override {
    return fmt::format("stage {} ({})", limit.name, Threads(model, limit));
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    return fmt::format("{} can deliver {} with {}", limit.name, FormatRate(limit.bound, "batches"),
                       Threads(model, limit));
  }
  std::string WithoutSetting(const PipelineModel& model, const Limit& limit,
                             const std::string& culprit) const override {
    const StageModel& stage = model.stages()[limit.index];
    if (stage.max_parallelism <= 0 || stage.parallelism < stage.max_parallelism) {
      return "No setting within the budget gains 3 % or more.";
    }
    const KnownLoader* known = FindKnownLoader(model.run(), limit.name);
    if (known != nullptr && known->cheaper != nullptr) return known->cheaper;
    if (IsPyDataset(limit.name, culprit)) {
      return fmt::format(
          "Give {} workers (its argument workers; with use_multiprocessing=True where it computes "
          "in Python): now one thread of Keras calls it, one batch at a time. Or make it cheaper.",
          culprit.substr(0, culprit.find('.')));
    }
    return fmt::format("No setting helps: stage {} has as many threads as it may. Make {} cheaper.",
                       limit.name, culprit.empty() ? "it" : culprit);
  }
  std::string WhyUnlimited(const PipelineModel& /*model*/) const override {
    return "no work was recorded in it";
  }

  // On a store that nobody knows, or that is known to be full of as many bytes or requests, many
  // small reads are made fewer before there are more at once.
  std::string Recommended(const PipelineModel& model, const Limit& limit) const override {
    const std::string of_pool = RuleOfPool(model, Culprit(model, limit));
    if (!of_pool.empty()) return of_pool;
    const std::optional<Reads> reads = ReadsOf(model.run());
    if (!reads || !ManySmallReads(*reads) || ReadCostOf(model.run())) return "";
    const std::vector<size_t>& own = model.stages()[limit.index].operators;
    if (std::find(own.begin(), own.end(), reads->fetch) == own.end()) return "";
    const std::vector<size_t> unknown = StagesOnUnknownStores(model);
    const bool is_unknown = std::find(unknown.begin(), unknown.end(), limit.index) != unknown.end();
    const bool is_full = std::any_of(model.resources().begin(), model.resources().end(),
                                     [&](const ResourceModel& resource) {
                                       const int threads = model.stages()[limit.index].parallelism;
                                       return resource.name == StoreNameOf(limit.name) &&
                                              threads > resource.enough_threads.value_or(0);
                                     });
    return is_unknown || is_full ? "R5" : "";
  }

  std::optional<size_t> StageOf(const Limit& limit) const override { return limit.index; }
  std::optional<size_t> Culprit(const PipelineModel& model, const Limit& limit) const override {
    return LargestOf(model.stages()[limit.index].operators, OperatorSeconds(model.demands()));
  }

  Relief Relieve(const PipelineModel& model, const Variant& at, const Limit& limit,
                 Step step) const override {
    const int threads = at.settings.parallelism[limit.index];
    const int more = threads + More(threads, step);
    const int most = model.stages()[limit.index].max_parallelism;
    if (most > 0 && more > most) return Faster(at, Scaled::kStage, limit.index, step);
    Relief relief{at, fmt::format("{} threads instead of {}", more, threads)};
    relief.variant.settings.parallelism[limit.index] = more;
    return relief;
  }

 private:
  // A PyDataset of Keras without workers, which the Python package names after its class.
  static bool IsPyDataset(const std::string& stage, const std::string& culprit) {
    return stage.starts_with("tf.data") && culprit.ends_with(".__getitem__");
  }

  static std::string Threads(const PipelineModel& model, const Limit& limit) {
    const StageModel& stage = model.stages()[limit.index];
    return WorkersOfStage(model.run(), stage.name, stage.parallelism);
  }
};

HR_LIMIT(Stage);

}  // namespace
}  // namespace headrace::analysis
