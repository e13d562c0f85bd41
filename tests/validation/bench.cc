#include "tests/validation/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/bounds.h"
#include "analysis/model/prediction.h"
#include "analysis/model/sensitivity.h"
#include "analysis/program/allocation.h"
#include "analysis/program/cache_choice.h"
#include "analysis/program/max_min.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "tests/validation/exhaustive.h"
#include "tests/validation/generator.h"
#include "tests/validation/hosts.h"
#include "tests/validation/recorder.h"
#include "tests/validation/strategy.h"
#include "tests/validation/truth.h"

namespace headrace::validation {
namespace {

analysis::RunView RecordRun(const Planted& planted, uint64_t seed) {
  const double rate = RateOf(planted.world, 200, seed + 5);
  Recording how;
  how.level = planted.level;
  how.seconds = std::max(4.0, kRecordedBatches / std::max(rate, 1.0));
  return Record(planted.world, how, seed);
}

std::string Word(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

std::vector<PredictTrial> TryPredictions(uint64_t seed) {
  const Planted planted = Generate(seed);
  const analysis::RunView run = RecordRun(planted, seed);
  std::vector<PredictTrial> trials;
  const analysis::PipelineModel model(run);
  const analysis::Predictor predictor(model);
  Dice dice(seed, 99);
  for (int i = 0; i < 3; ++i) {
    PredictTrial trial{seed, planted.kind, "", planted.level, 0, 0, 0, 0, 0, ""};
    analysis::Settings settings = model.current();
    World changed = planted.world;
    bool enough = false;
    for (int attempt = 0; attempt < 20 && !enough; ++attempt) {
      settings = model.current();
      changed = planted.world;
      trial.change.clear();
      for (size_t s = 0; s < changed.stations.size(); ++s) {
        Station& station = changed.stations[s];
        const double factor = std::exp2(dice.Below(4) - 1);  // 1/2, 1, 2, 4
        if (!station.sequential && dice.Chance(0.6)) {
          const int threads =
              std::clamp(static_cast<int>(std::lround(station.threads * factor)), 1, 32);
          if (threads != station.threads) {
            trial.change += fmt::format("{} {}to{} ", station.name, station.threads, threads);
            enough = enough || threads >= 2 * station.threads || 2 * threads <= station.threads;
          }
          settings.parallelism[s] = station.threads = threads;
        }
        if (dice.Chance(0.2)) {
          const int deep = std::max(1, static_cast<int>(std::lround(station.queue * factor)));
          if (deep != station.queue) {
            trial.change += fmt::format("{}.queue {}to{} ", station.name, station.queue, deep);
            enough = enough || deep >= 2 * station.queue || 2 * deep <= station.queue;
          }
          settings.queue_capacity[s] = station.queue = deep;
        }
      }
      if (dice.Chance(0.3)) {
        const double cores = std::max(1.0, changed.cores * (dice.Chance(0.5) ? 2 : 0.5));
        trial.change += fmt::format("cores {}to{} ", changed.cores, cores);
        settings.cores = changed.cores = cores;
        enough = true;
      }
    }
    if (!enough) break;
    const analysis::Prediction prediction = predictor.Predict({settings, {}});
    trial.now = model.demands().rate;
    trial.predicted = prediction.rate;
    trial.low = prediction.interval.low;
    trial.high = prediction.interval.high;
    trial.limited_by = prediction.limits[prediction.binding].kind_name();
    trial.observed = LongRate(changed, seed + kTruthSeed);
    trials.push_back(trial);
  }
  return trials;
}

namespace {

// As LoadRun would have it of a recorded run.
analysis::LoadRow LoadOf(const analysis::RunView& run, bool own) {
  double cpu_ns = 0;
  for (const analysis::StageRow& stage : run.stages) {
    cpu_ns += static_cast<double>(stage.on_cpu_ns.value_or(0));
  }
  return {cpu_ns * 1e-9 / static_cast<double>(run.steps.rows_count),
          cpu_ns / static_cast<double>(run.run.duration_ns), own};
}

World WithThreads(const World& world, double factor) {
  World changed = world;
  for (Station& station : changed.stations) {
    if (station.sequential) continue;
    station.threads = std::clamp(static_cast<int>(std::lround(station.threads * factor)), 1, 32);
  }
  return changed;
}

}  // namespace

std::vector<PredictTrial> TryContention(uint64_t seed) {
  Planted planted = Generate(seed);
  Dice dice(seed, 98);
  planted.world.contention = dice.Uniform(0.01, 0.05);
  analysis::RunView run = RecordRun(planted, seed);
  const analysis::LoadRow own = LoadOf(run, true);
  std::vector<analysis::LoadRow> loads = {own};
  for (const double factor : {0.5, 2.0}) {
    Planted other = planted;
    other.world = WithThreads(planted.world, factor);
    loads.push_back(LoadOf(RecordRun(other, seed + 11), false));
  }
  // A fourth setting, that none of the runs had.
  const World changed = WithThreads(planted.world, 4);
  const double observed = LongRate(changed, seed + kTruthSeed);
  std::vector<PredictTrial> trials;
  for (const bool alone : {true, false}) {
    run.loads = alone ? std::vector<analysis::LoadRow>{own} : loads;
    const analysis::PipelineModel model(run);
    const analysis::Predictor predictor(model);
    analysis::Settings settings = model.current();
    for (size_t s = 0; s < changed.stations.size(); ++s) {
      settings.parallelism[s] = changed.stations[s].threads;
    }
    const analysis::Prediction prediction = predictor.Predict({settings, {}});
    trials.push_back({seed, alone ? "one run" : "three runs",
                      fmt::format("threads x4, contention {:.3f} taken for {:.3f}",
                                  planted.world.contention, predictor.contention().each),
                      planted.level, model.demands().rate, prediction.rate, prediction.interval.low,
                      prediction.interval.high, observed,
                      prediction.limits[prediction.binding].kind_name()});
  }
  return trials;
}

NameTrial TryNaming(uint64_t seed) {
  const Planted planted = Generate(seed);
  const analysis::RunView run = RecordRun(planted, seed);
  const analysis::PipelineModel model(run);
  const analysis::Bottleneck bottleneck = analysis::FindBottleneck(model);
  const Truth truth = FindTruth(planted.world, kTruthBatches, seed + kTruthSeed);
  NameTrial trial;
  trial.seed = seed;
  trial.kind = planted.kind;
  trial.level = planted.level;
  trial.verdict = analysis::VerdictName(bottleneck.verdict);
  std::replace(trial.verdict.begin(), trial.verdict.end(), ' ', '_');
  trial.first = bottleneck.findings[0].limit.name;
  trial.second = bottleneck.findings[1].limit.name;
  trial.probability = bottleneck.findings[0].probability;
  trial.truth = truth.gains[0].row;
  trial.gap = truth.gap();
  trial.first_right = truth.Holds(trial.first);
  trial.second_right = truth.Holds(trial.second);
  return trial;
}

WorthTrial TryWorths(uint64_t seed) {
  constexpr double kDiffer = 0.01;     // of two true gains
  constexpr double kSame = 0.002;      // of two predicted ones
  constexpr double kSomething = 0.02;  // a true gain, and over twice its error
  const Planted planted = Generate(seed);
  const analysis::RunView run = RecordRun(planted, seed);
  const analysis::PipelineModel model(run);
  const analysis::Predictor predictor(model);
  const std::vector<analysis::Worth> worths =
      analysis::Sensitivity(model, predictor, {model.current(), {}}, analysis::Step::kQuarter);
  const Truth truth = FindTruth(planted.world, kTruthBatches, seed + kTruthSeed);
  const auto predicted = [&](const std::string& row) {
    for (const analysis::Worth& worth : worths) {
      if (worth.limit.name == row) return worth.gain;
    }
    return 0.0;  // a row without a bound limits nothing
  };
  WorthTrial trial;
  trial.seed = seed;
  trial.kind = planted.kind;
  double agreement = 0;
  const size_t top = std::min<size_t>(3, truth.gains.size());
  for (size_t i = 0; i < top; ++i) {
    for (size_t j = i + 1; j < top; ++j) {
      const double noise = 2 * std::hypot(truth.gains[i].error, truth.gains[j].error);
      if (truth.gains[i].gain - truth.gains[j].gain < std::max(kDiffer, noise)) continue;
      ++trial.pairs;
      const double said = predicted(truth.gains[i].row) - predicted(truth.gains[j].row);
      agreement += said > kSame ? 1 : said < -kSame ? -1 : 0;
    }
  }
  if (trial.pairs > 0) trial.tau = agreement / trial.pairs;
  for (const Gain& gain : truth.gains) {
    if (predicted(gain.row) >= analysis::kNoGain) continue;
    ++trial.nothing;
    trial.wrong += gain.gain >= kSomething && gain.gain > 2 * gain.error;
  }
  trial.predicted = predicted(truth.gains[0].row);
  for (const analysis::Worth& worth : worths) {
    if (worth.limit.name != truth.gains[0].row) continue;
    trial.low = worth.interval.low;
    trial.high = worth.interval.high;
  }
  trial.observed = truth.gap();
  trial.first_right = !worths.empty() && truth.Holds(worths[0].limit.name);
  return trial;
}

std::vector<ChooseTrial> TryChoosing(uint64_t seed) {
  const Planted planted = Generate(seed, true);
  const World& world = planted.world;
  const analysis::RunView run = RecordRun(planted, seed);
  Allowed allowed;
  allowed.cores = world.cores;
  allowed.memory_bytes = world.memory_bytes;
  for (const Station& station : world.stations) {
    allowed.most_threads = std::max(allowed.most_threads, station.threads);
  }
  const auto fits = [&](const Choice& choice) { return Fits(With(world, choice)); };
  const Best found = FindBest(world, seed);
  double best = found.rate;
  const std::string best_known = TextOf(found.choice);
  const double before = LongRate(world, seed + kTruthSeed);
  std::vector<ChooseTrial> trials;
  for (const Strategy& strategy : AllStrategies()) {
    ChooseTrial trial{seed, planted.kind, strategy.name, before, 0, 0, false, 0, "", best_known};
    const Measure measure = [&](const Choice& choice) {
      ++trial.measured;
      if (!fits(choice)) return 0.0;
      return RateOf(With(world, choice), 400, seed + kTruthSeed + 7);
    };
    const Choice choice = strategy.choose(run, allowed, measure);
    trial.over_memory = !fits(choice);
    trial.chosen = TextOf(choice);
    if (!trial.over_memory) trial.rate = LongRate(With(world, choice), seed + kTruthSeed);
    best = std::max(best, trial.rate);
    trials.push_back(trial);
  }
  for (ChooseTrial& trial : trials) trial.best = best;
  return trials;
}

namespace {

// The stations before one, and itself.
std::vector<bool> UpTo(const World& world, size_t station) {
  std::vector<bool> in(world.stations.size(), false);
  in[station] = true;
  for (size_t s = station + 1; s-- > 0;) {
    if (!in[s]) continue;
    for (size_t input : world.stations[s].inputs) in[input] = true;
  }
  return in;
}

// The World where a share of what `station` makes is read back: its costs and those before it are
// left to the rest, and each of its firings reads or writes for so long.
World WithCache(const World& world, size_t station, double left, double each_s, bool shared) {
  World changed = world;
  const std::vector<bool> in = UpTo(world, station);
  for (size_t s = 0; s < changed.stations.size(); ++s) {
    if (!in[s]) continue;
    for (Part& part : changed.stations[s].parts) {
      part.cpu_s *= left;
      part.blocked_s *= left;
      part.held_cpu_s *= left;
      part.held_blocked_s *= left;
    }
  }
  Part access;
  access.name = "cache";
  access.cv = 0.1;
  if (shared) {
    access.held_blocked_s = each_s;
    access.shared = static_cast<int>(changed.shared.size());
    changed.shared.push_back({"cache", true, 1, 1});
  } else {
    access.cpu_s = each_s;
  }
  changed.stations[station].parts.push_back(access);
  return changed;
}

}  // namespace

std::vector<CacheTrial> TryCaching(uint64_t seed) {
  constexpr double kEpochBatches = 20000;
  constexpr int64_t kBatches = 1500;
  const Planted planted = Generate(seed);
  const World& world = planted.world;
  const analysis::RunView run = RecordRun(planted, seed);
  const analysis::PipelineModel model(run);
  const analysis::Predictor predictor(model);
  const std::vector<double> visits = Visits(world);
  Dice dice(seed, 77);
  // What a batch costs and holds all in all, to draw tiers that are worth a thought.
  double batch_s = 0, most_bytes = 0;
  std::vector<double> bytes;
  for (size_t s = 0; s < world.stations.size(); ++s) {
    const Station& station = world.stations[s];
    for (const Part& part : station.parts) {
      batch_s += visits[s] * (part.cpu_s + part.blocked_s + part.held_cpu_s + part.held_blocked_s);
    }
    bytes.push_back(visits[s] * station.emit * station.element_bytes);
    most_bytes = std::max(most_bytes, bytes.back());
  }
  analysis::CacheQuestion question;
  question.epoch_batches = kEpochBatches;
  const double memory_rate = most_bytes / batch_s * std::exp2(dice.Uniform(-2, 6));
  const double disk_rate = most_bytes / batch_s * std::exp2(dice.Uniform(-2, 6));
  question.tiers = {{"memory", most_bytes * kEpochBatches * dice.Uniform(0.1, 1.5), memory_rate,
                     memory_rate * dice.Uniform(0.5, 1), false, true},
                    {"disk", most_bytes * kEpochBatches * dice.Uniform(0.5, 4), disk_rate,
                     disk_rate * dice.Uniform(0.3, 1), true, false}};
  const auto rate_of = [&](const World& changed) {
    return (RateOf(changed, kBatches, seed + kTruthSeed) +
            RateOf(changed, kBatches, seed + kTruthSeed + 31)) /
           2;
  };
  struct Way {
    std::string name;
    double fill = 0, warm = 0;
  };
  const double none = rate_of(world);
  std::vector<Way> ways;
  for (size_t s = 0; s < world.stations.size(); ++s) {
    for (const analysis::CacheTier& tier : question.tiers) {
      const double share = std::min(1.0, tier.budget_bytes / (bytes[s] * kEpochBatches));
      const double each = share * bytes[s] / visits[s];
      const double fill =
          rate_of(WithCache(world, s, 1, each / tier.write_bytes_per_second, tier.shared));
      const double warm =
          rate_of(WithCache(world, s, 1 - share, each / tier.read_bytes_per_second, tier.shared));
      // Work is only added: a play that is faster for it drew luckier.
      ways.push_back({world.stations[s].name + " " + tier.name, std::min(fill, none), warm});
    }
  }
  std::vector<CacheTrial> trials;
  for (const int epochs : {1, 3, 30}) {
    question.epochs = epochs;
    CacheTrial trial;
    trial.seed = seed;
    trial.kind = planted.kind;
    trial.epochs = epochs;
    trial.chosen = trial.best = "none";
    const analysis::CacheChoice choice = analysis::ChooseCache(model, predictor, question);
    if (choice.best) {
      const analysis::CacheOption& option = choice.options[*choice.best];
      const analysis::CacheTier& tier = question.tiers[option.tier];
      trial.chosen = model.stages()[option.stage].name + " " + tier.name;
      for (size_t s = 0; s < world.stations.size(); ++s) {
        if (world.stations[s].name != model.stages()[option.stage].name) continue;
        trial.size_error = option.stored_bytes / (bytes[s] * kEpochBatches) - 1;
      }
    }
    trial.none_s = trial.best_s = trial.chosen_s = epochs * kEpochBatches / none;
    for (const Way& way : ways) {
      const double total = kEpochBatches / way.fill + (epochs - 1) * kEpochBatches / way.warm;
      if (way.name == trial.chosen) trial.chosen_s = total;
      if (total >= trial.best_s) continue;
      trial.best_s = total;
      trial.best = way.name;
    }
    trials.push_back(std::move(trial));
  }
  return trials;
}

namespace {

// The core: threads of a chain within a memory.
analysis::HostProblem DrawCore(size_t stages, int most, Dice* dice) {
  analysis::HostProblem problem;
  double least = 0;
  for (size_t s = 0; s < stages; ++s) {
    analysis::HostStage stage;
    stage.name = fmt::format("s{}", s);
    stage.service_s = dice->Uniform(0.0002, 0.0102);
    const int threads = 1 + dice->Below(most);
    stage.threads_now = 1 + dice->Below(threads);
    const double bytes = dice->Chance(0.3) ? 0 : dice->Uniform(0, 1e6);
    stage.choices.emplace_back();
    for (int p = 1; p <= threads; ++p) {
      stage.choices[0].push_back({p, 0, static_cast<double>(p), p * bytes});
    }
    if (s + 1 < stages) stage.output = s + 1;
    least += bytes;
    problem.stages.push_back(std::move(stage));
  }
  problem.cores = std::numeric_limits<double>::infinity();
  problem.fixed_bytes = 1e6;
  problem.memory_bytes = 1e6 + least * (dice->Chance(0.5) ? 1e3 : dice->Uniform(0.9, 3));
  problem.least_s = 1 / dice->Uniform(100, 2100);
  return problem;
}

analysis::MaxMinProblem CoreOf(const analysis::HostProblem& problem) {
  analysis::MaxMinProblem core;
  for (const analysis::HostStage& stage : problem.stages) {
    core.service_s.push_back(stage.service_s);
    core.most.push_back(static_cast<int>(stage.choices[0].size()));
    core.weight.push_back(stage.choices[0][0].bytes);
  }
  core.budget = problem.memory_bytes - problem.fixed_bytes;
  core.most_rate = 1 / problem.least_s;
  return core;
}

double Milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// The first objective of the program and how long all of it took; negative where nothing fits.
struct Solved {
  double batch_s = -1;
  bool proven = true;  // the objectives that rates, prices and power depend on
};
Solved SolveOne(const analysis::HostProblem& problem, SolveTrial* trial) {
  Solved solved;
  analysis::HostReport report;
  trial->slowest_ms = std::max(trial->slowest_ms, Milliseconds([&] {
                                 if (!analysis::SolveHost(problem, &report)) return;
                                 solved.batch_s = report.objectives[0].value;
                               }));
  ++trial->instances;
  for (size_t i = 0; i + 1 < report.objectives.size(); ++i) {
    solved.proven = solved.proven && report.objectives[i].proof.optimal;
  }
  return solved;
}

// Against every way to run small pipelines; the exact method too, where it applies.
void SolveSmall(Dice* dice, std::vector<SolveTrial>* trials) {
  SolveTrial threads{"threads, copies and order by the program, against all ways", 0, 0, 0};
  SolveTrial caches{"threads and caches by the program, against all ways", 0, 0, 0};
  SolveTrial trees{"caches on two branches by the program, against all ways", 0, 0, 0};
  const auto compare = [&](const HostSize& size, int instances, SolveTrial* trial) {
    for (int i = 0; i < instances; ++i) {
      const analysis::HostProblem problem = DrawHost(size, dice);
      const std::optional<double> truth = LeastSeconds(problem);
      const Solved solved = SolveOne(problem, trial);
      trial->equal += solved.proven && (solved.batch_s >= 0) == truth.has_value() &&
                      (!truth || std::abs(solved.batch_s / *truth - 1) <= 1e-6);
    }
    trials->push_back(*trial);
  };
  compare({.stages = 4, .threads = 4, .sites = 0}, 300, &threads);
  compare({.stages = 3, .threads = 4, .sites = 4}, 200, &caches);
  compare({.stages = 3, .threads = 2, .sites = 3, .with_copies = 0, .with_order = 0, .branches = 1},
          60, &trees);
  SolveTrial exact{"max-min by the exact method, against the program", 0, 0, 0};
  for (int i = 0; i < 400; ++i) {
    const analysis::HostProblem problem =
        DrawCore(1 + static_cast<size_t>(dice->Below(5)), 6, dice);
    const analysis::MaxMinProblem core = CoreOf(problem);
    std::optional<analysis::MaxMinSolution> found;
    exact.slowest_ms =
        std::max(exact.slowest_ms, Milliseconds([&] { found = analysis::SolveMaxMin(core); }));
    SolveTrial ignored;
    const double batch_s = SolveOne(problem, &ignored).batch_s;
    ++exact.instances;
    exact.equal += found.has_value() == (batch_s >= 0) &&
                   (!found || std::abs(found->rate * batch_s - 1) <= 1e-6);
  }
  trials->push_back(exact);
}

}  // namespace

std::vector<SolveTrial> TrySolving(uint64_t seed) {
  std::vector<SolveTrial> trials;
  Dice dice(seed, 41);
  SolveSmall(&dice, &trials);
  SolveTrial hundred{"threads of 100 stages by the program, against the exact method", 0, 0, 0};
  for (int i = 0; i < 10; ++i) {
    const analysis::HostProblem problem = DrawCore(100, 32, &dice);
    const double batch_s = SolveOne(problem, &hundred).batch_s;
    const std::optional<analysis::MaxMinSolution> exact = analysis::SolveMaxMin(CoreOf(problem));
    hundred.equal += exact.has_value() == (batch_s >= 0) &&
                     (!exact || std::abs(exact->rate * batch_s - 1) <= 1e-6);
  }
  trials.push_back(hundred);
  SolveTrial whole{"all of it for 100 stages, 40 places for caches, copies; proven", 0, 0, 0};
  for (int i = 0; i < 40; ++i) {
    const analysis::HostProblem problem =
        DrawHost({.stages = 100, .threads = 16, .sites = 40}, &dice);
    whole.equal += SolveOne(problem, &whole).proven;
  }
  trials.push_back(whole);
  SolveTrial thousand{"max-min of 1000 stages, by the exact method", 0, 0, 0};
  for (int i = 0; i < 50; ++i) {
    analysis::MaxMinProblem problem;
    for (int s = 0; s < 1000; ++s) {
      problem.service_s.push_back(dice.Uniform(0.05, 2));
      problem.most.push_back(100000);
      problem.weight.push_back(1);
    }
    problem.budget = 4000;
    problem.most_rate = std::numeric_limits<double>::infinity();
    std::optional<analysis::MaxMinSolution> solution;
    thousand.slowest_ms = std::max(
        thousand.slowest_ms, Milliseconds([&] { solution = analysis::SolveMaxMin(problem); }));
    double next = 0;  // what any higher rate would take
    for (double service_s : problem.service_s) {
      next += std::ceil(service_s * solution->rate * (1 + 1e-6));
    }
    ++thousand.instances;
    thousand.equal += next > problem.budget;
  }
  trials.push_back(thousand);
  return trials;
}

namespace {

// What we choose and what is best: the predicted rate beside that of a long play.
std::string ShowChoices(const World& world, const analysis::RunView& run,
                        const analysis::PipelineModel& model, uint64_t seed) {
  const analysis::Predictor predictor(model);
  const Best best = FindBest(world, seed + kTruthSeed);
  std::string text;
  for (const auto& [name, choice] :
       {std::pair{"chosen", Ours().choose(run, {}, {})}, std::pair{"best", best.choice}}) {
    analysis::Settings settings = model.current();
    settings.parallelism = choice.threads;
    settings.queue_capacity = choice.queues;
    settings.order_window = choice.window.value_or(settings.order_window);
    text += fmt::format("  {} {}: predicted {:.2f}, played {:.2f}\n", name, TextOf(choice),
                        predictor.Rate({settings, {}}),
                        LongRate(With(world, choice), seed + kTruthSeed));
  }
  return text;
}

}  // namespace

std::string Show(uint64_t seed, bool small) {
  const Planted planted = Generate(seed, small);
  const World& world = planted.world;
  const analysis::RunView run = RecordRun(planted, seed);
  const analysis::PipelineModel model(run);
  std::string text = fmt::format(
      "seed {}: {}, level {}, {} cores, contention {:.3f}, ordered {} {}\n", seed, planted.kind,
      planted.level, world.cores, world.contention, model.ordered(), model.order_window());
  const std::vector<double> visits = Visits(world);
  for (size_t s = 0; s < world.stations.size(); ++s) {
    const Station& station = world.stations[s];
    double cpu = 0, blocked = 0;
    std::string parts;
    for (const Part& part : station.parts) {
      cpu += (part.cpu_s + part.held_cpu_s) * visits[s];
      blocked += (part.blocked_s + part.held_blocked_s) * visits[s];
      parts += fmt::format(" cv {:.2f} shape {}{}", part.cv, static_cast<int>(part.shape),
                           part.shared >= 0 ? " " + world.shared[size_t(part.shared)].name : "");
    }
    const analysis::StageModel& stage = model.stages()[s];
    text += fmt::format(
        "  {} x{}{} queue {} take {} emit {:.2f} visits {:.2f} ms {:.2f}+{:.2f}{} | model firings "
        "{:.2f} elements {:.2f} ms {:.2f} of them cpu {:.2f} cv {:.2f}\n",
        station.name, station.threads, station.sequential ? " seq" : "", station.queue,
        station.take, station.emit, visits[s], 1e3 * cpu, 1e3 * blocked, parts, stage.firings,
        stage.elements, 1e3 * model.demands().stage_s[s], 1e3 * model.demands().stage_cpu_s[s],
        stage.cv);
  }
  text += fmt::format("  consumer ms {:.2f} cv {:.2f} | model {:.2f} cv {:.2f}\n",
                      1e3 * world.consumer_s, world.consumer_cv, 1e3 * model.demands().consumer_s,
                      model.consumer_cv());
  for (const analysis::Limit& limit : analysis::Bounds(model, model.demands(), model.current())) {
    text += fmt::format("  {} {} {:.2f}\n", limit.kind_name(), limit.name, limit.bound);
  }
  const double simulated =
      analysis::SimulatedRate(model.Simulated(model.current(), model.demands()), 8000, seed)
          .value_or(0);
  text += fmt::format("  observed {:.2f}, played longer {:.2f}, simulated by the model {:.2f}\n",
                      model.demands().rate, LongRate(world, seed + kTruthSeed), simulated);
  const std::vector<analysis::Worth> worths = analysis::Sensitivity(
      model, analysis::Predictor(model), {model.current(), {}}, analysis::Step::kQuarter);
  for (const Gain& gain : FindTruth(world, kTruthBatches, seed + kTruthSeed).gains) {
    text += fmt::format("  {} {:+.1f} %", gain.row, 100 * gain.gain);
    for (const analysis::Worth& worth : worths) {
      if (worth.limit.name == gain.row) text += fmt::format(" (said {:+.1f})", 100 * worth.gain);
    }
  }
  if (small) text += ShowChoices(world, run, model, seed);
  return text + "\n";
}

std::string Line(const PredictTrial& t) {
  return fmt::format("predict\t{}\t{}\t{}\t{}\t{:.6g}\t{:.6g}\t{:.6g}\t{:.6g}\t{:.6g}\t{}", t.seed,
                     t.kind, Word(t.change), t.level, t.now, t.predicted, t.low, t.high, t.observed,
                     Word(t.limited_by));
}

std::string Line(const NameTrial& t) {
  return fmt::format("name\t{}\t{}\t{}\t{}\t{}\t{}\t{:.4f}\t{}\t{:.4f}\t{}\t{}", t.seed, t.kind,
                     t.verdict, t.first, t.second, t.level, t.probability, t.truth, t.gap,
                     int{t.first_right}, int{t.second_right});
}

std::string Line(const WorthTrial& t) {
  return fmt::format("worth\t{}\t{}\t{}\t{:.4f}\t{}\t{}\t{:.4f}\t{:.4f}\t{:.4f}\t{:.4f}\t{}",
                     t.seed, t.kind, t.pairs, t.tau, t.nothing, t.wrong, t.predicted, t.observed,
                     t.low, t.high, int{t.first_right});
}

std::string Line(const ChooseTrial& t) {
  return fmt::format("choose\t{}\t{}\t{}\t{:.6g}\t{:.6g}\t{:.6g}\t{}\t{}\t{}\t{}", t.seed, t.kind,
                     t.strategy, t.before, t.rate, t.best, int{t.over_memory}, t.measured,
                     Word(t.chosen), Word(t.best_known));
}

std::string Line(const CacheTrial& t) {
  return fmt::format("cache\t{}\t{}\t{}\t{}\t{}\t{:.6g}\t{:.6g}\t{:.6g}\t{:.4f}", t.seed, t.kind,
                     t.epochs, t.chosen, t.best, t.none_s, t.chosen_s, t.best_s, t.size_error);
}

std::string Line(const SolveTrial& t) {
  return fmt::format("solve\t{}\t{}\t{}\t{:.4f}", t.what, t.instances, t.equal, t.slowest_ms);
}

std::string Line(const AttributeTrial& t) {
  return fmt::format(
      "attribute\t{}\t{}\t{}\t{}\t{:.5f}\t{:.5f}\t{:.5f}\t{:.5f}\t{:.5f}\t{:.2g}\t{:.4f}\t{:.5f}",
      t.seed, t.kind, Word(t.change), t.changes, t.truth, t.measured, t.found, t.low, t.high, t.off,
      t.cost, t.stranger);
}

bool Parse(const std::string& line, Trials* trials) {
  std::vector<std::string> f;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) f.push_back(field);
  const auto number = [&](size_t i) { return std::strtod(f[i].c_str(), nullptr); };
  const auto count = [&](size_t i) { return static_cast<int>(number(i)); };
  if (f.size() < 2) return false;
  const uint64_t seed = std::strtoull(f[1].c_str(), nullptr, 10);
  const bool real = f[0].starts_with("real-");
  if (real) f[0] = f[0].substr(5);
  const bool beside = f[0].starts_with("beside-");
  if (beside) f[0] = f[0].substr(7);
  if ((f[0] == "predict" || (f[0] == "load" && !real && !beside)) && f.size() == 11) {
    (f[0] == "load" ? trials->contended
     : real         ? trials->real_predictions
     : beside       ? trials->beside_predictions
                    : trials->predictions)
        .push_back({seed, f[2], f[3], count(4), number(5), number(6), number(7), number(8),
                    number(9), f[10]});
  } else if (f[0] == "name" && f.size() == 12) {
    (real     ? trials->real_names
     : beside ? trials->beside_names
              : trials->names)
        .push_back({seed, f[2], f[3], f[4], f[5], count(6), number(7), f[8], number(9),
                    f[10] == "1", f[11] == "1"});
  } else if (beside) {
    return false;
  } else if (f[0] == "attribute" && f.size() == 13) {
    (real ? trials->real_attributions : trials->attributions)
        .push_back({seed, f[2], f[3], count(4), number(5), number(6), number(7), number(8),
                    number(9), number(10), number(11), number(12)});
  } else if (real && f[0] == "left") {
    (f[1] == "busy" ? trials->real_busy : trials->real_full) += 1;
  } else if (f[0] == "control" && f.size() == 5 && !real) {
    trials->controls.push_back({f[1], f[2], f[4], f[3] == "1"});
  } else if (f[0] == "applied" && (f.size() == 7 || f.size() == 8) && !f[1].empty() && !real) {
    f.resize(8);  // a line that ends in an empty field
    trials->applied.push_back({f[1], f[2], f[4], f[5], f[3] == "1", f[6], f[7]});
  } else if (f[0] == "account" && f.size() == 6 && !real) {
    trials->accounts.push_back({f[1], count(2), number(3), number(4), number(5)});
  } else if (real) {
    return false;
  } else if (f[0] == "worth" && f.size() == 12) {
    trials->worths.push_back({seed, f[2], count(3), number(4), count(5), count(6), number(7),
                              number(8), number(9), number(10), f[11] == "1"});
  } else if (f[0] == "choose" && f.size() == 11) {
    trials->choices.push_back(
        {seed, f[2], f[3], number(4), number(5), number(6), f[7] == "1", count(8), f[9], f[10]});
  } else if (f[0] == "cache" && f.size() == 10) {
    trials->caches.push_back(
        {seed, f[2], count(3), f[4], f[5], number(6), number(7), number(8), number(9)});
  } else if (f[0] == "solve" && f.size() == 5) {
    trials->solutions.push_back(
        {f[1], static_cast<size_t>(count(2)), static_cast<size_t>(count(3)), number(4)});
  } else {
    return false;
  }
  return true;
}

}  // namespace headrace::validation
