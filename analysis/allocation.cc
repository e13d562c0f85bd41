#include "analysis/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/program.h"
#include "analysis/queue_loss.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kHeadroom = 0.1;  // capacity above the planned rate, so that variance costs little
constexpr double kWorthwhile = 0.03;  // a change that gains less is not proposed
constexpr double kStageError = 0.06;  // deviation of log(predicted / observed), prior
constexpr double kCoresError = 0.10;  // the same where shared cores limit
constexpr int64_t kSimulatedSteps = 1500;
constexpr uint64_t kSeed = 20240612;
constexpr int kMaxCapacity = 32;

double ElementBytes(const PipelineModel& model, size_t stage) {
  return model.stages()[stage].element_bytes.value_or(0);
}

// Queues full and every thread with an element in hand; empty when no element size was recorded.
std::optional<double> QueueMemory(const PipelineModel& model, const Settings& settings) {
  double bytes = 0;
  bool known = false;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    known = known || model.stages()[s].element_bytes.has_value();
    bytes += ElementBytes(model, s) * (settings.queue_capacity[s] + settings.parallelism[s]);
  }
  if (!known) return std::nullopt;
  return bytes;
}

double LeastBound(const std::vector<Limit>& limits) {
  double least = kInfinite;
  for (const Limit& limit : limits) least = std::min(least, limit.bound);
  return least;
}

// Rate at these settings: simulated, scaled by how far the simulation of the present settings is
// from what was observed (halved on the log scale, as a part of that is particular to them).
class Predictor {
 public:
  explicit Predictor(const PipelineModel& model) : model_(model) {
    const double simulated = Simulated(model.current());
    if (std::isfinite(simulated) && simulated > 0) {
      correction_ = std::clamp(std::sqrt(model.demands().rate / simulated), 0.85, 1.05);
    }
  }
  double Rate(const Settings& settings) const {
    const double least = LeastBound(Bounds(model_, model_.demands(), settings));
    return std::min(least, Simulated(settings) * correction_);
  }

 private:
  double Simulated(const Settings& settings) const {
    return SimulatedRate(model_.Simulated(settings, model_.demands()), kSimulatedSteps, kSeed);
  }
  const PipelineModel& model_;
  double correction_ = 1;
};

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

}  // namespace

std::optional<ChainSolution> SolveChain(const ChainProblem& problem, std::string* text) {
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
  Program first;
  std::vector<size_t> threads;
  const size_t rate = build(&first, &threads);
  first.Objective({{rate, 1}}, true);
  const std::optional<std::vector<double>> best = first.Solve();
  if (!best) return std::nullopt;
  ChainSolution solution;
  solution.rate = (*best)[rate] * scale;

  // At that rate: fewest changed knobs, headroom where it can be had, then fewest threads.
  Program second;
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
  if (text != nullptr) *text = first.Text() + "then\n" + second.Text();
  const std::optional<std::vector<double>> chosen = second.Solve();
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
  if (budget.cores) base.cores = *budget.cores;
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
    --base.queue_capacity[largest];
  }

  ChainProblem problem;
  problem.stage_s = demands.stage_s;
  problem.now = base.parallelism;
  problem.fixed_bytes = base_bytes + queue_bytes();
  problem.memory_bytes = limit_bytes;
  problem.headroom = kHeadroom;
  problem.shared_bound = budget.target.value_or(kInfinite);
  for (const Limit& limit : Bounds(model, demands, base)) {
    if (limit.kind != LimitKind::kStage)
      problem.shared_bound = std::min(problem.shared_bound, limit.bound);
  }
  const int cap = std::max(8, static_cast<int>(4 * base.cores));
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

  Settings plan = base;
  plan.parallelism = solution->threads;
  const Settings& current = model.current();
  double rate = predictor.Rate(plan);
  // A knob whose change does not pay is left as it is; the program knows bounds only.
  const auto keep_if_better = [&](auto&& member, bool must_fit) {
    for (size_t s = 0; s < n; ++s) {
      Settings without = plan;
      (without.*member)[s] = (current.*member)[s];
      if ((without.*member)[s] == (plan.*member)[s]) continue;
      if (must_fit && base_bytes + QueueMemory(model, without).value_or(0) > limit_bytes) continue;
      const double rate_without = predictor.Rate(without);
      const double needed = budget.target ? std::min(*budget.target, rate) : rate;
      if (rate_without >= needed * (1 - kWorthwhile / 2)) {
        plan = without;
        rate = rate_without;
      }
    }
  };
  keep_if_better(&Settings::parallelism, true);
  // Queues: by the diffusion formula at the planned loads, kept only where simulation agrees.
  Settings deeper = plan;
  for (size_t s = 0; s < n; ++s) {
    const double ours = plan.parallelism[s] / std::max(demands.stage_s[s], 1e-9);
    const bool last = s + 1 == n;
    const double theirs = last ? 1 / std::max(demands.consumer_s, 1e-9)
                               : plan.parallelism[s + 1] / std::max(demands.stage_s[s + 1], 1e-9);
    const double their_cv = last ? model.consumer_cv() : model.stages()[s + 1].cv;
    const int wanted =
        SufficientCapacity(std::min(ours, theirs) / std::max(ours, theirs), model.stages()[s].cv,
                           their_cv, 0.01, plan.queue_capacity[s], kMaxCapacity);
    deeper.queue_capacity[s] = std::max(wanted, plan.queue_capacity[s]);
  }
  if (base_bytes + QueueMemory(model, deeper).value_or(0) <= limit_bytes &&
      predictor.Rate(deeper) > rate * (1 + kWorthwhile)) {
    plan = deeper;
    rate = predictor.Rate(plan);
    keep_if_better(&Settings::queue_capacity, true);
  }

  // The simulation may start below what was observed: a plan that does not beat the observation
  // changes nothing for the better.
  const bool same_cores = !budget.cores || std::abs(*budget.cores - current.cores) < 1e-9;
  if (same_cores && budget.max_threads == 0 && rate < demands.rate * (1 + kWorthwhile) &&
      base_bytes + QueueMemory(model, current).value_or(0) <= limit_bytes) {
    plan = current;
  }

  allocation.settings = plan;
  allocation.now = demands.rate;
  allocation.rows_per_batch = demands.rows;
  bool changed = false;
  const std::vector<Limit> limits_now = Bounds(model, demands, current);
  for (size_t s = 0; s < n; ++s) {
    const StageModel& stage = model.stages()[s];
    if (plan.parallelism[s] != current.parallelism[s]) {
      changed = true;
      const double each = demands.stage_s[s] > 0 ? 1 / demands.stage_s[s] : kInfinite;
      allocation.changes.push_back(
          {stage.name + ".parallelism", current.parallelism[s], plan.parallelism[s],
           plan.parallelism[s] > current.parallelism[s]
               ? fmt::format("one thread does {}; {} wanted", FormatRate(each, "batches"),
                             FormatRate(solution->rate, "batches"))
               : "fewer threads fit the memory budget"});
    }
    if (plan.queue_capacity[s] != current.queue_capacity[s]) {
      changed = true;
      allocation.changes.push_back(
          {stage.name + ".queue", current.queue_capacity[s], plan.queue_capacity[s],
           plan.queue_capacity[s] > current.queue_capacity[s]
               ? fmt::format("costs vary by {:.0f} %; a short queue loses rate", 100 * stage.cv)
               : "shorter queues fit the memory budget"});
    }
  }
  // Nothing changes: what was observed is the best prediction of itself.
  allocation.predicted = changed || !same_cores ? rate : demands.rate;

  const std::vector<Limit> limits = Bounds(model, demands, plan);
  const size_t binding = BindingRow(model, demands, limits);
  allocation.limited_by = limits[binding];
  allocation.next_bound = kInfinite;
  for (size_t i = 0; i < limits.size(); ++i) {
    if (i == binding || limits[i].bound >= allocation.next_bound) continue;
    allocation.next_bound = limits[i].bound;
    allocation.next = limits[i];
  }
  std::vector<double> ratios;
  const double least = LeastBound(limits);
  for (const Demands& draw : BootstrapDemands(model, 200, kSeed)) {
    if (std::isfinite(least)) ratios.push_back(LeastBound(Bounds(model, draw, plan)) / least);
  }
  if (ratios.empty()) ratios.push_back(1);
  const Interval sampled = CentralInterval(ratios, 0.9);
  const bool by_cores = allocation.limited_by.kind == LimitKind::kCores;
  const double prior = !changed && same_cores ? 0.02 : by_cores ? kCoresError : kStageError;
  const auto widen = [&](double ratio, double sign) {
    const double half = std::abs(std::log(std::max(ratio, 1e-6)));
    return allocation.predicted * std::exp(sign * std::hypot(half, 1.645 * prior));
  };
  // However wrong the rest, the rate cannot exceed the bound.
  const double ceiling = std::max(allocation.predicted, least * std::max(1.0, sampled.high));
  allocation.predicted_interval = {widen(sampled.low, -1),
                                   std::min(widen(sampled.high, 1), ceiling)};
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
