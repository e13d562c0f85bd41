// How a tuner compares new settings with old ones, and what it does then.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/thresholds.h"
#include "analysis/tuning/tuner_state.h"

namespace headrace::analysis {
namespace {

constexpr int kMostBlock = 20;  // windows

}  // namespace

// `windows`: at the settings in force, which are the first block.
void TunerState::StartTrial(bool first_is_new, const std::vector<size_t>& windows) {
  // A large effect shows in short blocks.
  const double gain = std::abs(trial->predicted_gain);
  const double allowed = std::clamp(gain / 8, kBlockError, kLargeBlockError);
  const double spread = seen.Spread(windows);
  const double wanted = std::ceil(std::pow(spread / allowed, 2));
  trial->block = static_cast<int>(std::clamp(wanted, 1.0 * kLeastBlock, 1.0 * kMostBlock));
  const double error = spread / std::sqrt(static_cast<double>(trial->block));
  trial->blocks.emplace(first_is_new, static_cast<size_t>(std::max(1, options.pairs)), error);
  const size_t first = windows.size() - std::min(windows.size(), size_t(trial->block));
  const std::vector<size_t> last(windows.begin() + static_cast<long>(first), windows.end());
  trial->blocks->Add(std::max(1e-9, seen.RateOver(last)));
  trial->rates_before = seen.RatesOf(windows);
  trial->block_from_ns = 0;
}

Move TunerState::VerifyStart(const std::string& why) {
  const std::vector<size_t> windows = seen.WindowsSince(0);
  Decision& decision =
      Decide(TuneAction::kVerify, why + "; compared with the settings of the start once more");
  decision.now = rate;
  trial.emplace();
  trial->before = start;
  trial->after = incumbent;
  trial->decision = decisions.size() - 1;
  trial->against_start = true;
  trial->predicted_gain = 0.2;
  StartTrial(true, windows.empty() ? seen.WindowsAt(current) : windows);
  phase = Phase::kTrial;
  return Set(start, trial->block);
}

Move TunerState::Compare() {
  Trial& t = *trial;
  if (!t.interleave) return CompareOnce();
  const std::vector<size_t> windows = seen.WindowsSince(t.block_from_ns);
  const size_t needed = static_cast<size_t>(t.block);
  if (windows.size() < needed) return Wait(static_cast<double>(needed - windows.size()));
  const std::vector<size_t> block(windows.begin(), windows.begin() + t.block);
  t.blocks->Add(std::max(1e-9, seen.RateOver(block)));
  const WindowRow& last = seen.run->windows[block.back()];
  t.block_from_ns = last.start_ns + last.duration_ns;
  if (t.blocks->done()) {
    return Judge(t.blocks->effect(), Mean(t.blocks->new_rates()), t.blocks->new_rates());
  }
  const KnobValues& next = t.blocks->NextIsNew() ? t.after : t.before;
  if (next == current) return Wait(t.block);
  rate = Mean(current == t.after ? t.blocks->new_rates() : t.blocks->old_rates());
  return Set(next, t.block);
}

Move TunerState::CompareOnce() {
  Trial& t = *trial;
  const std::vector<size_t> windows = seen.WindowsSince(0);
  const double count = static_cast<double>(windows.size());
  if (count < kFewestWindowsToCompare) return Wait(kFewestWindowsToCompare - count);
  const Effect effect = CompareWindows(t.rates_before, seen.RatesOf(windows));
  if (!effect.clear && count < kEnoughWindowsToCompare) return Wait(2);
  const double observed = seen.RateOver(windows);
  if (effect.clear || Keeps(effect, observed) || !options.interleave)
    return Judge(effect, observed, seen.RatesOf(windows));
  // The few windows before it do not decide: the old settings are tried again after all.
  t.interleave = true;
  t.predicted_gain = effect.ratio;
  rate = observed;
  StartTrial(true, windows);
  return Set(t.before, t.block);
}

// `observed`: the rate with the change.
bool TunerState::Keeps(const Effect& effect, double observed) const {
  if (trial->forced) return true;
  // More than that nobody asked for.
  if (trial->fewer && ReachesTarget(observed)) return true;
  if (trial->fewer) return effect.interval.low > -kFewerMayLose;
  return effect.clear && effect.ratio > 0;
}

bool TunerState::ReachesTarget(double observed) const {
  return options.target && observed >= *options.target * (1 - kFewerMayLose);
}

std::string TunerState::Words(const Effect& effect) const {
  return fmt::format("{:+.1f} % [{:.1f}, {:.1f}]", 100 * effect.ratio, 100 * effect.interval.low,
                     100 * effect.interval.high);
}

Move TunerState::Judge(const Effect& effect, double observed, const std::vector<double>& rates) {
  const Trial t = *trial;
  trial.reset();
  const bool of_start = decisions[t.decision].action == TuneAction::kVerify;
  const bool keeps = of_start || Keeps(effect, observed);
  Decision& decision = decisions[t.decision];
  decision.judged_ns = seen.now_ns;
  decision.observed = observed;
  const double half = 1.96 * std::sqrt(Variance(rates) / std::max<double>(1, double(rates.size())));
  decision.observed_interval = {observed - half, observed + half};
  decision.effect = effect.ratio;
  decision.effect_interval = effect.interval;
  decision.pairs = effect.pairs;
  decision.verdict = keeps ? TuneVerdict::kKept : TuneVerdict::kReverted;
  unheard.push_back(t.decision);
  if (of_start || (keeps && t.against_start)) {
    result.shown = effect.interval.low > (kept_fewer || t.fewer ? -kFewerMayLose : 0);
    result.effect = effect.ratio;
    result.effect_interval = effect.interval;
    result.pairs = effect.pairs;
    result.effect_note = effect.pairs > 0 ? "" : "before against after, not interleaved";
  } else if (keeps) {
    result.effect.reset();  // of an earlier step
  }
  rate = observed;
  if (keeps) {
    result.rate = observed;
    if (!of_start) ++kept;
    kept_fewer = kept_fewer || t.fewer;
    taken_back = 0;
    incumbent = t.after;
    phase = Phase::kMeasure;
    if (of_start) return AfterVerify(effect, observed);
    after_drift = false;
    if (current != incumbent) return Set(incumbent, 1);
    return Measure();
  }
  return Revert(t, effect);
}

Move TunerState::AfterVerify(const Effect& effect, double observed) {
  // Where threads were taken away, a little may be lost; beyond a target all that is above it.
  const bool worse = (effect.clear && effect.ratio < (kept_fewer ? -kFewerMayLose : 0) &&
                      !(kept_fewer && ReachesTarget(observed)));
  // Each step was shown to be faster; all together must be.
  const bool not_shown = !result.shown && !kept_fewer;
  std::string why =
      fmt::format("the plan has stopped changing; against the start {}", Words(effect));
  if (worse || not_shown) {
    // Steps that each looked better are not, together.
    Decision& decision = Decide(
        TuneAction::kRevert, worse ? "slower than the start: back to its settings"
                                   : "not shown to be faster than the start: back to its settings");
    decision.changes = ChangesBetween(incumbent, start);
    decision.settings = start;
    ++applied;
    incumbent = start;
    result.effect.reset();
    result.shown = false;
    result.effect_note = "the settings are those of the start";
  }
  const KnobValues settings = incumbent;
  if (options.continuous) {
    Decide(TuneAction::kHold, why + "; watches for changes of the pipeline").now = rate;
    result.why = why;
    result.converged = converged = true;
    after_drift = replanning = false;
    phase = Phase::kWatch;
    return Set(settings, 3);
  }
  Move stop = Stop(std::move(why), true);
  stop.set = InOrder(ChangesBetween(current, settings));
  pending = stop.set;
  return stop;
}

Move TunerState::Revert(const Trial& t, const Effect& effect) {
  tried.push_back(t.after);
  ++taken_back;
  Decision& decision =
      Decide(TuneAction::kRevert, fmt::format("{}: {}; back to what was there before",
                                              effect.clear && effect.ratio < 0 ? "it was slower"
                                              : t.fewer                        ? "it may be slower"
                                                                               : "no gain was seen",
                                              Words(effect)));
  decision.changes = InOrder(ChangesBetween(t.after, t.before));
  decision.settings = t.before;
  ++applied;
  if (converged) {
    // One way back is enough: what was turned stays until the pipeline changes.
    for (const Change& change : decision.changes) turnable.erase(change.knob);
  }
  phase = Phase::kMeasure;
  if (current == t.before) {
    decision.applied_ns = seen.now_ns;
    return Measure();
  }
  return Set(t.before, 1, decisions.size() - 1);
}

}  // namespace headrace::analysis
