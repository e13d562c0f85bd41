#include "analysis/tuning/tuner_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/model/limits/bounds.h"
#include "analysis/program/memory_budget.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/infinite.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

std::string ThreadsKnob(const StageModel& stage) { return stage.name + ".parallelism"; }
std::string QueueKnob(const StageModel& stage) { return stage.name + ".queue"; }

// One proposal in the making.
class Draft {
 public:
  Draft(const PipelineModel& model, const ProposeQuestion& question)
      : model_(model),
        question_(question),
        predictor_(model),
        limit_bytes_(MemoryLimit(model, question.budget.memory_bytes)),
        knobs_(KnobsOf(model, model.current())) {
    const Demands& demands = model.demands();
    proposal_.now = demands.rate;
    const std::vector<Limit> limits = Bounds(model, demands, model.current());
    proposal_.limited_by = limits[BindingRow(model, demands, limits)];
    proposal_.then = proposal_.limited_by;
    proposal_.memory_bytes = MemoryOf(model.current());
    const HostRow* rss = model.run().FindHost("process_rss_bytes");
    proposal_.forced = rss != nullptr && rss->last_value && *rss->last_value > limit_bytes_;
  }

  Proposal Make() {
    if (!proposal_.forced && Needed() < kInfinite) {
      proposal_.limited_by = LimitOfConsumer(Needed());
      if (Take(Fewer())) {
        proposal_.fewer_threads = true;
        proposal_.reason =
            TargetMet()
                ? fmt::format("the target is {}: fewer threads reach it",
                              FormatRate(Needed(), "batches"))
                : fmt::format("{} takes {} and almost never waits: fewer threads do as well",
                              Taker(), FormatRate(Needed(), "batches"));
      } else {
        proposal_.reason = fmt::format("{} is the limit, and threads are few", Taker());
      }
      return std::move(proposal_);
    }
    const Allocation plan = Allocate(predictor_, BudgetOf());
    Settings settings = Turnable(plan.settings);
    settings = NotTried(Fitted(settings));
    if (!Take(settings)) {
      if (proposal_.reason.empty()) {
        proposal_.reason = fmt::format("{} is the limit; no setting within the budget is faster",
                                       analysis::Describe(proposal_.limited_by));
      }
      return std::move(proposal_);
    }
    if (proposal_.forced) {
      proposal_.reason =
          fmt::format("{} do not fit {}", FormatBytes(MemoryOf(model_.current()).value_or(0)),
                      FormatBytes(limit_bytes_));
      return std::move(proposal_);
    }
    const double gain = proposal_.predicted / proposal_.now - 1;
    const bool unsure = question_.sure && proposal_.gain_interval.low <= 0;
    if (gain < question_.least_gain || unsure) {
      proposal_.reason = fmt::format("{} limits, and the plan would gain {} only",
                                     analysis::Describe(proposal_.limited_by), FormatPercent(gain));
      if (unsure && gain >= question_.least_gain) {
        proposal_.reason = fmt::format("the plan's gain, {}, may be none", FormatPercent(gain));
      }
      proposal_.changes.clear();
      return std::move(proposal_);
    }
    for (Change& change : proposal_.changes) {
      for (const Change& planned : plan.changes) {
        if (planned.knob != change.knob) continue;
        change.gain = planned.gain;
        change.why = planned.why;
      }
    }
    proposal_.reason =
        fmt::format("{} limits; {}", analysis::Describe(proposal_.limited_by), Whys());
    return std::move(proposal_);
  }

 private:
  std::string Whys() const {
    std::string words;
    for (const Change& change : proposal_.changes) {
      if (change.why.empty() || words.find(change.why) != std::string::npos) continue;
      words += (words.empty() ? "" : "; ") + change.knob + ": " + change.why;
    }
    return words.empty() ? "a part of the plan" : words;
  }

  std::optional<double> MemoryOf(const Settings& settings) const {
    if (!question_.rest_bytes) return std::nullopt;
    return *question_.rest_bytes + QueueMemory(model_, settings).value_or(0);
  }
  // What takes no more than what runs now is no worse for the memory; what takes more must fit with
  // room for what the rest of the process is not known to.
  bool Fits(const Settings& settings) const {
    if (!proposal_.forced && QueueMemory(model_, settings).value_or(0) <=
                                 QueueMemory(model_, model_.current()).value_or(0) * (1 + 1e-9))
      return true;
    return MemoryOf(settings).value_or(0) <= limit_bytes_ - Margin();
  }

  double Margin() const {
    if (!std::isfinite(limit_bytes_)) return 0;
    const double room = std::max(0.0, limit_bytes_ - question_.rest_bytes.value_or(0));
    return std::min(kMemoryMargin * limit_bytes_, kRoomMargin * room);
  }

  std::string Taker() const {
    return TargetMet() ? std::string("the target") : std::string("the trainer");
  }
  bool TargetMet() const {
    return question_.budget.target && model_.demands().rate >= *question_.budget.target;
  }
  // The rate beyond which nobody wants more; infinite while somebody does.
  double Needed() const {
    const double consumer_s = model_.demands().consumer_s;
    double needed = kInfinite;
    if (model_.stall_ratio() < kKeepsUp && consumer_s > 0) needed = model_.demands().rate;
    if (TargetMet()) needed = std::min(needed, *question_.budget.target);
    return needed;
  }

  // The fewest threads with which each stage has the margin, and the prediction loses next to
  // nothing.
  Settings Fewer() const {
    const Settings& current = model_.current();
    const std::vector<double>& stage_s = model_.demands().stage_s;
    Settings fewer = current;
    int before = 0, after = 0;
    for (size_t s = 0; s < stage_s.size(); ++s) {
      const double wanted = std::ceil(stage_s[s] * Needed() * (1 + kThreadsMargin) - 1e-9);
      if (question_.turnable.contains(ThreadsKnob(model_.stages()[s]))) {
        fewer.parallelism[s] = std::clamp(static_cast<int>(std::min(wanted, 1e6)), 1,
                                          std::max(1, current.parallelism[s]));
      }
    }
    const double least =
        std::min(predictor_.Rate({current, {}}), Needed()) * (1 - kFewerMayLosePredicted);
    while (fewer != current && predictor_.Rate({fewer, {}}) < least) {
      size_t tightest = stage_s.size();
      double room = kInfinite;
      for (size_t s = 0; s < stage_s.size(); ++s) {
        if (fewer.parallelism[s] >= current.parallelism[s]) continue;
        const double has = fewer.parallelism[s] / std::max(stage_s[s], 1e-12);
        if (has >= room) continue;
        room = has;
        tightest = s;
      }
      if (tightest == stage_s.size()) break;
      ++fewer.parallelism[tightest];
    }
    for (size_t s = 0; s < stage_s.size(); ++s) {
      before += current.parallelism[s];
      after += fewer.parallelism[s];
    }
    return before - after >= kWorthFewerThreads * before && !WasTried(fewer) ? fewer : current;
  }

  // Allocate takes the process less full queues to be the rest of it; of that more is known here.
  Budget BudgetOf() const {
    Budget budget;
    budget.cores = question_.budget.cores;
    budget.target = question_.budget.target;
    budget.max_threads = question_.budget.max_threads;
    if (!std::isfinite(limit_bytes_)) return budget;
    const double full = QueueMemory(model_, model_.current()).value_or(0);
    const HostRow* rss = model_.run().FindHost("process_rss_bytes");
    const double size = rss != nullptr ? rss->maximum_value.value_or(0) : 0;
    const double taken = std::max(0.0, size - full);
    const double rest = question_.rest_bytes.value_or(taken);
    double limit = limit_bytes_ - Margin() - rest + taken;
    // What runs now may run on, whatever rounding to whole bytes makes of it.
    if (!proposal_.forced) limit = std::max(limit, taken + full + 2);
    budget.memory_bytes = static_cast<uint64_t>(std::max(1.0, limit));
    return budget;
  }

  Settings Turnable(Settings settings) const {
    const Settings& current = model_.current();
    for (size_t s = 0; s < model_.stages().size(); ++s) {
      const StageModel& stage = model_.stages()[s];
      if (!question_.turnable.contains(ThreadsKnob(stage)))
        settings.parallelism[s] = current.parallelism[s];
      if (!question_.turnable.contains(QueueKnob(stage)))
        settings.queue_capacity[s] = current.queue_capacity[s];
    }
    settings.order_window = current.order_window;
    settings.cores = current.cores;
    return settings;
  }

  bool WasTried(const Settings& settings) const {
    const KnobValues knobs = KnobsOf(model_, settings);
    return std::find(question_.tried.begin(), question_.tried.end(), knobs) !=
           question_.tried.end();
  }

  // Half of the way, and half of that, until it is one that was not tried.
  Settings NotTried(Settings settings) {
    const Settings& current = model_.current();
    bool shrunk = false;
    while (settings != current && WasTried(settings)) {
      shrunk = true;
      for (size_t s = 0; s < settings.parallelism.size(); ++s) {
        const auto half = [](int from, int to) { return from + (to - from) / 2; };
        settings.parallelism[s] = half(current.parallelism[s], settings.parallelism[s]);
        settings.queue_capacity[s] = half(current.queue_capacity[s], settings.queue_capacity[s]);
      }
    }
    if (shrunk && settings == current) {
      proposal_.reason = "the plan was tried and taken back";
    }
    return settings;
  }

  // With less of what the plan adds, what takes most first, until it fits; as it is now where that
  // does not help.
  Settings Fitted(Settings settings) const {
    const Settings& current = model_.current();
    while (!Fits(settings)) {
      int* largest = nullptr;
      double most = 0;
      for (size_t s = 0; s < settings.parallelism.size(); ++s) {
        const auto look = [&](int now, int* then, double weight) {
          const double bytes = weight * ElementBytes(model_, s) * (*then - now);
          if (*then <= now || bytes <= most) return;
          most = bytes;
          largest = then;
        };
        // Threads last: a queue rarely gains as much.
        look(current.queue_capacity[s], &settings.queue_capacity[s], 1e6);
        look(current.parallelism[s], &settings.parallelism[s], 1);
      }
      if (largest == nullptr) return current;
      --*largest;
    }
    return settings;
  }

  // Whether they differ from the present ones, and fit.
  bool Take(const Settings& settings) {
    proposal_.changes = ChangesBetween(knobs_, KnobsOf(model_, settings));
    if (!proposal_.changes.empty() && !Fits(settings)) {
      proposal_.changes.clear();
      proposal_.reason = "the plan does not fit the memory";
    }
    if (proposal_.changes.empty()) return false;
    for (Change& change : proposal_.changes) {
      for (size_t s = 0; s < model_.stages().size(); ++s) {
        const StageModel& stage = model_.stages()[s];
        if (change.knob != ThreadsKnob(stage) && change.knob != QueueKnob(stage)) continue;
        if (stage.element_bytes) {
          change.memory_bytes = *stage.element_bytes * (change.to - change.from);
        }
      }
    }
    const Prediction prediction = predictor_.Predict({settings, {}});
    proposal_.predicted = prediction.rate;
    proposal_.predicted_interval = prediction.interval;
    proposal_.then = prediction.limits[prediction.binding];
    proposal_.gain_interval = predictor_.Gain({model_.current(), {}}, {settings, {}},
                                              prediction.rate / proposal_.now - 1);
    proposal_.memory_bytes = MemoryOf(settings);
    return true;
  }

  const PipelineModel& model_;
  const ProposeQuestion& question_;
  Predictor predictor_;
  double limit_bytes_;
  KnobValues knobs_;
  Proposal proposal_;
};

}  // namespace

KnobValues KnobsOf(const PipelineModel& model, const Settings& settings) {
  KnobValues knobs;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const StageModel& stage = model.stages()[s];
    knobs[ThreadsKnob(stage)] = settings.parallelism[s];
    if (stage.queue) knobs[QueueKnob(stage)] = settings.queue_capacity[s];
  }
  return knobs;
}

Settings SettingsOf(const PipelineModel& model, const KnobValues& knobs) {
  Settings settings = model.current();
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const StageModel& stage = model.stages()[s];
    const auto threads = knobs.find(ThreadsKnob(stage));
    if (threads != knobs.end()) settings.parallelism[s] = threads->second;
    const auto queue = knobs.find(QueueKnob(stage));
    if (queue != knobs.end()) settings.queue_capacity[s] = queue->second;
  }
  return settings;
}

std::vector<Change> ChangesBetween(const KnobValues& from, const KnobValues& to) {
  std::vector<Change> changes;
  for (const auto& [knob, value] : to) {
    const auto before = from.find(knob);
    if (before == from.end() || before->second == value) continue;
    Change& change = changes.emplace_back();
    change.knob = knob;
    change.from = before->second;
    change.to = value;
  }
  return changes;
}

std::optional<double> RestOfProcess(const RunView& run) {
  const HostRow* rss = run.FindHost("process_rss_bytes");
  if (rss == nullptr || !rss->last_value || run.windows.empty()) return std::nullopt;
  const WindowRow& window = run.windows.back();
  double held = 0;
  bool known = false;
  for (size_t q = 0; q < std::min(run.queues.size(), window.queues.size()); ++q) {
    const QueueRow& queue = run.queues[q];
    // The last operator of the stage says how large an element is.
    double bytes = 0, elements = 0, busy_ns = 0, all_ns = 0;
    for (size_t i = 0; i < std::min(run.operators.size(), window.operators.size()); ++i) {
      const OperatorRow& op = run.operators[i];
      if (op.stage != queue.producer_stage) continue;
      busy_ns += static_cast<double>(op.busy_ns + op.wait_out_ns);
      all_ns += static_cast<double>(op.busy_ns + op.wait_out_ns + op.wait_in_ns);
      if (op.bytes_out_bytes > 0) bytes = static_cast<double>(op.bytes_out_bytes);
    }
    elements = static_cast<double>(queue.puts_count);
    if (bytes <= 0 || elements <= 0) continue;
    known = true;
    double threads = 0;
    for (const StageRow& stage : run.stages) {
      if (stage.name == queue.producer_stage)
        threads = static_cast<double>(stage.last_parallelism_count);
    }
    const double occupied = window.queues[q].mean_occupancy_ratio.value_or(0) *
                            static_cast<double>(queue.capacity_count);
    const double working = all_ns > 0 ? threads * busy_ns / all_ns : 0;
    held += bytes / elements * (occupied + working);
  }
  if (!known) return std::nullopt;
  return std::max(0.0, *rss->last_value - held);
}

Proposal Propose(const PipelineModel& model, const ProposeQuestion& question) {
  return Draft(model, question).Make();
}

}  // namespace headrace::analysis
