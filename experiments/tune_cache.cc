#include "experiments/tune_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/model/prediction.h"
#include "analysis/program/allocation.h"
#include "analysis/program/reader_cache.h"
#include "analysis/run/read_run.h"
#include "analysis/statistics/block_comparison.h"
#include "analysis/statistics/statistics.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "experiments/cache_options.h"
#include "experiments/recorded_run.h"

namespace headrace::experiments {
namespace {

constexpr double kFillMargin = 1.5;  // factor on the predicted time of the filling epoch
constexpr int64_t kWarmNs = 8'000'000'000;
constexpr size_t kFewestWindows = 6;
constexpr double kLikelyBetter = 0.01;

double RateOf(const analysis::WindowRow& window) {
  return static_cast<double>(window.steps.steps_count) /
         std::max(1e-9, static_cast<double>(window.duration_ns) * 1e-9);
}

// Rates since the knobs were turned last, of the steady phase.
std::vector<double> RatesBefore(const analysis::PipelineModel& model, const std::string& database) {
  const analysis::RunView& run = model.run();
  int64_t from_ns = 0;
  const std::string id = std::to_string(run.run.run_id);
  for (const analysis::DecisionRow& decision : analysis::LoadDecisions(database, id)) {
    if (decision.applied_ns) from_ns = std::max(from_ns, *decision.applied_ns);
    // Verifying ends with the settings that stay.
    if (decision.observed_ns) from_ns = std::max(from_ns, *decision.observed_ns);
  }
  std::vector<double> all, since;
  for (const size_t index : model.steady_windows()) {
    const analysis::WindowRow& window = run.windows[index];
    if (window.steps.steps_count <= 0) continue;
    all.push_back(RateOf(window));
    if (window.start_ns >= from_ns) since.push_back(all.back());
  }
  if (since.size() >= kFewestWindows) return since;
  const size_t keep = std::min(all.size(), 2 * kFewestWindows);
  return {all.end() - static_cast<std::ptrdiff_t>(keep), all.end()};
}

std::string WhyNot(const analysis::PipelineModel& model, const analysis::CacheQuestion& question,
                   const analysis::CacheChoice& choice) {
  if (choice.options.empty()) return "no cache: no stage's output has a size that the run recorded";
  const analysis::CacheOption* best = nullptr;
  for (const analysis::CacheOption& option : choice.options) {
    if (!option.allowed || !option.random.empty()) continue;
    if (best == nullptr || option.warm_rate > best->warm_rate) best = &option;
  }
  if (best == nullptr) return "no cache: none of the stages is one whose output can be kept";
  return fmt::format(
      "no cache: keeping what leaves {} in {} ({} an epoch) would give {:+.1f} % [{:.1f}, {:.1f}] "
      "alone, beside the rest of the plan under 3 %",
      Printable(model.stages()[best->stage].name), question.tiers[best->tier].name,
      FormatBytes(best->stored_bytes), 100 * (best->warm_rate / choice.rate - 1),
      100 * best->warm_gain.low, 100 * best->warm_gain.high);
}

std::string Why(const analysis::PipelineModel& model, const analysis::CacheQuestion& question,
                const analysis::Allocation& plan, const analysis::CacheChoice& choice) {
  const analysis::PlannedCache& cache = plan.caches.front();
  std::string why = fmt::format(
      "keep what leaves {} in {}: {} of {}, budget {}; {:+.0f} % [{:.0f}, {:.0f}] from the second "
      "epoch on",
      Printable(model.stages()[cache.stage].name), question.tiers[cache.tier].name,
      FormatBytes(cache.bytes), FormatBytes(cache.bytes / std::max(1e-9, cache.share)),
      FormatBytes(static_cast<double>(analysis::CacheBudgetMiB(cache)) * 1048576),
      100 * (plan.predicted / plan.now - 1), 100 * plan.gain_interval.low,
      100 * plan.gain_interval.high);
  for (const analysis::CacheOption& option : choice.options) {
    if (option.stage != cache.stage || option.tier != cache.tier || !option.break_even_epochs) {
      continue;
    }
    why += fmt::format("; filling at {}, it pays after {:.0f} epochs",
                       FormatRate(plan.predicted_fill.value_or(option.fill_rate), "batches"),
                       std::max(2.0, std::floor(*option.break_even_epochs) + 1));
  }
  return why;
}

std::vector<std::string> SettingsOfRestart(const CacheTuning& what,
                                           const analysis::Decision& decision) {
  std::vector<std::string> settings = what.settings;
  for (const auto& [knob, value] : what.knobs) {
    const auto before = what.start.find(knob);
    if (before == what.start.end() || before->second != value) {
      settings.push_back(fmt::format("{}={}", knob, value));
    }
  }
  for (const auto& [key, value] : decision.start_settings) settings.push_back(key + "=" + value);
  return settings;
}

// Runs the pipeline with the cache, recorded as another run. Returns its id.
int64_t Restart(const CacheTuning& what, const analysis::Decision& decision, int64_t duration_ns) {
  constexpr int64_t kStartsAndEndsNs = 60'000'000'000;
  RecordedRun run;
  run.pipeline = what.pipeline;
  run.database = what.database;
  run.name = fmt::format("{}-cache-{}", what.name, what.run_id);
  run.settings = SettingsOfRestart(what, decision);
  run.arguments = {"--duration", fmt::format("{}ms", duration_ns / 1'000'000)};
  if (!what.checkpoint.empty())
    run.arguments.insert(run.arguments.end(), {"--checkpoint", what.checkpoint, "--resume"});
  run.where = "the run with the cache";
  run.timeout_ns = duration_ns + kStartsAndEndsNs;
  return RecordRun(run).run_id;
}

void Tell(const analysis::Decision& decision, const std::vector<analysis::DecisionSink*>& sinks) {
  for (analysis::DecisionSink* sink : sinks) sink->Take(decision);
}

void Judge(const std::vector<double>& before, const std::vector<double>& warm,
           analysis::Decision* decision) {
  using analysis::TuneVerdict;
  if (warm.size() < kFewestWindows || before.size() < kFewestWindows) {
    decision->reason += "; not verified: the cache was not full in the time there was";
    return;
  }
  const analysis::Effect effect = analysis::CompareWindows(before, warm);
  decision->observed = analysis::Mean(warm);
  const double half = 1.96 * std::sqrt(analysis::Variance(warm) / static_cast<double>(warm.size()));
  decision->observed_interval = {*decision->observed - half, *decision->observed + half};
  decision->effect = effect.ratio;
  decision->effect_interval = effect.interval;
  const bool keeps = effect.clear ? effect.ratio > 0 : effect.ratio > kLikelyBetter;
  decision->verdict = keeps ? TuneVerdict::kKept : TuneVerdict::kReverted;
}

}  // namespace

std::optional<double> EpochRows(const analysis::RunView& run) {
  if (!run.run.epoch_splits_count || *run.run.epoch_splits_count <= 0) return std::nullopt;
  for (const analysis::OperatorRow& op : run.operators) {
    if (op.kind != "fetch" || op.completions_count <= 0 || op.rows_count <= 0) continue;
    return static_cast<double>(op.rows_count) / static_cast<double>(op.completions_count) *
           static_cast<double>(*run.run.epoch_splits_count);
  }
  return std::nullopt;
}

std::vector<double> RatesAfterRows(const analysis::RunView& run, double rows) {
  std::vector<double> rates;
  double seen = 0;
  for (const analysis::WindowRow& window : run.windows) {
    if (seen >= rows && window.steps.steps_count > 0) rates.push_back(RateOf(window));
    seen += static_cast<double>(window.steps.rows_count);
  }
  // The last one may be cut short by the end.
  if (!rates.empty()) rates.pop_back();
  return rates;
}

namespace {

// What the plan sets, and at the next start.
void Announce(const analysis::Allocation& plan, const std::string& after, const std::string& tier,
              analysis::Decision* decision) {
  decision->changes = plan.changes;
  for (const analysis::Change& change : plan.changes) {
    decision->settings[change.knob] = change.to;
    decision->start_settings[change.knob] = std::to_string(change.to);
  }
  decision->start_settings["cache.after"] = after;
  decision->start_settings["cache.tier"] = tier;
  decision->start_settings["cache.budget"] =
      fmt::format("{}MiB", analysis::CacheBudgetMiB(plan.caches.front()));
  decision->predicted = plan.predicted;
  decision->predicted_interval = plan.predicted_interval;
  decision->then_limited_by = analysis::Describe(plan.limited_by);
  decision->memory_bytes = plan.memory_bytes;
}

std::string WhyUnverified(const CacheTuning& what, const std::string& tier, double fill_s) {
  if (tier != "memory") return "a cache on a disk needs cache.folder, which is yours to name";
  if (what.most_verify_ns <= 0) return "no run was asked for";
  return fmt::format("filling it takes {}", FormatDuration(fill_s * 1e9));
}

}  // namespace

CacheTuned TuneCache(const CacheTuning& what, const std::vector<analysis::DecisionSink*>& sinks) {
  const analysis::RunView run = analysis::LoadRun(what.database, std::to_string(what.run_id));
  const analysis::PipelineModel model(run);
  CacheOptions asked = what.cache;
  if (asked.epoch_rows <= 0) asked.epoch_rows = EpochRows(run).value_or(0);
  const analysis::CacheQuestion question = CacheQuestionOf(model, asked);
  analysis::Budget budget = what.budget;
  budget.cache = question;
  budget.one_cache = analysis::IsReader(model);
  const analysis::Predictor predictor(model);
  const analysis::CacheChoice choice = analysis::ChooseCache(model, predictor, question);
  const analysis::Allocation plan = analysis::Allocate(predictor, budget);

  CacheTuned tuned;
  analysis::Decision& decision = tuned.decision;
  decision.index = what.first_decision;
  decision.action = analysis::TuneAction::kCache;
  decision.settings = what.knobs;
  decision.at_ns = run.run.duration_ns;
  decision.now = plan.now;
  const analysis::Prediction present = predictor.Predict({model.current(), {}});
  decision.limited_by = present.limits[present.binding];
  const std::string after =
      plan.caches.empty() ? "" : analysis::CacheAfter(model, plan.caches.front().stage);
  if (after.empty()) {
    decision.reason = WhyNot(model, question, choice);
    Tell(decision, sinks);
    return tuned;
  }
  const analysis::PlannedCache& cache = plan.caches.front();
  const std::string& tier = question.tiers[cache.tier].name;
  Announce(plan, after, tier, &decision);
  decision.reason = Why(model, question, plan, choice);
  const double fill_s = question.epoch_batches / std::max(1e-9, plan.predicted_fill.value_or(0));
  const double run_ns = kFillMargin * fill_s * 1e9 + static_cast<double>(kWarmNs);
  const bool verifies = tier == "memory" && run_ns < static_cast<double>(what.most_verify_ns);
  if (!verifies) {
    decision.reason +=
        "; takes effect at the next start, not verified: " + WhyUnverified(what, tier, fill_s);
    Tell(decision, sinks);
    return tuned;
  }
  Tell(decision, sinks);
  decision.applied_ns = run.run.duration_ns;
  Tell(decision, sinks);
  analysis::RunView restarted;
  try {
    const int64_t run_id = Restart(what, decision, static_cast<int64_t>(run_ns));
    restarted = analysis::LoadRun(what.database, std::to_string(run_id));
  } catch (const Error& error) {
    decision.verdict = analysis::TuneVerdict::kFailed;
    decision.reason += fmt::format("; {}; the settings before it stand", error.what());
    decision.start_settings.clear();
    Tell(decision, sinks);
    return tuned;
  }
  tuned.run_id = restarted.run.run_id;
  Judge(RatesBefore(model, what.database), RatesAfterRows(restarted, asked.epoch_rows), &decision);
  decision.judged_ns = run.run.duration_ns + restarted.run.duration_ns;
  decision.reason += fmt::format("; restarted with it as run {}", restarted.run.run_id);
  if (decision.verdict == analysis::TuneVerdict::kReverted) decision.start_settings.clear();
  Tell(decision, sinks);
  return tuned;
}

}  // namespace headrace::experiments
