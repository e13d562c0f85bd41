#include "analysis/program/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/program/search.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/infinite.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// Whether a plan may use as many cores as the run had: what others use of those was measured.
bool AsManyCores(const PipelineModel& model, const Budget& budget) {
  if (!budget.cores) return true;
  if (!model.cores_known()) {
    throw Error(ExitCode::kInconclusive,
                "the run recorded no CPU time or no number of cores, so that a budget of cores "
                "says nothing",
                "cores budget", "leave --cores out, or record at level 2");
  }
  return std::abs(*budget.cores - model.current().cores) < 1e-9 ||
         std::abs(*budget.cores - model.cores_budget()) < 1e-9;
}

// Fills an Allocation in with what a candidate changes and gains.
class Description {
 public:
  Description(const PipelineModel& model, const Predictor& predictor, const Budget& budget,
              const MemoryBudget& memory, const Planner& planner, Candidate plan)
      : model_(model),
        predictor_(predictor),
        budget_(budget),
        memory_(memory),
        planner_(planner),
        plan_(std::move(plan)),
        current_(model.current()),
        demands_(Apply(model, model.demands(), plan_.warm)) {}

  Allocation Make(bool same_cores) {
    allocation_.no_copies =
        "the pipeline has no knob for copies of a subgraph; a stage that may have threads has them";
    allocation_.settings = plan_.settings;
    allocation_.now = model_.demands().rate;
    allocation_.rows_per_batch = model_.demands().rows;
    for (size_t s = 0; s < model_.stages().size(); ++s) {
      AddThreads(s);
      AddQueue(s);
    }
    AddWindow();
    AddMemory();
    AddCaches();
    Predict(same_cores);
    allocation_.program = std::move(plan_.report);
    allocation_.cores_used = plan_.solution.cores;
    allocation_.watts = plan_.solution.watts;
    allocation_.solution = std::move(plan_.solution);
    allocation_.caches = std::move(plan_.caches);
    allocation_.scales = std::move(plan_.warm);
    return std::move(allocation_);
  }

 private:
  // Relative gain of the plan over the same plan with the settings `without`, which lack one
  // change.
  double GainOver(const Settings& without) const {
    return plan_.rate / predictor_.Rate({without, plan_.warm}) - 1;
  }

  // `member`: of Settings, the number of stage `s`.
  void AddChange(const char* knob, std::vector<int> Settings::*member, size_t s, std::string why) {
    Settings without = plan_.settings;
    const int from = (without.*member)[s] = (current_.*member)[s];
    const int to = (plan_.settings.*member)[s];
    Change change{model_.stages()[s].name + knob, from, to, std::move(why), GainOver(without), {}};
    if (model_.stages()[s].element_bytes) {
      change.memory_bytes = ElementBytes(model_, s) * (to - from);
    }
    allocation_.changes.push_back(std::move(change));
  }

  void AddThreads(size_t s) {
    if (plan_.settings.parallelism[s] == current_.parallelism[s]) return;
    AddChange(".parallelism", &Settings::parallelism, s, WhyThreads(s));
  }

  std::string WhyThreads(size_t s) const {
    const int now = current_.parallelism[s], planned = plan_.settings.parallelism[s];
    const int most = planner_.most()[s];
    if (planned < now) {
      if (now > most)
        return fmt::format("it may have {} thread{} at most", most, most == 1 ? "" : "s");
      return memory_.Fits(current_) ? "fewer threads leave the cores to the stages that need them"
                                    : "fewer threads fit the memory budget";
    }
    const double stage_s = demands_.stage_s[s];
    if (BoundOf(1, stage_s) == kInfinite) {
      return "the planned cache does its work once it is full; until then these threads do";
    }
    const std::string each =
        fmt::format("one {} does {}; {} wanted", now == 0 ? "worker" : "thread",
                    FormatRate(1 / stage_s, "batches"), FormatRate(plan_.rate, "batches"));
    if (now == 0) return "the trainer's thread loads and computes in turn; " + each;
    if (model_.cores_contended() && model_.others_are_peers()) {
      return each +
             "; other programs use the cores, too, and each thread gets its own share of them";
    }
    if (planned <= std::ceil(stage_s * plan_.rate * (1 + kHeadroom))) return each;
    return fmt::format("{}, and costs vary by {:.0f} %", each, 100 * model_.stages()[s].cv);
  }

  void AddQueue(size_t s) {
    const int now = current_.queue_capacity[s], planned = plan_.settings.queue_capacity[s];
    if (planned == now) return;
    AddChange(".queue", &Settings::queue_capacity, s,
              planned > now ? WhyLonger(s) : "shorter queues fit the memory budget");
  }

  std::string WhyLonger(size_t s) const {
    if (model_.pauses() && model_.pauses()->stage == s) {
      return fmt::format("now and then the trainer waits {}; a longer queue lasts over it",
                         FormatDuration(model_.pauses()->pauses.wait_s * 1e9));
    }
    return fmt::format("costs vary by {:.0f} %; a short queue loses rate",
                       100 * model_.stages()[s].cv);
  }

  void AddWindow() {
    const int now = current_.order_window, planned = plan_.settings.order_window;
    if (planned == now) return;
    Settings without = plan_.settings;
    without.order_window = now;
    allocation_.changes.push_back(
        {"pipeline.reorder_window",
         now,
         planned,
         "threads wait for the slowest of them unless others may go ahead",
         GainOver(without),
         {}});
  }

  void AddMemory() {
    allocation_.memory_bytes = QueueMemory(model_, plan_.settings);
    const std::optional<double> now = QueueMemory(model_, current_);
    if (allocation_.memory_bytes && now) {
      allocation_.memory_change_bytes = *allocation_.memory_bytes - *now;
    }
  }

  void AddCaches() {
    if (!plan_.caches.empty()) allocation_.predicted_fill = plan_.fill_rate;
    if (!budget_.cache || budget_.cache->epochs <= 0) return;
    const double batches = budget_.cache->epochs * budget_.cache->epoch_batches;
    allocation_.now_total_s = batches / model_.demands().rate;
    allocation_.total_s = batches * plan_.average_s;
  }

  void Predict(bool same_cores) {
    Settings settings = plan_.settings;
    if (same_cores) settings.cores = current_.cores;
    const Prediction prediction = predictor_.Predict({settings, plan_.warm});
    allocation_.predicted = prediction.rate;
    allocation_.predicted_interval = prediction.interval;
    allocation_.handing_over_s = prediction.handing_over_s;
    const double now = model_.demands().rate;
    // A 90 % interval reaches 1.645 deviations down, the 10th percentile is at 1.2816.
    const double deviation =
        std::log(prediction.rate / std::max(prediction.interval.low, 1e-12)) / 1.645;
    allocation_.promise = prediction.rate * std::exp(-1.2816 * deviation);
    const bool changes = settings != current_ || !plan_.warm.empty();
    if (changes && deviation > 0) {
      const double gained = std::log(prediction.rate / now);
      allocation_.slower_probability = 0.5 * std::erfc(gained / deviation / std::sqrt(2.0));
    }
    allocation_.gain_interval = {prediction.interval.low / now - 1,
                                 prediction.interval.high / now - 1};
    if (prediction.store_may_be_full && allocation_.gain_interval.low <= 0) {
      // What is not known has no probability: nothing above the interval's low end is promised.
      allocation_.unknown_store = predictor_.StoreInDoubt({settings, plan_.warm});
      allocation_.promise = std::min(allocation_.promise, prediction.interval.low);
      allocation_.slower_probability.reset();
    }
    NameLimits(prediction);
  }

  void NameLimits(const Prediction& prediction) {
    allocation_.limited_by = prediction.limits[prediction.binding];
    allocation_.next_bound = kInfinite;
    for (size_t i = 0; i < prediction.limits.size(); ++i) {
      const Limit& limit = prediction.limits[i];
      if (i == prediction.binding || limit.bound >= allocation_.next_bound) continue;
      allocation_.next_bound = limit.bound;
      allocation_.next = limit;
    }
  }

  const PipelineModel& model_;
  const Predictor& predictor_;
  const Budget& budget_;
  const MemoryBudget& memory_;
  const Planner& planner_;
  Candidate plan_;
  Settings current_;
  Demands demands_;  // with the planned caches
  Allocation allocation_;
};

}  // namespace

Allocation Allocate(const Predictor& predictor, const Budget& budget) {
  const PipelineModel& model = predictor.model();
  const bool same_cores = AsManyCores(model, budget);
  const MemoryBudget memory(model, budget.memory_bytes);
  Settings base = memory.Shortened(model.current());
  if (!same_cores) base.cores = *budget.cores;
  const Planner planner(model, predictor, budget, memory, base, same_cores);
  Allocation allocation =
      Description(model, predictor, budget, memory, planner, planner.Best()).Make(same_cores);
  if (budget.target && allocation.predicted < *budget.target * (1 - kWorthwhileGain)) {
    throw Error(ExitCode::kInconclusive,
                fmt::format("no plan reaches {}: the most is {}, {} short, limited by {}",
                            FormatRate(*budget.target, "batches"),
                            FormatRate(allocation.predicted, "batches"),
                            FormatPercent(1 - allocation.predicted / *budget.target),
                            Describe(allocation.limited_by)),
                "target", "lower --target, or make that part cheaper");
  }
  return allocation;
}

}  // namespace headrace::analysis
