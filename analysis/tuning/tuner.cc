#include "analysis/tuning/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/run/phases.h"
#include "analysis/run/run_slice.h"
#include "analysis/statistics/block_comparison.h"
#include "analysis/thresholds.h"
#include "analysis/tuning/tuner_plan.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
// How fast it goes on; what it decides by is in analysis/thresholds.def.
constexpr int kLongest = 4;                          // times measure_windows, to know the rate
constexpr int kLeastBlock = 3, kMostBlock = 20;      // windows
constexpr int kMostSettling = 12;                    // windows
constexpr size_t kShortDrift = 20, kLongDrift = 60;  // windows in which a drift is looked for
constexpr int64_t kFirstBackOffNs = 10'000'000'000, kLongestBackOffNs = 600'000'000'000;
constexpr int kGuardRest = 10;  // windows until cut queues show in the memory

double RateOf(const WindowRow& window) {
  return window.duration_ns > 0 ? static_cast<double>(window.steps.steps_count) /
                                      (static_cast<double>(window.duration_ns) * 1e-9)
                                : 0;
}

// Those that free memory first.
std::vector<Change> InOrder(std::vector<Change> changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return (a.to < a.from) > (b.to < b.from);
  });
  return changes;
}

struct Segment {  // of the run, with the same settings
  KnobValues knobs;
  int64_t settled_ns = 0, to_ns = kForever;
};

struct Trial {  // of new settings against old ones
  KnobValues before, after;
  size_t decision = 0;
  bool fewer = false, forced = false, interleave = true;
  bool against_start = false;
  double predicted_gain = 0;
  int block = kLeastBlock;    // windows
  int64_t block_from_ns = 0;  // windows from here on are of the block
  std::optional<BlockComparison> blocks;
  std::vector<double> rates_before;  // of windows, where it is not interleaved
};

}  // namespace

std::string Describe(const std::vector<Change>& changes) {
  std::string words;
  for (const Change& change : changes) {
    words += fmt::format("{}{} {} -> {}", words.empty() ? "" : ", ", change.knob, change.from,
                         change.to);
  }
  return words;
}

const char* TuneActionName(TuneAction action) {
  constexpr const char* kNames[] = {"apply",      "verify", "revert", "hold",
                                    "scale_down", "replan", "stop",   "cache"};
  return kNames[static_cast<int>(action)];
}

const char* TuneVerdictName(TuneVerdict verdict) {
  constexpr const char* kNames[] = {"", "kept", "reverted", "failed", "superseded"};
  return kNames[static_cast<int>(verdict)];
}

struct Tuner::State {
  enum class Phase : uint8_t { kMeasure, kTrial, kWatch, kDone };

  State(TunerOptions o, KnobValues k) : options(o), start(k), incumbent(k), current(k) {
    segments.push_back({current, 0, kForever});
    for (const auto& [knob, value] : current) turnable.insert(knob);
  }

  TunerOptions options;
  KnobValues start, incumbent, current;  // `current`: in force
  std::set<std::string> turnable;
  Phase phase = Phase::kMeasure;
  std::vector<Segment> segments;
  std::vector<std::pair<int64_t, int64_t>> disturbed;
  std::vector<Decision> decisions;
  std::vector<size_t> unheard;  // decisions that were made or judged since the last Move
  std::optional<Trial> trial;
  std::vector<KnobValues> tried;
  std::vector<Change> pending;  // set by the last Move, not yet applied
  std::optional<size_t> pending_decision;
  double content = 0;  // batches in the queues at most
  double rate = 0;     // lately
  int64_t window_ns = 200'000'000;
  int64_t known_from_ns = 0;  // windows before a drift count no more
  int64_t guard_from_ns = 0;
  double extra_bytes = 0;     // that the process was seen to take too much
  std::vector<double> rests;  // of the process beside queues and threads, lately
  int taken_back = 0;         // plans, one after the other
  bool converged = false, after_drift = false;
  bool replanning = false;  // from a drift until the plan has stopped changing once more
  int applied = 0, kept = 0;
  bool start_allowed = true, kept_fewer = false;
  TuneResult result;
  std::string failed;
  int64_t back_off_ns = kFirstBackOffNs, resume_ns = 0;  // after settings could not be set
  const RunView* run = nullptr;
  int64_t now_ns = 0;  // up to which the run is recorded

  // ---- what is known of the run -------------------------------------------------------------

  void Read(const RunView& view) {
    run = &view;
    std::vector<double> lengths;
    for (size_t i = view.windows.size() - std::min<size_t>(20, view.windows.size());
         i < view.windows.size(); ++i) {
      lengths.push_back(static_cast<double>(view.windows[i].duration_ns));
    }
    if (lengths.empty()) return;
    window_ns = std::max<int64_t>(1'000'000, std::llround(Quantile(lengths, 0.5)));
    now_ns = view.windows.back().start_ns + view.windows.back().duration_ns;
    const HostRow* rss = view.FindHost("process_rss_bytes");
    if (options.memory_bytes && rss != nullptr && rss->last_value) {
      const double over = *rss->last_value - static_cast<double>(*options.memory_bytes);
      result.over_memory_bytes = over > 0 ? std::optional<double>(over) : std::nullopt;
    }
    // In the last window, at the settings in force.
    const std::vector<size_t> last = {view.windows.size() - 1};
    if (view.windows.back().start_ns < segments.back().settled_ns) return;
    const std::optional<double> rest = RestOfProcess(PartAt(current, last));
    if (!rest) return;
    constexpr size_t kLooks = 20;
    rests.push_back(*rest);
    if (rests.size() > kLooks) rests.erase(rests.begin());
  }

  // Bytes of the process beside queues and threads: nearly the highest of the recent readings, plus
  // `extra_bytes`.
  std::optional<double> Rest() const {
    if (rests.empty()) return std::nullopt;
    return Quantile(rests, 0.9) + extra_bytes;  // not too little
  }

  bool Usable(const WindowRow& window) const {
    if (window.duration_ns <= 0) return false;
    const int64_t end_ns = window.start_ns + window.duration_ns;
    for (const auto& [from_ns, to_ns] : disturbed) {
      if (window.start_ns < to_ns && end_ns > from_ns) return false;
    }
    return true;
  }

  // Windows at these settings, of all the run since the last drift.
  std::vector<size_t> WindowsAt(const KnobValues& knobs) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < run->windows.size(); ++i) {
      const WindowRow& window = run->windows[i];
      if (window.start_ns < known_from_ns || !Usable(window)) continue;
      for (const Segment& segment : segments) {
        if (segment.knobs != knobs || window.start_ns < segment.settled_ns ||
            window.start_ns + window.duration_ns > segment.to_ns)
          continue;
        found.push_back(i);
        break;
      }
    }
    return found;
  }
  // Windows of the segment in force, from then on.
  std::vector<size_t> WindowsSince(int64_t from_ns) const {
    std::vector<size_t> found;
    const int64_t first_ns = std::max({from_ns, segments.back().settled_ns, known_from_ns});
    for (size_t i = 0; i < run->windows.size(); ++i) {
      if (run->windows[i].start_ns >= first_ns && Usable(run->windows[i])) found.push_back(i);
    }
    return found;
  }
  double RateOver(const std::vector<size_t>& windows) const {
    double steps = 0, ns = 0;
    for (const size_t w : windows) {
      steps += static_cast<double>(run->windows[w].steps.steps_count);
      ns += static_cast<double>(run->windows[w].duration_ns);
    }
    return ns > 0 ? steps / ns * 1e9 : 0;
  }
  std::vector<double> RatesOf(const std::vector<size_t>& windows) const {
    std::vector<double> rates;
    for (const size_t w : windows) rates.push_back(std::max(1e-9, RateOf(run->windows[w])));
    return rates;
  }
  // Without the start and the filling of queues.
  std::vector<size_t> Steady(const std::vector<size_t>& windows) const {
    const auto [first, last] = SteadyRange(RatesOf(windows));
    return {windows.begin() + static_cast<long>(first), windows.begin() + static_cast<long>(last)};
  }
  // Relative standard deviation of a window's rate.
  double Spread(const std::vector<size_t>& windows) const {
    const std::vector<double> rates = RatesOf(windows);
    const double mean = Mean(rates);
    return mean > 0 ? std::sqrt(Variance(rates)) / mean : 1;
  }

  // What a batch cost at each of the settings seen, for the growth of costs with load.
  std::vector<LoadRow> Loads(const KnobValues& own) const {
    std::vector<LoadRow> loads;
    for (const LoadRow& load : run->loads) {
      if (!load.own) loads.push_back(load);
    }
    std::vector<KnobValues> seen;
    for (const Segment& segment : segments) {
      if (std::find(seen.begin(), seen.end(), segment.knobs) != seen.end()) continue;
      seen.push_back(segment.knobs);
      double cpu_s = 0, rows = 0, seconds = 0;
      const std::vector<size_t> windows = WindowsAt(segment.knobs);
      for (const size_t w : windows) {
        const WindowRow& window = run->windows[w];
        for (const StageCounters& stage : window.stages) {
          cpu_s += static_cast<double>(stage.on_cpu_ns.value_or(0)) * 1e-9;
        }
        rows += static_cast<double>(window.steps.rows_count);
        seconds += static_cast<double>(window.duration_ns) * 1e-9;
      }
      if (windows.size() < 5 || cpu_s <= 0 || rows <= 0) continue;
      loads.push_back({cpu_s / rows, cpu_s / seconds, segment.knobs == own});
    }
    return loads;
  }

  // The part of the run at these settings, as if it were all of it.
  RunView PartAt(const KnobValues& knobs, const std::vector<size_t>& windows) const {
    RunView part = SliceOf(*run, windows);
    for (StageRow& stage : part.stages) {
      const auto threads = knobs.find(stage.name + ".parallelism");
      if (threads != knobs.end()) stage.last_parallelism_count = threads->second;
    }
    for (QueueRow& queue : part.queues) {
      const auto capacity = knobs.find(queue.producer_stage + ".queue");
      if (capacity != knobs.end()) queue.capacity_count = capacity->second;
    }
    part.loads = Loads(knobs);
    return part;
  }

  // ---- decisions ----------------------------------------------------------------------------

  Decision& Decide(TuneAction action, std::string reason) {
    Decision& decision = decisions.emplace_back();
    decision.index = static_cast<int>(decisions.size()) - 1;
    decision.at_ns = now_ns;
    decision.action = action;
    decision.settings = incumbent;
    decision.reason = std::move(reason);
    unheard.push_back(decisions.size() - 1);
    return decision;
  }

  Move Out(Move move) {
    for (const size_t index : unheard) move.decisions.push_back(decisions[index]);
    unheard.clear();
    move.wait_ns = std::max<int64_t>(move.wait_ns, window_ns);
    return move;
  }
  Move Wait(double windows) {
    Move move;
    move.wait_ns = std::llround(std::clamp(windows, 1.0, 10.0) * static_cast<double>(window_ns));
    return Out(std::move(move));
  }
  // Sets these knobs and waits for so many windows behind it.
  Move Set(const KnobValues& knobs, double windows, std::optional<size_t> decision = {}) {
    Move move;
    move.set = InOrder(ChangesBetween(current, knobs));
    pending = move.set;
    pending_decision = decision;
    move.wait_ns = std::llround((Settling() + windows) * static_cast<double>(window_ns));
    return Out(std::move(move));
  }
  // Windows until what lay in the queues has been taken.
  double Settling() const {
    const double seconds = rate > 0 ? content / rate : 0;
    return std::clamp(seconds / (static_cast<double>(window_ns) * 1e-9), 1.0,
                      static_cast<double>(kMostSettling));
  }

  Move Stop(std::string why, bool has_converged) {
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
  Move Converge(const std::string& why) {
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

  // ---- measure and plan ---------------------------------------------------------------------

  Move Measure() {
    std::vector<size_t> windows = WindowsAt(current);
    const int all = static_cast<int>(windows.size());
    // A pipeline that has not begun says nothing of its rate.
    windows.erase(windows.begin(), std::find_if(windows.begin(), windows.end(), [&](size_t w) {
                    return run->windows[w].steps.steps_count > 0;
                  }));
    const int n = static_cast<int>(windows.size());
    int64_t steps = 0;
    for (const size_t w : windows) steps += run->windows[w].steps.steps_count;
    const double least =
        after_drift ? kWindowsAfterDrift : std::max(kLeastBlock, options.measure_windows);
    if (n < least && all < kWindowsWithoutSteps) return Wait(least - n);
    if (static_cast<double>(steps) < kStepsToPlan) {
      // A consumer that pauses later is no reason to give up.
      if (all >= kWindowsWithoutSteps && !converged) {
        throw Error(ExitCode::kInconclusive,
                    fmt::format("the pipeline gave {} batches in {}: too few to plan by", steps,
                                FormatDuration(static_cast<double>(all * window_ns))),
                    fmt::format("run {}", run->run.run_id),
                    "give it time with a longer --duration, or smaller batches");
      }
      return Wait(5);
    }
    const std::vector<size_t> steady = Steady(windows);
    const double error = Spread(steady) / std::sqrt(static_cast<double>(n));
    if (error > kRateError && n < kLongest * least && !after_drift) return Wait(3);
    rate = RateOver(steady);
    if (options.max_decisions > 0 && applied >= options.max_decisions) {
      return Converge(fmt::format("{} decisions, the most allowed", applied));
    }
    return Plan(windows);
  }

  Move Plan(const std::vector<size_t>& windows) {
    if (taken_back >= kMostPlansTakenBack) {
      return Converge(fmt::format("{} plans in a row brought nothing", taken_back));
    }
    const RunView part = PartAt(current, windows);
    const PipelineModel model(part);
    content = 0;
    for (size_t s = 0; s < model.stages().size(); ++s) {
      const StageModel& stage = model.stages()[s];
      content += model.current().queue_capacity[s] / std::max(stage.elements, 1e-6) +
                 model.current().parallelism[s] / std::max(stage.firings, 1e-6);
    }
    const bool at_rest = converged && !replanning;
    ProposeQuestion question{
        options, turnable, Rest(), tried, at_rest ? kWorthwhileLater : kWorthwhileGain, at_rest};
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

  Move Begin(const Proposal& proposal, const std::vector<size_t>& windows) {
    const bool less = proposal.fewer_threads || proposal.forced;
    Decision& decision =
        Decide(less ? TuneAction::kScaleDown : TuneAction::kApply, proposal.reason);
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
    // What is after a drift is compared with what was right before, not with the bad settings over
    // and over.
    trial->interleave = options.interleave && !after_drift && !proposal.forced;
    if (proposal.forced && incumbent == start) start_allowed = false;
    if (proposal.predicted > proposal.now) {
      // The queues empty at the new rate, which is taken at its least.
      rate = std::max(proposal.now, std::min(proposal.predicted, proposal.predicted_interval.low));
    }
    trial->predicted_gain = proposal.predicted / proposal.now - 1;
    StartTrial(false, Steady(windows));
    phase = Phase::kTrial;
    return Set(trial->after, trial->block, trial->decision);
  }

  // ---- comparing ----------------------------------------------------------------------------

  // `windows`: at the settings in force, which are the first block.
  void StartTrial(bool first_is_new, const std::vector<size_t>& windows) {
    // A large effect shows in short blocks.
    const double gain = std::abs(trial->predicted_gain);
    const double allowed = std::clamp(gain / 8, kBlockError, kLargeBlockError);
    const double spread = Spread(windows);
    const double wanted = std::ceil(std::pow(spread / allowed, 2));
    trial->block = static_cast<int>(std::clamp(wanted, 1.0 * kLeastBlock, 1.0 * kMostBlock));
    const double error = spread / std::sqrt(static_cast<double>(trial->block));
    trial->blocks.emplace(first_is_new, static_cast<size_t>(std::max(1, options.pairs)), error);
    const size_t first = windows.size() - std::min(windows.size(), size_t(trial->block));
    const std::vector<size_t> last(windows.begin() + static_cast<long>(first), windows.end());
    trial->blocks->Add(std::max(1e-9, RateOver(last)));
    trial->rates_before = RatesOf(windows);
    trial->block_from_ns = 0;
  }

  Move VerifyStart(const std::string& why) {
    const std::vector<size_t> windows = WindowsSince(0);
    Decision& decision =
        Decide(TuneAction::kVerify, why + "; compared with the settings of the start once more");
    decision.now = rate;
    trial.emplace();
    trial->before = start;
    trial->after = incumbent;
    trial->decision = decisions.size() - 1;
    trial->against_start = true;
    trial->predicted_gain = 0.2;
    StartTrial(true, windows.empty() ? WindowsAt(current) : windows);
    phase = Phase::kTrial;
    return Set(start, trial->block);
  }

  Move Compare() {
    Trial& t = *trial;
    if (!t.interleave) return CompareOnce();
    const std::vector<size_t> windows = WindowsSince(t.block_from_ns);
    const size_t needed = static_cast<size_t>(t.block);
    if (windows.size() < needed) return Wait(static_cast<double>(needed - windows.size()));
    const std::vector<size_t> block(windows.begin(), windows.begin() + t.block);
    t.blocks->Add(std::max(1e-9, RateOver(block)));
    const WindowRow& last = run->windows[block.back()];
    t.block_from_ns = last.start_ns + last.duration_ns;
    if (t.blocks->done()) {
      return Judge(t.blocks->effect(), Mean(t.blocks->new_rates()), t.blocks->new_rates());
    }
    const KnobValues& next = t.blocks->NextIsNew() ? t.after : t.before;
    if (next == current) return Wait(t.block);
    rate = Mean(current == t.after ? t.blocks->new_rates() : t.blocks->old_rates());
    return Set(next, t.block);
  }

  Move CompareOnce() {
    Trial& t = *trial;
    const std::vector<size_t> windows = WindowsSince(0);
    const double count = static_cast<double>(windows.size());
    if (count < kFewestWindowsToCompare) return Wait(kFewestWindowsToCompare - count);
    const Effect effect = CompareWindows(t.rates_before, RatesOf(windows));
    if (!effect.clear && count < kEnoughWindowsToCompare) return Wait(2);
    return Judge(effect, RateOver(windows), RatesOf(windows));
  }

  // `observed`: the rate with the change.
  bool Keeps(const Effect& effect, double observed) const {
    if (trial->forced) return true;
    // More than that nobody asked for.
    if (trial->fewer && ReachesTarget(observed)) return true;
    if (trial->fewer) return effect.interval.low > -kFewerMayLose;
    return effect.clear && effect.ratio > 0;
  }

  bool ReachesTarget(double observed) const {
    return options.target && observed >= *options.target * (1 - kFewerMayLose);
  }

  std::string Words(const Effect& effect) const {
    return fmt::format("{:+.1f} % [{:.1f}, {:.1f}]", 100 * effect.ratio, 100 * effect.interval.low,
                       100 * effect.interval.high);
  }

  Move Judge(const Effect& effect, double observed, const std::vector<double>& rates) {
    const Trial t = *trial;
    trial.reset();
    const bool of_start = decisions[t.decision].action == TuneAction::kVerify;
    const bool keeps = of_start || Keeps(effect, observed);
    Decision& decision = decisions[t.decision];
    decision.judged_ns = now_ns;
    decision.observed = observed;
    const double half =
        1.96 * std::sqrt(Variance(rates) / std::max<double>(1, double(rates.size())));
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

  Move AfterVerify(const Effect& effect, double observed) {
    // Where threads were taken away, a little may be lost; beyond a target all that is above it.
    const bool worse = (effect.clear && effect.ratio < (kept_fewer ? -kFewerMayLose : 0) &&
                        !(kept_fewer && ReachesTarget(observed)));
    // Each step was shown to be faster; all together must be.
    const bool not_shown = !result.shown && !kept_fewer;
    std::string why =
        fmt::format("the plan has stopped changing; against the start {}", Words(effect));
    if (worse || not_shown) {
      // Steps that each looked better are not, together.
      Decision& decision =
          Decide(TuneAction::kRevert,
                 worse ? "slower than the start: back to its settings"
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

  Move Revert(const Trial& t, const Effect& effect) {
    tried.push_back(t.after);
    ++taken_back;
    Decision& decision =
        Decide(TuneAction::kRevert, fmt::format("{}: {}; back to what was there before",
                                                effect.clear && effect.ratio < 0 ? "it was slower"
                                                : t.fewer ? "it may be slower"
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
      decision.applied_ns = now_ns;
      return Measure();
    }
    return Set(t.before, 1, decisions.size() - 1);
  }

  // ---- after convergence --------------------------------------------------------------------

  Move Watch() {
    const std::vector<size_t> all = WindowsSince(0);
    if (!all.empty()) rate = RateOver(all);
    // Few windows show a large change soon, as most of many are from before; many show a small one.
    std::vector<size_t> windows;
    std::optional<Drift> drift;
    RunView part;
    for (const size_t look : {kShortDrift, kLongDrift}) {
      windows.assign(all.end() - static_cast<long>(std::min(all.size(), look)), all.end());
      part = SliceOf(*run, windows);
      drift = FindDrift(part);
      if (drift && drift->used) break;
    }
    if (!drift || !drift->used) return Wait(2);
    size_t at = 0;
    while (at + 1 < part.windows.size() && part.windows[at].start_ns < drift->at_ns) ++at;
    // Found at once it may begin later than is seen: a few windows more show where.
    if (static_cast<double>(part.windows.size() - at) < kWindowsAfterDrift) return Wait(1);
    known_from_ns = run->windows[windows[at]].start_ns;
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
    decision.now = RateOver(WindowsSince(0));
    tried.clear();
    taken_back = 0;
    turnable.clear();
    for (const auto& [knob, value] : current) turnable.insert(knob);
    after_drift = replanning = true;
    result.effect.reset();
    phase = Phase::kMeasure;
    return Measure();
  }

  // ---- memory -------------------------------------------------------------------------------

  // The process is larger than it may be: queues and threads are halved, the largest queue first
  // in bytes by what the model knows, all of them where it knows nothing.
  std::optional<Move> Guard() {
    if (!options.memory_bytes || now_ns < guard_from_ns || options.dry_run) return std::nullopt;
    const HostRow* rss = run->FindHost("process_rss_bytes");
    if (rss == nullptr || !rss->last_value) return std::nullopt;
    const double over = *rss->last_value - static_cast<double>(*options.memory_bytes);
    if (over <= 0) return std::nullopt;
    const double most = static_cast<double>(*options.memory_bytes);
    if (kept == 0 && Rest().value_or(0) > most) {
      throw Error(ExitCode::kInconclusive,
                  fmt::format("no settings fit {}: the minimum is {} without a single element in a "
                              "queue or at work, {} too much",
                              FormatBytes(most), FormatBytes(*Rest()), FormatBytes(*Rest() - most)),
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
    extra_bytes += over;
    if (trial && trial->decision < decisions.size()) {
      Decision& open = decisions[trial->decision];
      open.verdict = TuneVerdict::kReverted;
      open.judged_ns = now_ns;
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
    guard_from_ns = now_ns + kGuardRest * window_ns;
    return Set(smaller, 2, decisions.size() - 1);
  }

  // What was to be set is not in force. Watched on, it is tried again later; else that is the end.
  Move AfterFailure() {
    const std::string why = std::move(failed);
    failed.clear();
    if (!options.continuous) return Stop(why, false);
    trial.reset();
    phase = Phase::kMeasure;
    resume_ns = now_ns + back_off_ns;
    Decide(TuneAction::kHold, fmt::format("{}; tries again in {}", why,
                                          FormatDuration(static_cast<double>(back_off_ns))))
        .now = rate > 0 ? std::optional<double>(rate) : std::nullopt;
    back_off_ns = std::min(2 * back_off_ns, kLongestBackOffNs);
    return Wait(10);
  }

  // The run has ended, or is watched no more. What was being compared is not kept.
  Move End(bool runs_on) {
    Move move;
    if (phase == Phase::kDone) return Out(std::move(move));
    if (trial) {
      Decision& open = decisions[trial->decision];
      if (open.verdict == TuneVerdict::kOpen) {
        open.verdict = trial->forced ? TuneVerdict::kKept : TuneVerdict::kSuperseded;
        open.judged_ns = now_ns;
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

  Move Next() {
    if (!failed.empty()) return AfterFailure();
    if (now_ns == 0) return Wait(1);
    if (now_ns < resume_ns) return Wait(10);
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
};

Tuner::Tuner(TunerOptions options, KnobValues knobs)
    : state_(std::make_unique<State>(options, std::move(knobs))) {
  state_->result.start = state_->start;
}
Tuner::~Tuner() = default;

Move Tuner::Next(const RunView& run) {
  state_->Read(run);
  return state_->Next();
}

void Tuner::Applied(int64_t at_ns) {
  State& s = *state_;
  for (const Change& change : s.pending) s.current[change.knob] = change.to;
  s.pending.clear();
  s.back_off_ns = kFirstBackOffNs;
  s.segments.back().to_ns = std::min(s.segments.back().to_ns, at_ns);
  const double settling = s.Settling() * static_cast<double>(s.window_ns);
  s.segments.push_back({s.current, at_ns + std::llround(settling), kForever});
  if (s.trial) s.trial->block_from_ns = 0;
  if (!s.pending_decision) return;
  s.decisions[*s.pending_decision].applied_ns = at_ns;
  s.unheard.push_back(*s.pending_decision);
  s.pending_decision.reset();
}

void Tuner::Failed(const std::string& why) {
  State& s = *state_;
  s.failed = "the settings could not be set: " + why;
  s.pending.clear();
  const std::optional<size_t> decision = s.pending_decision ? s.pending_decision
                                         : s.trial ? std::optional<size_t>(s.trial->decision)
                                                   : std::nullopt;
  s.pending_decision.reset();
  if (!decision) return;
  s.decisions[*decision].verdict = TuneVerdict::kFailed;
  s.unheard.push_back(*decision);
}

Move Tuner::End(bool runs_on) { return state_->End(runs_on); }

void Tuner::Disturbed(int64_t from_ns, int64_t to_ns) {
  state_->disturbed.emplace_back(from_ns, to_ns);
}

TuneResult Tuner::result() const {
  TuneResult result = state_->result;
  result.end = state_->incumbent;
  result.applied = state_->applied;
  if (result.why.empty()) result.why = "the run ended before the plan stopped changing";
  if (!result.effect && result.effect_note.empty()) {
    result.effect_note = result.end == result.start
                             ? "the settings are those of the start"
                             : "the run ended before the comparison with the start";
  }
  return result;
}

TuneResult Tune(Tuner* tuner, TunedTarget* target, const std::vector<DecisionSink*>& sinks) {
  const auto carry_out = [&](const Move& move) {
    for (const Decision& decision : move.decisions) {
      for (DecisionSink* sink : sinks) sink->Take(decision);
    }
    if (move.set.empty()) return;
    try {
      tuner->Applied(target->Apply(move.set));
    } catch (const Error& error) {
      tuner->Failed(error.what());
    }
  };
  int64_t wait_ns = 0;
  while (std::optional<RunView> run = target->Observe(wait_ns)) {
    const std::optional<int64_t> from_ns = target->now_ns();
    const Move move = tuner->Next(*run);
    const std::optional<int64_t> to_ns = target->now_ns();
    if (from_ns && to_ns && static_cast<double>(*to_ns - *from_ns) > kShortWorkNs) {
      tuner->Disturbed(*from_ns, *to_ns);
    }
    carry_out(move);
    if (move.stop) return tuner->result();
    wait_ns = move.wait_ns;
  }
  carry_out(tuner->End(target->RunsOn()));
  carry_out(tuner->End(false));  // tells how that went
  return tuner->result();
}

}  // namespace headrace::analysis
