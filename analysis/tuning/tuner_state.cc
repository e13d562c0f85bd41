#include "analysis/tuning/tuner_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/run/drift.h"
#include "analysis/run/run_slice.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// How fast it goes on; what it decides by is in analysis/thresholds.def.
constexpr int kLongest = 4;                          // times measure_windows, to know the rate
constexpr int kMostSettling = 12;                    // windows
constexpr size_t kShortDrift = 20, kLongDrift = 60;  // windows in which a drift is looked for
constexpr int64_t kLongestBackOffNs = 600'000'000'000;
constexpr int kGuardRest = 10;  // windows until cut queues show in the memory

}  // namespace

// Those that free memory first.
std::vector<Change> InOrder(std::vector<Change> changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return (a.to < a.from) > (b.to < b.from);
  });
  return changes;
}

void TunerState::Read(const RunView& view) {
  seen.Read(view, current);
  if (view.windows.empty()) return;
  const HostRow* rss = view.FindHost("process_rss_bytes");
  if (options.memory_bytes && rss != nullptr && rss->last_value) {
    const double over = *rss->last_value - static_cast<double>(*options.memory_bytes);
    result.over_memory_bytes = over > 0 ? std::optional<double>(over) : std::nullopt;
  }
}

Decision& TunerState::Decide(TuneAction action, std::string reason) {
  Decision& decision = decisions.emplace_back();
  decision.index = static_cast<int>(decisions.size()) - 1;
  decision.at_ns = seen.now_ns;
  decision.action = action;
  decision.settings = incumbent;
  decision.reason = std::move(reason);
  unheard.push_back(decisions.size() - 1);
  return decision;
}

Move TunerState::Out(Move move) {
  for (const size_t index : unheard) move.decisions.push_back(decisions[index]);
  unheard.clear();
  move.wait_ns = std::max<int64_t>(move.wait_ns, seen.window_ns);
  return move;
}

Move TunerState::Wait(double windows) {
  Move move;
  move.wait_ns = std::llround(std::clamp(windows, 1.0, 10.0) * static_cast<double>(seen.window_ns));
  return Out(std::move(move));
}

// Sets these knobs and waits for so many windows behind it.
Move TunerState::Set(const KnobValues& knobs, double windows, std::optional<size_t> decision) {
  Move move;
  move.set = InOrder(ChangesBetween(current, knobs));
  pending = move.set;
  pending_decision = decision;
  move.wait_ns = std::llround((Settling() + windows) * static_cast<double>(seen.window_ns));
  return Out(std::move(move));
}

// Windows until what lay in the queues has been taken.
double TunerState::Settling() const {
  const double seconds = rate > 0 ? content / rate : 0;
  return std::clamp(seconds / (static_cast<double>(seen.window_ns) * 1e-9), 1.0,
                    static_cast<double>(kMostSettling));
}

Move TunerState::Stop(std::string why, bool has_converged) {
  result.why = why;
  result.converged = has_converged;
  Decision& decision = Decide(TuneAction::kStop, std::move(why));
  decision.now = rate > 0 ? std::optional<double>(rate) : std::nullopt;
  phase = Phase::kDone;
  Move move;
  move.stop = true;
  return Out(std::move(move));
}

// The plan changes nothing any more.
Move TunerState::Converge(const std::string& why) {
  if (!converged && !result.effect && incumbent != start && options.interleave && start_allowed &&
      options.pairs > 0) {
    return VerifyStart(why);
  }
  if (incumbent == start && kept == 0) result.effect_note = "the settings are those of the start";
  if (!options.continuous) return Stop(why, true);
  if (!converged || after_drift) {
    Decision& decision = Decide(TuneAction::kHold, why + "; watches for changes of the pipeline");
    decision.now = rate;
  }
  result.why = why;
  result.converged = converged = true;
  after_drift = replanning = false;
  phase = Phase::kWatch;
  return Wait(3);
}

Move TunerState::Measure() {
  std::vector<size_t> windows = seen.WindowsAt(current);
  const int all = static_cast<int>(windows.size());
  // A pipeline that has not begun says nothing of its rate.
  windows.erase(windows.begin(), std::find_if(windows.begin(), windows.end(), [&](size_t w) {
                  return seen.run->windows[w].steps.steps_count > 0;
                }));
  const int n = static_cast<int>(windows.size());
  int64_t steps = 0;
  for (const size_t w : windows) steps += seen.run->windows[w].steps.steps_count;
  const double least =
      after_drift ? kWindowsAfterDrift : std::max(kLeastBlock, options.measure_windows);
  if (n < least && all < kWindowsWithoutSteps) return Wait(least - n);
  if (static_cast<double>(steps) < kStepsToPlan) {
    // A consumer that pauses later is no reason to give up.
    if (all >= kWindowsWithoutSteps && !converged) {
      throw Error(ExitCode::kInconclusive,
                  fmt::format("the pipeline gave {} batches in {}: too few to plan by", steps,
                              FormatDuration(static_cast<double>(all * seen.window_ns))),
                  fmt::format("run {}", seen.run->run.run_id),
                  "give it time with a longer --duration, or smaller batches");
    }
    return Wait(5);
  }
  const std::vector<size_t> steady = seen.Steady(windows);
  const double error = seen.Spread(steady) / std::sqrt(static_cast<double>(n));
  if (error > kRateError && n < kLongest * least && !after_drift) return Wait(3);
  rate = seen.RateOver(steady);
  if (options.max_decisions > 0 && applied >= options.max_decisions) {
    return Converge(fmt::format("{} decisions, the most allowed", applied));
  }
  return Plan(windows);
}

Move TunerState::Plan(const std::vector<size_t>& windows) {
  if (taken_back >= kMostPlansTakenBack) {
    return Converge(fmt::format("{} plans in a row brought nothing", taken_back));
  }
  const RunView part = seen.PartAt(current, windows);
  const PipelineModel model(part);
  content = 0;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const StageModel& stage = model.stages()[s];
    content += model.current().queue_capacity[s] / std::max(stage.elements, 1e-6) +
               model.current().parallelism[s] / std::max(stage.firings, 1e-6);
  }
  const bool at_rest = converged && !replanning;
  ProposeQuestion question{
      options, turnable, seen.Rest(), tried, at_rest ? kWorthwhileLater : kWorthwhileGain, at_rest};
  Proposal proposal;
  try {
    proposal = Propose(model, question);
  } catch (const Error& error) {
    // At first it is the answer; later there is one that was kept.
    if (error.code() == ExitCode::kInconclusive && applied == 0 && !converged) throw;
    return Converge("no plan was found: " + error.fact());
  }
  rate = proposal.now;
  if (proposal.changes.empty()) {
    if (!result.rate || incumbent == current) result.rate = rate;
    return Converge(fmt::format("the plan has stopped changing: {}", proposal.reason));
  }
  return Begin(proposal, windows);
}

Move TunerState::Begin(const Proposal& proposal, const std::vector<size_t>& windows) {
  const bool less = proposal.fewer_threads || proposal.forced;
  Decision& decision = Decide(less ? TuneAction::kScaleDown : TuneAction::kApply, proposal.reason);
  decision.changes = InOrder(proposal.changes);
  for (const Change& change : proposal.changes) decision.settings[change.knob] = change.to;
  decision.limited_by = proposal.limited_by;
  decision.then_limited_by = Describe(proposal.then);
  decision.now = proposal.now;
  decision.predicted = proposal.predicted;
  decision.predicted_interval = proposal.predicted_interval;
  decision.memory_bytes = proposal.memory_bytes;
  if (options.dry_run) {
    result.rate = proposal.now;
    result.effect_note = "--dry-run: nothing was set";
    return Stop("--dry-run: this is what would be set first", false);
  }
  ++applied;
  trial.emplace();
  trial->before = incumbent;
  trial->after = decision.settings;
  trial->decision = decisions.size() - 1;
  trial->fewer = proposal.fewer_threads;
  trial->forced = proposal.forced;
  trial->against_start = incumbent == start;
  // What is after a drift is compared with what was right before, and only where that does not
  // decide with the bad settings over and over.
  trial->interleave = options.interleave && !after_drift && !proposal.forced;
  if (proposal.forced && incumbent == start) start_allowed = false;
  if (proposal.predicted > proposal.now) {
    // The queues empty at the new rate, which is taken at its least.
    rate = std::max(proposal.now, std::min(proposal.predicted, proposal.predicted_interval.low));
  }
  trial->predicted_gain = proposal.predicted / proposal.now - 1;
  StartTrial(false, seen.Steady(windows));
  phase = Phase::kTrial;
  return Set(trial->after, trial->block, trial->decision);
}

Move TunerState::Watch() {
  const std::vector<size_t> all = seen.WindowsSince(0);
  if (!all.empty()) rate = seen.RateOver(all);
  // Few windows show a large change soon, as most of many are from before; many show a small one.
  std::vector<size_t> windows;
  std::optional<Drift> drift;
  RunView part;
  for (const size_t look : {kShortDrift, kLongDrift}) {
    windows.assign(all.end() - static_cast<long>(std::min(all.size(), look)), all.end());
    part = SliceOf(*seen.run, windows);
    drift = FindDrift(part);
    if (drift && drift->used) break;
  }
  if (!drift || !drift->used) return Wait(2);
  size_t at = 0;
  while (at + 1 < part.windows.size() && part.windows[at].start_ns < drift->at_ns) ++at;
  // Found at once it may begin later than is seen: a few windows more show where.
  if (static_cast<double>(part.windows.size() - at) < kWindowsAfterDrift) return Wait(1);
  seen.known_from_ns = seen.run->windows[windows[at]].start_ns;
  const auto words = [](const char* what, const StageDrift& change) {
    const std::string whose = change.stage.empty()         ? "the pipeline"
                              : change.stage == "consumer" ? "the trainer"
                                                           : "stage " + change.stage;
    return fmt::format("{} of {} is {:.2f} times what it was", what, whose,
                       change.before > 0 ? change.after / change.before : 0);
  };
  std::string what = drift->cost    ? words("the time a row", *drift->cost)
                     : drift->bytes ? words("the size of a row", *drift->bytes)
                     : drift->rate  ? words("the rate", *drift->rate)
                                    : "it changed";
  Decision& decision = Decide(TuneAction::kReplan, "a lasting change: " + what);
  decision.now = seen.RateOver(seen.WindowsSince(0));
  tried.clear();
  taken_back = 0;
  turnable.clear();
  for (const auto& [knob, value] : current) turnable.insert(knob);
  after_drift = replanning = true;
  result.effect.reset();
  phase = Phase::kMeasure;
  return Measure();
}

// The process is larger than it may be: queues and threads are halved, the largest queue first
// in bytes by what the model knows, all of them where it knows nothing.
std::optional<Move> TunerState::Guard() {
  if (!options.memory_bytes || seen.now_ns < guard_from_ns || options.dry_run) return std::nullopt;
  const HostRow* rss = seen.run->FindHost("process_rss_bytes");
  if (rss == nullptr || !rss->last_value) return std::nullopt;
  const double over = *rss->last_value - static_cast<double>(*options.memory_bytes);
  if (over <= 0) return std::nullopt;
  const double most = static_cast<double>(*options.memory_bytes);
  if (kept == 0 && seen.Rest().value_or(0) > most) {
    throw Error(
        ExitCode::kInconclusive,
        fmt::format("no settings fit {}: the minimum is {} without a single element in a "
                    "queue or at work, {} too much",
                    FormatBytes(most), FormatBytes(*seen.Rest()), FormatBytes(*seen.Rest() - most)),
        "memory budget", "raise --memory");
  }
  KnobValues smaller = current;
  for (auto& [knob, value] : smaller) value = std::max(1, value / 2);
  if (smaller == current) {
    if (kept > 0) return Stop("the process takes more than it may at its least settings", false);
    throw Error(ExitCode::kInconclusive,
                fmt::format("no settings fit {}: with one thread a stage and one element a queue "
                            "the minimum is {}, {} too much",
                            FormatBytes(most), FormatBytes(*rss->last_value), FormatBytes(over)),
                "memory budget", "raise --memory");
  }
  seen.extra_bytes += over;
  if (trial && trial->decision < decisions.size()) {
    Decision& open = decisions[trial->decision];
    open.verdict = TuneVerdict::kReverted;
    open.judged_ns = seen.now_ns;
    unheard.push_back(trial->decision);
  }
  trial.reset();
  tried.push_back(current);
  if (current == start) start_allowed = false;
  Decision& decision =
      Decide(TuneAction::kScaleDown,
             fmt::format("the process takes {}, {} more than it may: queues and threads are cut",
                         FormatBytes(*rss->last_value), FormatBytes(over)));
  decision.changes = InOrder(ChangesBetween(current, smaller));
  decision.settings = smaller;
  decision.now = rate > 0 ? std::optional<double>(rate) : std::nullopt;
  decision.verdict = TuneVerdict::kKept;
  ++applied;
  incumbent = smaller;
  phase = Phase::kMeasure;
  guard_from_ns = seen.now_ns + kGuardRest * seen.window_ns;
  return Set(smaller, 2, decisions.size() - 1);
}

// What was to be set is not in force. Watched on, it is tried again later; else that is the end.
Move TunerState::AfterFailure() {
  const std::string why = std::move(failed);
  failed.clear();
  if (!options.continuous) return Stop(why, false);
  trial.reset();
  phase = Phase::kMeasure;
  resume_ns = seen.now_ns + back_off_ns;
  Decide(TuneAction::kHold, fmt::format("{}; tries again in {}", why,
                                        FormatDuration(static_cast<double>(back_off_ns))))
      .now = rate > 0 ? std::optional<double>(rate) : std::nullopt;
  back_off_ns = std::min(2 * back_off_ns, kLongestBackOffNs);
  return Wait(10);
}

// The run has ended, or is watched no more. What was being compared is not kept.
Move TunerState::End(bool runs_on) {
  Move move;
  if (phase == Phase::kDone) return Out(std::move(move));
  if (trial) {
    Decision& open = decisions[trial->decision];
    if (open.verdict == TuneVerdict::kOpen) {
      open.verdict = trial->forced ? TuneVerdict::kKept : TuneVerdict::kSuperseded;
      open.judged_ns = seen.now_ns;
      open.reason += "; the run ended before it was verified";
      unheard.push_back(trial->decision);
    }
    if (trial->forced) incumbent = trial->after;
    trial.reset();
  }
  phase = Phase::kDone;
  if (!runs_on || current == incumbent) return Out(std::move(move));
  Decision& back = Decide(TuneAction::kRevert, "the tuning ends: what is not verified is undone");
  back.changes = move.set = pending = InOrder(ChangesBetween(current, incumbent));
  pending_decision = decisions.size() - 1;
  ++applied;
  return Out(std::move(move));
}

Move TunerState::Next() {
  if (!failed.empty()) return AfterFailure();
  if (seen.now_ns == 0) return Wait(1);
  if (seen.now_ns < resume_ns) return Wait(10);
  // Left as it was when it could not be set back.
  if (phase == Phase::kMeasure && current != incumbent) return Set(incumbent, 1);
  if (std::optional<Move> cut = Guard()) return std::move(*cut);
  switch (phase) {
    case Phase::kMeasure:
      return Measure();
    case Phase::kTrial:
      return Compare();
    case Phase::kWatch:
      return Watch();
    case Phase::kDone:
      break;
  }
  Move move;
  move.stop = true;
  return Out(std::move(move));
}

}  // namespace headrace::analysis
