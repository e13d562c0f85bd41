#include "analysis/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/sensitivity.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr size_t kDraws = 400;
constexpr uint64_t kSeed = 20240611;
// The model's own error of one demand, as a deviation of its logarithm; two rows closer than this
// cannot be told apart however long the run.
constexpr double kModelError = 0.02;
constexpr double kSure = 0.7;
constexpr double kOrderMatters = 0.85;

double Bound(double capacity, double demand) {
  return demand > 1e-12 ? capacity / demand : kInfinite;
}

std::optional<size_t> Largest(const std::vector<size_t>& members,
                              const std::vector<double>& values) {
  std::optional<size_t> best;
  for (size_t i : members) {
    if (!best || values[i] > values[*best]) best = i;
  }
  return best;
}

std::optional<size_t> Culprit(const PipelineModel& model, const Limit& limit) {
  const std::vector<Demands::Operator>& demands = model.demands().operators;
  std::vector<double> busy, cpu;
  std::vector<size_t> all;
  for (size_t i = 0; i < demands.size(); ++i) {
    busy.push_back(demands[i].cpu_s + demands[i].blocked_s + demands[i].lock_wait_s);
    cpu.push_back(demands[i].cpu_s);
    all.push_back(i);
  }
  switch (limit.kind) {
    case LimitKind::kConsumer:
      return std::nullopt;
    case LimitKind::kCores:
      return Largest(all, cpu);
    case LimitKind::kThread: {
      std::vector<size_t> there;
      for (const StageModel& stage : model.stages()) {
        if (!stage.on_consumer) continue;
        there.insert(there.end(), stage.operators.begin(), stage.operators.end());
      }
      return Largest(there, busy);
    }
    case LimitKind::kStage:
    case LimitKind::kOrder:
      return Largest(model.stages()[limit.index].operators, busy);
    default:
      std::optional<size_t> best;
      double most = 0;
      for (const auto& [index, share] : model.resources()[limit.index].users) {
        if (!best || share > most) {
          best = index;
          most = share;
        }
      }
      return best;
  }
}

// Occupation, queues and waits only; no demand is looked at.
std::optional<Limit> Witness(const PipelineModel& model) {
  const RunView& run = model.run();
  if (model.stall_ratio() < 0.05 && model.demands().consumer_s > 0) {
    return Limit{LimitKind::kConsumer, 0, "consumer", 0};
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
  if (!best || best_score < 0.5) return std::nullopt;
  return Limit{LimitKind::kStage, *best, model.stages()[*best].name, 0};
}

// Whether the waits' opinion is consistent with the row found: a shared row shows as the stage that
// uses it most, or as busy stages everywhere.
bool Agrees(const PipelineModel& model, const Limit& found, const Limit& witness) {
  if (found.kind == LimitKind::kConsumer || witness.kind == LimitKind::kConsumer) {
    return found.kind == witness.kind;
  }
  if (found.kind == LimitKind::kThread) return model.stages()[witness.index].on_consumer;
  if (found.kind == LimitKind::kStage || found.kind == LimitKind::kOrder) {
    return found.index == witness.index;
  }
  if (found.kind == LimitKind::kCores) {
    const double runnable = model.stages()[witness.index].runnable_ratio.value_or(1);
    return runnable > 0.05 ||
           model.demands().stage_cpu_s[witness.index] > 0.3 * model.demands().cpu_s;
  }
  const ResourceModel& resource = model.resources()[found.index];
  if (resource.users.empty()) return true;
  for (const auto& [index, share] : resource.users) {
    if (model.operators()[index].stage == witness.index) return true;
  }
  return false;
}

}  // namespace

const char* LimitKindName(LimitKind kind) {
  constexpr const char* kNames[] = {"consumer", "cores", "stage", "lock",
                                    "device",   "order", "thread"};
  return kNames[static_cast<int>(kind)];
}

std::string Describe(const Limit& limit) {
  switch (limit.kind) {
    case LimitKind::kConsumer:
      return "the consumer";
    case LimitKind::kCores:
      return "the cores";
    case LimitKind::kStage:
      return "stage " + Printable(limit.name);
    case LimitKind::kOrder:
      return "the order";
    case LimitKind::kThread:
      return "the thread that loads and computes in turn";
    default:
      return fmt::format("{} {}", LimitKindName(limit.kind), Printable(limit.name));
  }
}

const char* VerdictName(Verdict verdict) {
  constexpr const char* kNames[] = {"limited", "consumer bound", "balanced", "undecided"};
  return kNames[static_cast<int>(verdict)];
}

std::vector<Limit> Bounds(const PipelineModel& model, const Demands& demands,
                          const Settings& settings) {
  std::vector<Limit> limits;
  limits.push_back({LimitKind::kConsumer, 0, "consumer", Bound(1, demands.consumer_s)});
  limits.push_back({LimitKind::kCores, 0, "cores",
                    model.cores_known() ? Bound(model.SharedCores(settings, demands), demands.cpu_s)
                                        : kInfinite});
  double loads_s = 0;  // on the consumer's thread
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const int threads = settings.parallelism[s];
    if (threads <= 0) loads_s += demands.stage_s[s];
    limits.push_back({LimitKind::kStage, s, model.stages()[s].name,
                      threads > 0 ? Bound(threads, demands.stage_s[s]) : kInfinite});
  }
  for (size_t r = 0; r < model.resources().size(); ++r) {
    const ResourceModel& resource = model.resources()[r];
    const double bound = Bound(
        resource.servers, std::max(demands.resources[r].hold_s, demands.resources[r].limiter_s));
    limits.push_back({resource.kind == "device" ? LimitKind::kDevice : LimitKind::kLock, r,
                      resource.name, bound});
  }
  if (model.ordered() && !model.stages().empty()) {
    Limit order{LimitKind::kOrder, 0, "order", kInfinite};
    for (size_t s = 0; s < model.stages().size(); ++s) {
      if (settings.parallelism[s] <= 1) continue;
      const double share = model.OrderShare(s, settings);
      const double bound = share * Bound(settings.parallelism[s], demands.stage_s[s]);
      if (bound < order.bound) {
        order.bound = bound;
        order.index = s;
      }
    }
    limits.push_back(order);
  }
  if (model.loads_on_consumer()) {
    limits.push_back({LimitKind::kThread, 0, "thread",
                      loads_s > 0 ? Bound(1, loads_s + demands.consumer_s) : kInfinite});
  }
  return limits;
}

namespace {

// A thread that loads and computes in turn needs all the cores that there are: a worker would take
// its time from it.
size_t CoresInstead(const PipelineModel& model, const Demands& demands,
                    const std::vector<Limit>& limits, size_t thread) {
  double cpu_s = model.ConsumerComputeCpu(demands);
  for (size_t s = 0; s < model.stages().size(); ++s) {
    if (model.stages()[s].on_consumer) cpu_s += demands.stage_cpu_s[s];
  }
  for (size_t i = 0; i < limits.size(); ++i) {
    if (limits[i].kind == LimitKind::kCores && limits[i].bound < 1.1 * limits[thread].bound &&
        cpu_s > 0.7 * demands.cpu_s) {
      return i;
    }
  }
  return thread;
}

}  // namespace

size_t BindingRow(const PipelineModel& model, const Demands& demands,
                  const std::vector<Limit>& limits) {
  size_t least = 0;
  std::optional<size_t> order;
  for (size_t i = 1; i < limits.size(); ++i) {
    if (limits[i].kind == LimitKind::kOrder) {
      order = i;
    } else if (limits[i].bound < limits[least].bound) {
      least = i;
    }
  }
  // The order always costs its stage something; it is to blame where that is worth the room.
  if (order && limits[*order].bound < kOrderMatters * limits[least].bound) return *order;
  const Limit& binding = limits[least];
  if (binding.kind == LimitKind::kThread) return CoresInstead(model, demands, limits, least);
  if (binding.kind != LimitKind::kStage) return least;
  const double stage_s = demands.stage_s[binding.index];
  std::optional<size_t> shared;
  for (size_t i = 0; i < limits.size(); ++i) {
    const Limit& limit = limits[i];
    bool same = false;
    if (limit.kind == LimitKind::kLock || limit.kind == LimitKind::kDevice) {
      double held_s = 0;
      for (const auto& [index, share] : model.resources()[limit.index].users) {
        if (model.operators()[index].stage == binding.index) {
          held_s += share * demands.resources[limit.index].hold_s;
        }
      }
      same = limit.bound < 1.2 * binding.bound && held_s > 0.8 * stage_s;
    } else if (limit.kind == LimitKind::kCores) {
      const double stage_cpu_s = demands.stage_cpu_s[binding.index];
      same = limit.bound < 1.1 * binding.bound && stage_cpu_s > 0.7 * demands.cpu_s &&
             stage_cpu_s > 0.8 * stage_s;
    }
    if (same && (!shared || limit.bound < limits[*shared].bound)) shared = i;
  }
  return shared.value_or(least);
}

std::vector<Demands> BootstrapDemands(const PipelineModel& model, size_t draws, uint64_t seed) {
  Random random(seed), split(seed + 1);
  std::vector<Demands> result;
  const std::vector<size_t>& steady = model.steady_windows();
  const size_t block = steady.size() >= 12 ? 2 : 1;
  for (size_t draw = 0; draw < draws; ++draw) {
    Demands demands = model.demands();
    std::vector<double> places;
    if (!model.splits_operators()) {
      for (size_t i = 0; i < model.operators().size(); ++i) places.push_back(split.Uniform());
    }
    if (steady.size() >= 3) {
      std::vector<size_t> windows = BlockResample(steady.size(), block, random);
      for (size_t& window : windows) window = steady[window];
      demands = model.Estimate(windows, places);
    } else if (!places.empty()) {
      demands = model.Estimate(steady, places);
    }
    // Fewer windows say less of the spread, so the model's own error takes more of the interval.
    const double error = steady.size() >= 3 ? kModelError : 2 * kModelError;
    for (double& stage_s : demands.stage_s) stage_s *= std::exp(error * random.Normal());
    for (Demands::Resource& resource : demands.resources) {
      resource.hold_s *= std::exp(error * random.Normal());
    }
    demands.cpu_s *= std::exp(error * random.Normal());
    // How long the consumer waited for a core inside its step may not be known.
    if (demands.consumer_most_s > demands.consumer_least_s && demands.consumer_least_s > 0) {
      demands.consumer_s = demands.consumer_least_s +
                           random.Uniform() * (demands.consumer_most_s - demands.consumer_least_s);
    }
    demands.consumer_s *= std::exp(0.5 * error * random.Normal());
    if (model.cores_contended()) demands.others_yield = 0.25 + random.Uniform();
    result.push_back(std::move(demands));
  }
  return result;
}

namespace {

// Relieves the rows that come close, and puts first the one that gains most, if clearly more than
// the one that binds most often. On seeds of the validation bench that are for fitting the row that
// gains most was right in 149 of 150 pipelines, the one that binds in 143 (docs/measurements.md).
void TryReliefs(const PipelineModel& model, const Predictor& predictor,
                std::vector<Finding>* findings) {
  constexpr double kClose = 1.5;    // times the least bound
  constexpr size_t kMost = 8;       // rows tried
  constexpr double kClear = 0.03;   // a gain that is one
  constexpr double kBetter = 1.25;  // than that of the other
  constexpr double kOverruled = 0.75;
  std::vector<Limit> close;
  double least = kInfinite;
  for (const Finding& finding : *findings) least = std::min(least, finding.limit.bound);
  for (const Finding& finding : *findings) {
    const bool order = finding.limit.kind == LimitKind::kOrder;
    if (finding.limit.bound <= kClose * least && (order || close.size() < kMost)) {
      close.push_back(finding.limit);
    }
  }
  size_t best = 0;
  for (const Worth& worth :
       SensitivityOf(model, predictor, {model.current(), {}}, close, Step::kQuarter)) {
    for (size_t i = 0; i < findings->size(); ++i) {
      Finding& finding = (*findings)[i];
      if (finding.limit.kind != worth.limit.kind || finding.limit.index != worth.limit.index) {
        continue;
      }
      finding.relief_gain = worth.gain;
      if (worth.gain > (*findings)[best].relief_gain.value_or(-1)) best = i;
    }
  }
  if (best == 0) return;
  Finding winner = (*findings)[best];
  const double gain = winner.relief_gain.value_or(0);
  const double other = (*findings)[0].relief_gain.value_or(0);
  if (gain < kClear || gain < kBetter * other) return;
  // The others share what is left as they did.
  const double left = 1 - std::max(winner.probability, 1e-9);
  winner.probability = std::max(kOverruled, winner.probability);
  findings->erase(findings->begin() + static_cast<long>(best));
  for (Finding& finding : *findings) {
    finding.probability = left > 0 ? finding.probability / left * (1 - winner.probability) : 0;
  }
  findings->insert(findings->begin(), std::move(winner));
}

// Of sums over windows that are drawn anew, as the ratio itself is: windows without a step, or with
// one that took long, have the weight that they have in it.
std::optional<Interval> StallInterval(const PipelineModel& model) {
  const std::vector<PipelineModel::StallWindow>& windows = model.stall_by_window();
  if (windows.size() < 3) return std::nullopt;
  const size_t block = windows.size() >= 12 ? 2 : 1;
  Random random(kSeed + 1);
  std::vector<double> ratios;
  for (size_t draw = 0; draw < kDraws; ++draw) {
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
  const Limit first = findings->front().limit;
  const bool shared = first.kind == LimitKind::kCores || first.kind == LimitKind::kLock ||
                      first.kind == LimitKind::kDevice;
  for (size_t i = 1; i < findings->size(); ++i) {
    Finding& finding = (*findings)[i];
    const Limit& limit = finding.limit;
    // Order always costs its stage something.
    if (limit.kind == LimitKind::kOrder) {
      finding.within_first = limit.bound >= kOrderMatters * least;
    } else if (shared && (limit.kind == LimitKind::kStage || limit.kind == LimitKind::kThread) &&
               limit.bound < first.bound) {
      std::vector<Limit> two = {limit, first};
      finding.within_first = BindingRow(model, model.demands(), two) == 1;
    } else if (first.kind == LimitKind::kOrder) {
      finding.within_first = limit.kind == LimitKind::kStage && limit.index == first.index;
    }
  }
}

// What keeps the rate below the smallest bound, in words.
std::string LossOf(const PipelineModel& model, double least) {
  constexpr double kWorth = 1.1;
  const double ratio = least / model.demands().rate;
  if (!std::isfinite(ratio) || ratio < kWorth) return "";
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
                           ? fmt::format("queues hold {}", shortest)
                           : fmt::format("queues hold {} to {}", shortest, longest);
  return fmt::format(
      "the rate is {:.0f} % below the smallest bound: costs vary by up to {:.0f} % "
      "and {}",
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

void Decide(const PipelineModel& model, std::optional<double> simulated, Bottleneck* bottleneck) {
  constexpr double kAbove = 0.87;     // of the observed rate: no bound is below it
  constexpr double kUnexplained = 2;  // times it: queues and spread do not explain that
  std::vector<Finding>& findings = bottleneck->findings;
  const Limit &first = findings[0].limit, &second = findings[1].limit;
  const double rate = model.demands().rate;
  if (!std::isfinite(first.bound)) {
    Undecided(bottleneck,
              "nothing that was measured limits the rate; record operators with work in "
              "them");
  } else if (bottleneck->unexplained_ratio < kAbove) {
    Undecided(bottleneck,
              "more was observed than the smallest bound allows, so costs and rate are not of the "
              "same pipeline: record one pipeline at a time");
  } else if (simulated && *simulated > kUnexplained * rate) {
    Undecided(
        bottleneck,
        fmt::format("time is lost where nothing was recorded: by what its operators cost, the "
                    "pipeline would do {} times the observed rate; add operators to what the "
                    "trainer waits for, or record with less other load on the machine",
                    FormatCount(*simulated / rate)));
  } else if (first.kind == LimitKind::kThread &&
             2 * model.demands().consumer_load_s * rate > model.stall_ratio()) {
    Undecided(bottleneck,
              "most of what the trainer waits for is in no operator, and its thread does not "
              "compute meanwhile: add operators to the loader");
  } else if (findings[0].probability < kSure && second.bound < 1.05 * first.bound) {
    bottleneck->verdict = Verdict::kBalanced;
  } else if (findings[0].probability < kSure) {
    Undecided(bottleneck,
              model.steady_windows().size() < 10
                  ? "record longer: the windows of this run are too few to tell them apart"
                  : "change one of the two alone and compare the rates",
              false);
  } else if (bottleneck->unexplained_ratio > 1.5 && !bottleneck->disagreement.empty()) {
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
  } else if (first.kind == LimitKind::kConsumer) {
    bottleneck->verdict =
        model.stall_ratio() < kKeepsUpStall ? Verdict::kConsumer : Verdict::kBalanced;
  } else {
    bottleneck->verdict = Verdict::kLimited;
  }
}

}  // namespace

Bottleneck FindBottleneck(const PipelineModel& model) {
  Bottleneck bottleneck;
  const Settings settings = model.current();
  const std::vector<Limit> limits = Bounds(model, model.demands(), settings);
  std::vector<std::vector<double>> bounds(limits.size());
  std::vector<size_t> wins(limits.size());
  const std::vector<Demands> draws = BootstrapDemands(model, kDraws, kSeed);
  for (const Demands& demands : draws) {
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
    finding.probability = static_cast<double>(wins[i]) / static_cast<double>(kDraws);
    finding.utilisation =
        std::isfinite(limits[i].bound) ? model.demands().rate / limits[i].bound : 0;
    finding.culprit = Culprit(model, limits[i]);
    bottleneck.findings.push_back(std::move(finding));
  }
  std::stable_sort(bottleneck.findings.begin(), bottleneck.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     if (a.probability != b.probability) return a.probability > b.probability;
                     return a.limit.bound < b.limit.bound;
                   });
  // So few windows are not drawn anew: what is sure of them is sure of that moment.
  constexpr double kMostOfFewWindows = 0.95;
  if (model.steady_windows().size() < 3) {
    double& probability = bottleneck.findings[0].probability;
    probability = std::min(probability, kMostOfFewWindows);
  }
  const Predictor predictor(model);
  TryReliefs(model, predictor, &bottleneck.findings);
  MarkWithin(model, least, &bottleneck.findings);
  bottleneck.unexplained_ratio = least / model.demands().rate;
  bottleneck.loss = LossOf(model, least);
  bottleneck.stall_interval = StallInterval(model);
  bottleneck.witness = Witness(model);
  const Limit& first = bottleneck.findings[0].limit;
  if (bottleneck.witness && !Agrees(model, first, *bottleneck.witness)) {
    const auto word = [](const Limit& limit) {
      return limit.kind == LimitKind::kConsumer ? std::string("the trainer") : Describe(limit);
    };
    bottleneck.disagreement = fmt::format("the waits and queues point at {}, the costs at {}",
                                          word(*bottleneck.witness), word(first));
  }
  Decide(model, predictor.simulated_now(), &bottleneck);
  return bottleneck;
}

}  // namespace headrace::analysis
