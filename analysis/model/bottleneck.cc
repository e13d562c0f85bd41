#include "analysis/model/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/model/limits/bounds.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/sensitivity.h"
#include "analysis/run/accelerator_use.h"
#include "analysis/run/beside_others.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/infinite.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr uint64_t kStallSeed = 20240612;

// Occupation, queues and waits only; no demand is looked at.
std::optional<Limit> Witness(const PipelineModel& model) {
  const RunView& run = model.run();
  if (model.stall_ratio() < kSmallStall && model.demands().consumer_s > 0) {
    return LimitOfConsumer(0);
  }
  std::optional<size_t> best;
  double best_score = 0;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const StageModel& stage = model.stages()[s];
    double score = stage.busy_ratio;
    if (stage.queue) {
      const QueueRow& output = run.queues[*stage.queue];
      if (output.full_ratio) score *= 1 - 0.5 * *output.full_ratio;
    }
    double empty = 0;
    for (size_t before : stage.inputs) {
      if (!model.stages()[before].queue) continue;
      const QueueRow& input = run.queues[*model.stages()[before].queue];
      empty = std::max(empty, input.empty_ratio.value_or(0));
    }
    score *= 1 - 0.5 * empty;
    if (!best || score > best_score) {
      best = s;
      best_score = score;
    }
  }
  if (!best || best_score < kWitnessed) return std::nullopt;
  return LimitOfStage(model, *best);
}

// Whether the limit is the trainer's devices, and they are busy all the time. Then what its thread
// waits for says nothing.
bool DevicesAreBusy(const PipelineModel& model, const Limit& limit) {
  return limit.Is(kAcceleratorLimit) && model.demands().rate >= kAcceleratorBusy * limit.bound;
}

// Whether the run is known to have its devices for itself.
bool UsesDeviceAlone(const PipelineModel& model) {
  const auto seen = AcceleratorsOf(model.run(), model.phases());
  return seen && !seen->mean.shared &&
         std::none_of(seen->devices.begin(), seen->devices.end(),
                      [](const DeviceUse& use) { return use.pids.empty(); });
}

// The consumer's step, or its thread because of it, where that waits for Python's interpreter: its
// row stays what it is in all that is predicted, and gets the name of what holds it up.
void NameWhatHoldsStep(const PipelineModel& model, std::vector<Finding>* findings) {
  Finding& first = findings->front();
  const bool is_step = first.limit.Is(kConsumerLimit);
  const bool is_thread = first.limit.Is(kThreadLimit);
  const double waits = model.run().step_interpreter_ratio.value_or(0);
  if ((!is_step && !is_thread) || waits < kMaybeForInterpreter) return;
  const Demands& demands = model.demands();
  if (is_thread && demands.consumer_s < model.OnConsumers(model.current(), demands)) return;
  first.probability = std::min(first.probability, kThreadsInTurn);
  if (waits < kWaitsForInterpreter) return;
  first.limit = LimitOfHeldStep(first.limit);
  first.culprit.reset();
  for (Finding& other : *findings) {
    other.within_first |= other.limit.Is(kConsumerLimit) || other.limit.Is(kThreadLimit);
  }
}

// Whether the waits' opinion is consistent with the row found: a shared row shows as the stage that
// uses it most, or as busy stages everywhere.
bool Agrees(const PipelineModel& model, const Limit& found, const Limit& witness) {
  if (DevicesAreBusy(model, found) || found.Is(kHeldStepLimit)) return true;
  if (found.Is(kConsumerLimit) || witness.Is(kConsumerLimit)) return found.kind == witness.kind;
  return found.kind->ShowsAt(model, found, witness.index);
}

}  // namespace

const char* VerdictName(Verdict verdict) {
  constexpr const char* kNames[] = {"limited", "consumer bound", "balanced", "undecided"};
  return kNames[static_cast<int>(verdict)];
}

namespace {

// Relieves the rows that come close, and puts first the one that gains most, if clearly more than
// the one that binds most often. On seeds of the validation bench that are for fitting the row that
// gains most was right in 149 of 150 pipelines, the one that binds in 143 (docs/measurements.md).
void TryReliefs(const PipelineModel& model, const Predictor& predictor,
                std::vector<Finding>* findings) {
  constexpr size_t kMost = 8;  // rows tried
  std::vector<Limit> close;
  double least = kInfinite;
  for (const Finding& finding : *findings) least = std::min(least, finding.limit.bound);
  for (const Finding& finding : *findings) {
    const bool always = finding.limit.kind->estimated();
    if (finding.limit.bound <= kCloseRow * least && (always || close.size() < kMost)) {
      close.push_back(finding.limit);
    }
  }
  size_t best = 0;
  for (const Worth& worth :
       SensitivityOf(model, predictor, {model.current(), {}}, close, Step::kQuarter)) {
    for (size_t i = 0; i < findings->size(); ++i) {
      Finding& finding = (*findings)[i];
      if (!SameRow(finding.limit, worth.limit)) continue;
      finding.relief_gain = worth.gain;
      if (worth.gain > (*findings)[best].relief_gain.value_or(-1)) best = i;
    }
  }
  if (best == 0) return;
  Finding winner = (*findings)[best];
  // The step is a part of what its thread does.
  if (winner.limit.Is(kConsumerLimit) && (*findings)[0].limit.Is(kThreadLimit)) return;
  // Cores that its starts of workers fill are its own.
  const Limit& front = (*findings)[0].limit;
  if (front.Is(kThreadLimit) && winner.limit.Is(kCoresLimit) &&
      front.kind->Explains(model, model.demands(), front, winner.limit)) {
    return;
  }
  const double gain = winner.relief_gain.value_or(0);
  const double other = (*findings)[0].relief_gain.value_or(0);
  if (gain < kWorthwhileGain || gain < kClearlyBetterRelief * other) return;
  // The others share what is left as they did.
  const double left = 1 - std::max(winner.probability, 1e-9);
  winner.probability = std::max(kOverruledProbability, winner.probability);
  findings->erase(findings->begin() + static_cast<long>(best));
  for (Finding& finding : *findings) {
    finding.probability = left > 0 ? finding.probability / left * (1 - winner.probability) : 0;
  }
  findings->insert(findings->begin(), std::move(winner));
}

// Moves the first finding of that kind to the front, whose probability it takes too: what was there
// is within it.
void PutFirst(std::string_view kind, std::vector<Finding>* findings) {
  const auto found = std::find_if(findings->begin(), findings->end(),
                                  [&](const Finding& each) { return each.limit.Is(kind); });
  if (found == findings->end() || found == findings->begin()) return;
  found->probability = std::min(1.0, found->probability + findings->front().probability);
  findings->front().probability = 0;
  findings->front().within_first = true;
  std::rotate(findings->begin(), found, found + 1);
}

// The trainer's thread waits for a device that is always busy, and that counts as its step, or as
// loading where steps are started ahead of it.
void PutBusyDeviceFirst(const PipelineModel& model, std::vector<Finding>* findings) {
  const auto device = std::find_if(findings->begin(), findings->end(), [&](const Finding& each) {
    return DevicesAreBusy(model, each.limit);
  });
  if (device == findings->end() || !UsesDeviceAlone(model)) return;
  const double bound = device->limit.bound;
  // Where it hardly ever idles, nothing else can bring more than that.
  const bool always = model.demands().rate >= (1 - kSmallStall) * bound;
  if (!always && !findings->front().limit.Is(kConsumerLimit)) return;
  PutFirst(kAcceleratorLimit, findings);
  for (size_t i = 1; i < findings->size(); ++i) {
    if ((*findings)[i].limit.bound < kAsLowABound * bound) (*findings)[i].within_first = true;
  }
}

// Cores that hardly anybody uses but the trainers' steps are a part of these. Loading in the
// trainer's thread is not: beside a step it needs cores of its own.
void PutStepBeforeItsCores(const PipelineModel& model, std::vector<Finding>* findings) {
  const Demands& demands = model.demands();
  double makers_s = 0;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    if (!model.stages()[s].on_consumer) makers_s += demands.stage_cpu_s[s];
  }
  const double loads_s = model.OnConsumers(model.current(), demands);
  // Where the trainer does not wait, what they take gains no more than their share.
  const bool waits = model.stall_ratio() >= kSmallStall;
  const double most = waits ? kSmallStall : kMakersBesideStep;
  if (makers_s >= most * demands.cpu_s || 2 * loads_s > demands.consumer_s) return;
  const auto is_trainer = [](const Limit& limit) {
    return limit.Is(kConsumerLimit) || limit.Is(kThreadLimit);
  };
  const double as_low = waits ? kAsLowABound : 1 + kMakersBesideStep;
  const double least = as_low * findings->front().limit.bound;
  const auto trainer = std::find_if(findings->begin(), findings->end(), [&](const Finding& each) {
    return is_trainer(each.limit) && each.limit.bound < least;
  });
  if (trainer == findings->end()) return;
  if (findings->front().limit.Is(kCoresLimit)) PutFirst(trainer->limit.kind_name(), findings);
  if (!is_trainer(findings->front().limit)) return;
  const auto cores = std::find_if(findings->begin(), findings->end(),
                                  [](const Finding& each) { return each.limit.Is(kCoresLimit); });
  if (cores == findings->end()) return;
  findings->front().probability += std::exchange(cores->probability, 0);
  cores->within_first = true;
  std::rotate(cores, cores + 1, findings->end());
}

// Interval of the stall ratio by resampling windows. Each draw is a ratio of sums, as the stall
// ratio itself is, so that windows without a step, or with one long step, get the same weight as
// there.
std::optional<Interval> StallInterval(const PipelineModel& model) {
  const std::vector<PipelineModel::StallWindow>& windows = model.stall_by_window();
  if (windows.size() < 3) return std::nullopt;
  const size_t block = windows.size() >= 12 ? 2 : 1;
  Random random(kStallSeed);
  std::vector<double> ratios;
  for (size_t draw = 0; draw < kBootstrapDraws; ++draw) {
    double wait_s = 0, all_s = 0;
    for (const size_t i : BlockResample(windows.size(), block, random)) {
      wait_s += windows[i].wait_s;
      all_s += windows[i].all_s;
    }
    ratios.push_back(wait_s / all_s);
  }
  return IntervalAround(model.stall_ratio(), ratios, 0.9);
}

// Rows whose bounds are consequences of the first one's.
void MarkWithin(const PipelineModel& model, double least, std::vector<Finding>* findings) {
  const Limit& first = findings->front().limit;
  for (size_t i = 1; i < findings->size(); ++i) {
    Finding& finding = (*findings)[i];
    finding.within_first = finding.within_first || IsWithin(model, first, finding.limit, least);
  }
}

// What keeps the rate below the smallest bound, in words.
std::string LossOf(const PipelineModel& model, double least) {
  const double ratio = least / model.demands().rate;
  if (!std::isfinite(ratio) || ratio < kLossWorthAWord) return "";
  double cv = model.consumer_cv();
  int shortest = 0, longest = 0;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    cv = std::max(cv, model.stages()[s].cv);
    if (!model.stages()[s].queue) continue;
    const int capacity = model.current().queue_capacity[s];
    shortest = shortest == 0 ? capacity : std::min(shortest, capacity);
    longest = std::max(longest, capacity);
  }
  std::string queues = shortest == 0 ? std::string("no queue was recorded")
                       : shortest == longest
                           ? fmt::format("the queues hold {} batches", shortest)
                           : fmt::format("the queues hold {} to {} batches", shortest, longest);
  return fmt::format(
      "the rate is {:.0f} % below the smallest bound, as a batch's cost varies by up to "
      "{:.0f} % and {}",
      100 * (1 - 1 / ratio), 100 * cv, queues);
}

// Index of the smallest bound among the rows that are listed; 0 where it is the first row's.
size_t SmallestListed(const std::vector<Finding>& findings) {
  size_t least = 0;
  for (size_t i = 1; i < findings.size(); ++i) {
    if (findings[i].within_first) continue;
    if (findings[i].limit.bound < findings[least].limit.bound) least = i;
  }
  return least;
}

void Undecided(Bottleneck* bottleneck, std::string measure, bool unexplained = true) {
  bottleneck->verdict = Verdict::kUndecided;
  bottleneck->measure = std::move(measure);
  bottleneck->unexplained = unexplained;
}

// Of a stage that handed over a few large pieces the bound itself says little.
bool IsContradicted(const Finding& finding, double rate) {
  return AllowsLess(finding.limit, rate) && finding.bound_interval.high < rate;
}

void Decide(const PipelineModel& model, std::optional<double> simulated, Bottleneck* bottleneck) {
  std::vector<Finding>& findings = bottleneck->findings;
  const Limit &first = findings[0].limit, &second = findings[1].limit;
  const double rate = model.demands().rate;
  if (!std::isfinite(first.bound)) {
    Undecided(bottleneck,
              "nothing that was measured limits the rate; record operators with work in "
              "them");
  } else if (std::any_of(findings.begin(), findings.end(), [rate](const Finding& finding) {
               return IsContradicted(finding, rate);
             })) {
    Undecided(bottleneck,
              "more was observed than a bound allows, so costs and rate are not of the "
              "same pipeline: record one pipeline at a time");
  } else if (simulated && *simulated > kTimeIsLost * rate && !DevicesAreBusy(model, first)) {
    Undecided(
        bottleneck,
        fmt::format("time is lost where nothing was recorded: by what its operators cost, the "
                    "pipeline would do {} times the observed rate; add operators to what the "
                    "trainer waits for, or record with less other load on the machine",
                    FormatCount(*simulated / rate)));
  } else if (first.Is(kThreadLimit) &&
             2 * model.demands().consumer_load_s * rate > model.stall_ratio()) {
    Undecided(bottleneck,
              "most of what the trainer waits for is in no operator, and its thread does not "
              "compute meanwhile: add operators to the loader");
  } else if (findings[0].probability < kSureOfRow && second.bound < kAsLowABound * first.bound) {
    bottleneck->verdict = Verdict::kBalanced;
  } else if (findings[0].probability < kSureOfRow) {
    Undecided(bottleneck,
              static_cast<double>(model.steady_windows().size()) < kWindowsToTellApart
                  ? "record longer: the windows of this run are too few to separate them"
                  : "change one of the two alone and compare the rates",
              false);
  } else if (bottleneck->unexplained_ratio > kUnexplainedTime &&
             !bottleneck->disagreement.empty()) {
    Undecided(
        bottleneck,
        fmt::format("the costs that were recorded allow {} times the measured rate, so time is "
                    "lost where nothing was recorded; record longer and with less other load on "
                    "the machine",
                    FormatCount(bottleneck->unexplained_ratio)));
  } else if (const size_t smaller = SmallestListed(findings); smaller != 0) {
    // What relieving gains most has not the smallest bound: neither limits alone.
    bottleneck->verdict = Verdict::kBalanced;
    std::rotate(findings.begin() + 1, findings.begin() + static_cast<long>(smaller),
                findings.begin() + static_cast<long>(smaller) + 1);
  } else if (DevicesAreBusy(model, first)) {
    bottleneck->verdict = Verdict::kConsumer;
  } else if (first.Is(kAcceleratorLimit)) {
    Undecided(
        bottleneck,
        "the trainer's devices have the smallest bound, but are not busy all the time: time is "
        "lost where nothing was recorded; add operators to what the trainer waits for");
  } else if (first.Is(kConsumerLimit)) {
    bottleneck->verdict =
        model.stall_ratio() < kSmallStall ? Verdict::kConsumer : Verdict::kBalanced;
  } else {
    bottleneck->verdict = Verdict::kLimited;
  }
}

// What limits once the others are gone: the lowest of the other bounds, if it is clearly lower than
// that of all cores. Estimates were made under the load.
std::optional<Limit> LimitAlone(const PipelineModel& model, const std::vector<Limit>& limits) {
  if (!model.others_hold_cores()) return std::nullopt;
  const double cores = std::max(*model.cores_used(), model.cores_budget() - model.cores_ahead());
  const double all_cores = BoundOf(cores, model.demands().cpu_s);
  std::vector<Limit> others;
  for (const Limit& limit : limits) {
    if (!limit.Is(kCoresLimit) && !limit.kind->estimated()) others.push_back(limit);
  }
  const Limit& alone = others[BindingRow(model, model.demands(), others)];
  if (!(alone.bound * kClearlyBelowCores < all_cores)) return std::nullopt;
  return alone;
}

// How sure the limit of that run can be, beside what else used its cores.
double MostSure(const PipelineModel& model) {
  if (!model.cores_contended()) return 1;
  return MostBesideOthers(model.cores_other_here().value_or(0), model.cores_budget());
}

}  // namespace

bool AllowsLess(const Limit& limit, double rate) {
  return !limit.kind->estimated() && limit.bound < kMoreThanAllowed * rate;
}

Bottleneck FindBottleneck(const Predictor& predictor) {
  const PipelineModel& model = predictor.model();
  Bottleneck bottleneck;
  const Settings settings = model.current();
  const std::vector<Limit> limits = Bounds(model, model.demands(), settings);
  std::vector<std::vector<double>> bounds(limits.size());
  std::vector<size_t> wins(limits.size());
  for (const Demands& demands : model.Bootstrap()) {
    const std::vector<Limit> drawn = Bounds(model, demands, settings);
    ++wins[BindingRow(model, demands, drawn)];
    for (size_t i = 0; i < drawn.size(); ++i) bounds[i].push_back(drawn[i].bound);
  }
  double least = kInfinite;
  for (size_t i = 0; i < limits.size(); ++i) {
    least = std::min(least, limits[i].bound);
    Finding finding;
    finding.limit = limits[i];
    finding.bound_interval = IntervalAround(limits[i].bound, bounds[i], 0.9);
    finding.probability = static_cast<double>(wins[i]) / double{kBootstrapDraws};
    finding.utilisation =
        std::isfinite(limits[i].bound) ? model.demands().rate / limits[i].bound : 0;
    finding.culprit = limits[i].kind->Culprit(model, limits[i]);
    bottleneck.findings.push_back(std::move(finding));
  }
  std::stable_sort(bottleneck.findings.begin(), bottleneck.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     if (a.probability != b.probability) return a.probability > b.probability;
                     return a.limit.bound < b.limit.bound;
                   });
  TryReliefs(model, predictor, &bottleneck.findings);
  PutBusyDeviceFirst(model, &bottleneck.findings);
  PutStepBeforeItsCores(model, &bottleneck.findings);
  NameWhatHoldsStep(model, &bottleneck.findings);
  double& sure = bottleneck.findings[0].probability;
  if (model.steady_windows().size() < 3) sure = std::min(sure, kMostOfFewWindows);
  sure = std::min(sure, MostSure(model));
  const bool allows_less = std::any_of(limits.begin(), limits.end(), [&model](const Limit& limit) {
    return AllowsLess(limit, model.demands().rate);
  });
  if (allows_less) sure = std::min(sure, kMostWhereWaitsDisagree);
  MarkWithin(model, least, &bottleneck.findings);
  bottleneck.unexplained_ratio = least / model.demands().rate;
  bottleneck.loss = LossOf(model, least);
  bottleneck.stall_interval = StallInterval(model);
  bottleneck.witness = Witness(model);
  const Limit& first = bottleneck.findings[0].limit;
  if (bottleneck.witness && !Agrees(model, first, *bottleneck.witness)) {
    const auto word = [](const Limit& limit) {
      return limit.Is(kConsumerLimit) ? std::string("the trainer") : Describe(limit);
    };
    bottleneck.disagreement = fmt::format("the waits and queues point at {}, the costs at {}",
                                          word(*bottleneck.witness), word(first));
    sure = std::min(sure, kMostWhereWaitsDisagree);
  }
  if (first.Is(kCoresLimit)) bottleneck.alone = LimitAlone(model, limits);
  Decide(model, predictor.simulated_now(), &bottleneck);
  return bottleneck;
}

}  // namespace headrace::analysis
