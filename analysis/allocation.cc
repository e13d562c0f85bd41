#include "analysis/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "analysis/max_min.h"
#include "analysis/prediction.h"
#include "analysis/program.h"
#include "analysis/queue_loss.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kHeadroom =
    0.2;  // capacity above the planned rate: variance, dearer work on busy cores
constexpr double kWorthwhile = 0.03;  // a change that gains less is not proposed
constexpr int kMaxCapacity = 32;
constexpr double kSolverSeconds = 10;
constexpr int kOrderedPlaces = 4;  // of an ordered queue, for each thread that fills it

double ElementBytes(const PipelineModel& model, size_t stage) {
  return model.stages()[stage].element_bytes.value_or(0);
}

// Queues full and every thread with an element in hand; empty when no element size was recorded.
std::optional<double> QueueMemory(const PipelineModel& model, const Settings& settings) {
  double bytes = 0;
  bool known = false;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    known = known || model.stages()[s].element_bytes.has_value();
    bytes += ElementBytes(model, s) *
             (static_cast<double>(settings.queue_capacity[s]) + settings.parallelism[s]);
  }
  if (!known) return std::nullopt;
  return bytes;
}

[[noreturn]] void ThrowOverMemory(double least_bytes, double base_bytes, double queues_bytes,
                                  double work_bytes, double limit_bytes) {
  throw Error(
      ExitCode::kInconclusive,
      fmt::format("no plan fits {}: the minimum is {} (queues of one element {}, one element in "
                  "work per stage {}, the rest of the process {}), {} too much",
                  FormatBytes(limit_bytes), FormatBytes(least_bytes), FormatBytes(queues_bytes),
                  FormatBytes(work_bytes), FormatBytes(base_bytes),
                  FormatBytes(least_bytes - limit_bytes)),
      "memory budget", "loosen --memory");
}

// Why a stage is to run on other than its present number of threads.
std::string WhyThreads(const PipelineModel& model, const ChainProblem& problem,
                       const ChainSolution& solution, size_t s, int planned, bool fits_now) {
  const int now = model.current().parallelism[s];
  if (planned < now) {
    if (now > problem.max_threads[s]) {
      return fmt::format("{} threads are the most it may have", problem.max_threads[s]);
    }
    return fits_now ? "fewer threads leave the cores to the stages that need them"
                    : "fewer threads fit the memory budget";
  }
  const double stage_s = problem.stage_s[s];
  const std::string each = fmt::format("one thread does {}; {} wanted",
                                       FormatRate(stage_s > 0 ? 1 / stage_s : kInfinite, "batches"),
                                       FormatRate(solution.rate, "batches"));
  if (planned <= std::ceil(stage_s * solution.rate * (1 + kHeadroom))) return each;
  return fmt::format("{}, and costs vary by {:.0f} %", each, 100 * model.stages()[s].cv);
}

bool WithinMost(const ChainProblem& problem, const Settings& settings) {
  for (size_t s = 0; s < problem.max_threads.size(); ++s) {
    if (settings.parallelism[s] > problem.max_threads[s]) return false;
  }
  return true;
}

// What the program does not know, found by predicting: which of its changes pay, what longer queues
// and a few threads more gain where costs vary. Every step must fit the memory.
class Search {
 public:
  Search(const PipelineModel& model, const Predictor& predictor, const ChainProblem& problem,
         std::function<bool(const Settings&)> fits, double target)
      : model_(model),
        predictor_(predictor),
        problem_(problem),
        fits_(std::move(fits)),
        target_(target) {}

  const Settings& plan() const { return plan_; }
  double rate() const { return rate_; }

  void Begin(const Settings& settings) {
    plan_ = settings;
    rate_ = predictor_.Rate(settings);
  }

  // Takes back changes that gain next to nothing, as long as all of them together lose little.
  void Undo(const Settings& current) {
    const double needed = std::min(target_, rate_) * (1 - kWorthwhile / 2);
    for (auto member : {&Settings::parallelism, &Settings::queue_capacity}) {
      for (size_t s = 0; s < plan_.parallelism.size(); ++s) {
        Settings without = plan_;
        (without.*member)[s] = (current.*member)[s];
        if ((without.*member)[s] == (plan_.*member)[s]) continue;
        if (!fits_(without) || !WithinMost(problem_, without)) continue;
        const double rate = predictor_.Rate(without);
        if (rate < needed) continue;
        plan_ = without;
        rate_ = rate;
      }
    }
  }

  // All queues as long as costs that vary ask for, as far as the memory goes.
  void Deepen() {
    Settings deeper = plan_;
    for (size_t s = 0; s < plan_.queue_capacity.size(); ++s) {
      Settings trial = deeper;
      trial.queue_capacity[s] = std::max(Places(s), plan_.queue_capacity[s]);
      while (trial.queue_capacity[s] > plan_.queue_capacity[s] && !fits_(trial)) {
        --trial.queue_capacity[s];
      }
      deeper = trial;
    }
    Try(deeper);
  }

  // The best of the steps below, while one pays.
  void Climb() {
    for (int round = 0; round < kRounds && rate_ < target_; ++round) {
      Settings best = plan_;
      double most = rate_ * (1 + kWorthwhile / 2);
      for (const Settings& step : Steps()) {
        const double rate = predictor_.Rate(step);
        if (rate <= most) continue;
        most = rate;
        best = step;
      }
      if (most <= rate_ * (1 + kWorthwhile / 2)) return;
      plan_ = best;
      rate_ = most;
    }
  }

 private:
  static constexpr int kRounds = 6;
  static constexpr size_t kMostSteps = 20;  // tried in a round

  bool Try(const Settings& settings) {
    const double rate = predictor_.Rate(settings);
    if (rate < rate_ * (1 + kWorthwhile / 2)) return false;
    plan_ = settings;
    rate_ = rate;
    return true;
  }

  // By the diffusion formula at the planned loads; in order, threads wait for the slowest of them
  // unless there is room for what they did since.
  int Places(size_t s) const {
    const std::vector<StageModel>& stages = model_.stages();
    const Demands& demands = model_.demands();
    const auto capacity = [&](size_t i) {
      return plan_.parallelism[i] / std::max(demands.stage_s[i], 1e-9);
    };
    const std::optional<size_t> next = stages[s].output;
    const double ours = capacity(s);
    const double theirs = next ? capacity(*next) : 1 / std::max(demands.consumer_s, 1e-9);
    const double their_cv = next ? stages[*next].cv : model_.consumer_cv();
    const int places =
        SufficientCapacity(std::min(ours, theirs) / std::max(ours, theirs), stages[s].cv, their_cv,
                           0.01, plan_.queue_capacity[s], kMaxCapacity);
    const bool waits = model_.ordered() && plan_.parallelism[s] > 1;
    return waits ? std::max(places, kOrderedPlaces * plan_.parallelism[s]) : places;
  }

  // Those of the stages that allow least first.
  std::vector<Settings> Steps() const {
    std::vector<std::pair<double, Settings>> steps;
    for (size_t s = 0; s < plan_.parallelism.size(); ++s) {
      const double bound = plan_.parallelism[s] / std::max(model_.demands().stage_s[s], 1e-9);
      const int threads = plan_.parallelism[s];
      // A few more; twice as many, where costs vary so much that a few are all caught by slow
      // elements; half, where they take the cores from stages that need them more.
      for (const int other : {threads + std::max(1, threads / 4), 2 * threads, threads / 2}) {
        Settings step = plan_;
        step.parallelism[s] = std::clamp(other, 1, std::max(threads, problem_.max_threads[s]));
        if (step.parallelism[s] != threads && fits_(step)) steps.emplace_back(bound, step);
      }
      const int most = std::max(model_.ordered() ? kOrderedPlaces * 2 * threads : 0, kMaxCapacity);
      Settings deeper = plan_;
      if (deeper.queue_capacity[s] <= most / 2) deeper.queue_capacity[s] *= 2;
      if (deeper.queue_capacity[s] != plan_.queue_capacity[s] && fits_(deeper)) {
        steps.emplace_back(bound, deeper);
      }
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    // Stages that limit alike gain only together.
    Settings wider = plan_, deeper = plan_;
    for (size_t s = 0; s < plan_.parallelism.size(); ++s) {
      wider.parallelism[s] = std::min(std::max(problem_.max_threads[s], plan_.parallelism[s]),
                                      plan_.parallelism[s] + std::max(1, plan_.parallelism[s] / 4));
      if (plan_.queue_capacity[s] < kMaxCapacity) {
        deeper.queue_capacity[s] = std::min(2 * plan_.queue_capacity[s], kMaxCapacity);
      }
    }
    std::vector<Settings> result;
    if (fits_(wider)) result.push_back(std::move(wider));
    if (fits_(deeper)) result.push_back(std::move(deeper));
    for (size_t i = 0; i < std::min(steps.size(), kMostSteps); ++i) {
      result.push_back(std::move(steps[i].second));
    }
    return result;
  }

  const PipelineModel& model_;
  const Predictor& predictor_;
  const ChainProblem& problem_;
  std::function<bool(const Settings&)> fits_;
  double target_;
  Settings plan_;
  double rate_ = 0;
};

}  // namespace

std::optional<ChainSolution> SolveChain(const ChainProblem& problem, ChainReport* report) {
  const size_t n = problem.stage_s.size();
  // X in units of a rate no plan can exceed, so that all coefficients are of one size.
  double scale = problem.shared_bound;
  for (size_t s = 0; s < n; ++s) {
    if (problem.stage_s[s] > 0)
      scale = std::min(scale, problem.max_threads[s] / problem.stage_s[s]);
  }
  if (!std::isfinite(scale) || scale <= 0) scale = 1;
  const auto named = [&](const char* what, size_t s) {
    return s < problem.names.size() ? fmt::format("{}_{}", what, problem.names[s])
                                    : fmt::format("{}{}", what, s);
  };
  const auto build = [&](Program* program, std::vector<size_t>* threads) {
    const size_t rate = program->Column("X", 0, std::min(1.0, problem.shared_bound / scale), false);
    std::vector<std::pair<size_t, double>> memory;
    for (size_t s = 0; s < n; ++s) {
      threads->push_back(
          program->Column(named("p", s), 1, std::max(1, problem.max_threads[s]), true));
      if (problem.stage_s[s] > 0) {
        program->Row(named("stage", s),
                     {{threads->back(), 1.0}, {rate, -problem.stage_s[s] * scale}}, 0, HUGE_VAL);
      }
      if (problem.thread_bytes[s] > 0)
        memory.push_back({threads->back(), problem.thread_bytes[s] / 1048576});
    }
    if (std::isfinite(problem.memory_bytes) && !memory.empty()) {
      program->Row("memory", memory, -HUGE_VAL,
                   (problem.memory_bytes - problem.fixed_bytes) / 1048576);
    }
    return rate;
  };
  // CBC's preprocessing was seen to lose an optimum (program.h).
  Program first;
  first.WithoutPreprocessing();
  std::vector<size_t> threads;
  const size_t rate = build(&first, &threads);
  first.Objective({{rate, 1}}, true);
  Proof proof;
  const std::optional<std::vector<double>> best = first.Solve(kSolverSeconds, &proof);
  const std::optional<MaxMinSolution> exact =
      SolveMaxMin({problem.stage_s, problem.max_threads, problem.thread_bytes,
                   problem.memory_bytes - problem.fixed_bytes, problem.shared_bound});
  if (!best && !exact) return std::nullopt;
  ChainSolution solution;
  solution.rate = best ? (*best)[rate] * scale : 0;
  if (best.has_value() != exact.has_value() || (proof.optimal && std::isfinite(exact->rate) &&
                                                std::abs(solution.rate / exact->rate - 1) > 1e-5)) {
    throw Error(ExitCode::kFailure,
                fmt::format("the integer program gives {:.9g} batches/s, the exact method {:.9g}",
                            solution.rate, exact ? exact->rate : 0),
                "plan", "report the run: the two must agree");
  }

  // At that rate: fewest changed knobs, headroom where it can be had, then fewest threads.
  Program second;
  second.WithoutPreprocessing();
  threads.clear();
  const size_t held = build(&second, &threads);
  second.Row("rate", {{held, 1}}, (*best)[rate] * (1 - 1e-7), HUGE_VAL);
  std::vector<std::pair<size_t, double>> cost;
  for (size_t s = 0; s < n; ++s) {
    const double most = std::max(problem.max_threads[s], problem.now[s]);
    const size_t changed = second.Column(named("changed", s), 0, 1, true);
    const size_t missing = second.Column(named("missing", s), 0, HUGE_VAL, false);
    // |p - now| <= most * changed
    second.Row(named("up", s), {{threads[s], 1}, {changed, -most}}, -HUGE_VAL, problem.now[s]);
    second.Row(named("down", s), {{threads[s], 1}, {changed, most}}, problem.now[s], HUGE_VAL);
    second.Row(named("headroom", s), {{threads[s], 1}, {missing, 1}},
               problem.stage_s[s] * solution.rate * (1 + problem.headroom), HUGE_VAL);
    cost.push_back({changed, 100});
    cost.push_back({missing, problem.headroom > 0 ? 1000.0 : 0.0});
    cost.push_back({threads[s], 0.1});
  }
  second.Objective(cost, false);
  if (report != nullptr) {
    *report = {first.Text() + "then\n" + second.Text(), first.Lp(), proof, exact->rate};
  }
  const std::optional<std::vector<double>> chosen = second.Solve(kSolverSeconds);
  for (size_t s = 0; s < n; ++s) {
    const std::vector<double>& values = chosen ? *chosen : *best;
    solution.threads.push_back(static_cast<int>(std::lround(values[threads[s]])));
  }
  return solution;
}

Allocation Allocate(const PipelineModel& model, const Budget& budget) {
  const Demands& demands = model.demands();
  const size_t n = model.stages().size();
  Settings base = model.current();
  if (budget.cores) {
    if (!model.cores_known()) {
      throw Error(ExitCode::kInconclusive,
                  "the run recorded no CPU time or no number of cores, so that a budget of cores "
                  "says nothing",
                  "cores budget", "leave --cores out, or record at accounting level 2");
    }
    base.cores = *budget.cores;
  }
  const Predictor predictor(model);

  // Memory that does not depend on the knobs: the process's peak less what its queues held then.
  double base_bytes = 0;
  const HostRow* rss = model.run().FindHost("process_rss_bytes");
  const std::optional<double> queues_now = QueueMemory(model, model.current());
  if (rss != nullptr && rss->maximum_value) {
    base_bytes = std::max(0.0, *rss->maximum_value - queues_now.value_or(0));
  }
  double limit_bytes = kInfinite;
  if (budget.memory_bytes) {
    limit_bytes = static_cast<double>(*budget.memory_bytes);
  } else if (model.run().run.memory_bytes) {
    limit_bytes = static_cast<double>(*model.run().run.memory_bytes);
  }

  double element_bytes = 0;
  for (size_t s = 0; s < n; ++s) element_bytes += ElementBytes(model, s);
  if (base_bytes + 2 * element_bytes > limit_bytes) {
    ThrowOverMemory(base_bytes + 2 * element_bytes, base_bytes, element_bytes, element_bytes,
                    limit_bytes);
  }
  // Shorter queues where the present ones do not fit beside one thread per stage.
  const auto queue_bytes = [&] {
    double bytes = 0;
    for (size_t s = 0; s < n; ++s) bytes += ElementBytes(model, s) * base.queue_capacity[s];
    return bytes;
  };
  while (base_bytes + queue_bytes() + element_bytes > limit_bytes) {
    size_t largest = 0;
    double most = -1;
    for (size_t s = 0; s < n; ++s) {
      const double bytes = ElementBytes(model, s) * base.queue_capacity[s];
      if (base.queue_capacity[s] > 1 && bytes > most) {
        largest = s;
        most = bytes;
      }
    }
    // One by one where that matters; a queue said to be without end is not walked down.
    base.queue_capacity[largest] -= std::max(1, base.queue_capacity[largest] / 64);
  }

  ChainProblem problem;
  problem.stage_s = demands.stage_s;
  problem.now = base.parallelism;
  problem.fixed_bytes = base_bytes + queue_bytes();
  problem.memory_bytes = limit_bytes;
  problem.headroom = kHeadroom;
  problem.shared_bound = budget.target.value_or(kInfinite);
  for (const Limit& limit : Bounds(model, demands, base)) {
    if (limit.kind != LimitKind::kStage && limit.kind != LimitKind::kOrder)
      problem.shared_bound = std::min(problem.shared_bound, limit.bound);
  }
  const int cap = std::max(8, static_cast<int>(std::min(4 * base.cores, 1e6)));
  for (size_t s = 0; s < n; ++s) {
    const StageModel& stage = model.stages()[s];
    int most = budget.max_threads > 0 ? budget.max_threads : std::max(cap, stage.parallelism);
    if (stage.max_parallelism > 0) most = std::min(most, stage.max_parallelism);
    problem.names.push_back(stage.name);
    problem.max_threads.push_back(std::max(1, most));
    problem.thread_bytes.push_back(ElementBytes(model, s));
  }
  Allocation allocation;
  const std::optional<ChainSolution> solution = SolveChain(problem, &allocation.program);
  if (!solution) {
    throw Error(ExitCode::kInconclusive, "no settings satisfy all budgets", "plan",
                "loosen --memory or --cores");
  }

  Settings start = base;
  start.parallelism = solution->threads;
  const Settings& current = model.current();
  const auto fits = [&](const Settings& settings) {
    return base_bytes + QueueMemory(model, settings).value_or(0) <= limit_bytes;
  };
  Search search(model, predictor, problem, fits, budget.target.value_or(kInfinite));
  search.Begin(start);
  search.Undo(current);
  search.Deepen();
  search.Climb();
  search.Undo(current);
  Settings plan = search.plan();
  double rate = search.rate();

  // A plan that gains nothing worth a change changes nothing.
  const bool same_cores = !budget.cores || std::abs(*budget.cores - current.cores) < 1e-9;
  if (same_cores && rate < predictor.Rate(current) * (1 + kWorthwhile) && fits(current) &&
      WithinMost(problem, current)) {
    plan = current;
  }

  allocation.settings = plan;
  allocation.now = demands.rate;
  allocation.rows_per_batch = demands.rows;
  const auto with_without = [&](auto member, size_t s) {
    Change& change = allocation.changes.back();
    Settings without = plan;
    (without.*member)[s] = (current.*member)[s];
    change.gain = rate / predictor.Rate(without) - 1;
    if (model.stages()[s].element_bytes) {
      change.memory_bytes = ElementBytes(model, s) * (change.to - change.from);
    }
  };
  for (size_t s = 0; s < n; ++s) {
    const StageModel& stage = model.stages()[s];
    if (plan.parallelism[s] != current.parallelism[s]) {
      allocation.changes.push_back(
          {stage.name + ".parallelism",
           current.parallelism[s],
           plan.parallelism[s],
           WhyThreads(model, problem, *solution, s, plan.parallelism[s], fits(current)),
           0,
           {}});
      with_without(&Settings::parallelism, s);
    }
    if (plan.queue_capacity[s] != current.queue_capacity[s]) {
      allocation.changes.push_back(
          {stage.name + ".queue",
           current.queue_capacity[s],
           plan.queue_capacity[s],
           plan.queue_capacity[s] > current.queue_capacity[s]
               ? fmt::format("costs vary by {:.0f} %; a short queue loses rate", 100 * stage.cv)
               : "shorter queues fit the memory budget",
           0,
           {}});
      with_without(&Settings::queue_capacity, s);
    }
  }
  Settings predicted = plan;
  if (same_cores) predicted.cores = current.cores;
  const Prediction prediction = predictor.Predict(predicted);
  allocation.predicted = prediction.rate;
  allocation.predicted_interval = prediction.interval;
  // A 90 % interval reaches 1.645 deviations down, the 10th percentile is at 1.2816.
  const double deviation =
      std::log(prediction.rate / std::max(prediction.interval.low, 1e-12)) / 1.645;
  allocation.promise = prediction.rate * std::exp(-1.2816 * deviation);
  const double gained = std::log(prediction.rate / demands.rate);
  if (predicted != current && deviation > 0) {
    allocation.slower_probability = 0.5 * std::erfc(gained / deviation / std::sqrt(2.0));
  }
  const std::vector<Limit>& limits = prediction.limits;
  const size_t binding = prediction.binding;
  allocation.limited_by = limits[binding];
  allocation.next_bound = kInfinite;
  for (size_t i = 0; i < limits.size(); ++i) {
    if (i == binding || limits[i].bound >= allocation.next_bound) continue;
    allocation.next_bound = limits[i].bound;
    allocation.next = limits[i];
  }
  allocation.gain_interval = {allocation.predicted_interval.low / demands.rate - 1,
                              allocation.predicted_interval.high / demands.rate - 1};
  allocation.memory_bytes = QueueMemory(model, plan);
  if (allocation.memory_bytes && queues_now) {
    allocation.memory_change_bytes = *allocation.memory_bytes - *queues_now;
  }
  if (budget.target && allocation.predicted < *budget.target * (1 - kWorthwhile)) {
    const std::string by = allocation.limited_by.kind == LimitKind::kStage
                               ? "stage " + allocation.limited_by.name
                               : allocation.limited_by.name;
    throw Error(ExitCode::kInconclusive,
                fmt::format("no plan reaches {}: the most is {}, {} short, limited by {}",
                            FormatRate(*budget.target, "batches"),
                            FormatRate(allocation.predicted, "batches"),
                            FormatPercent(1 - allocation.predicted / *budget.target), by),
                "target", "lower --target, or make that part cheaper");
  }
  return allocation;
}

}  // namespace headrace::analysis
