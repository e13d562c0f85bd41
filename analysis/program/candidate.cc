#include "analysis/program/candidate.h"

#include <algorithm>
#include <utility>

#include "analysis/program/search.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/infinite.h"

namespace headrace::analysis {
namespace {

std::optional<HostSolution> Solve(HostProblem problem, HostReport* report) {
  std::optional<HostSolution> solution = SolveHost(problem, report);
  if (solution) return solution;
  // Shorter queues than are good, where nothing else fits.
  for (HostStage& stage : problem.stages) stage.queue_least = 1;
  return SolveHost(problem, report);
}

}  // namespace

Planner::Planner(const PipelineModel& model, const Predictor& predictor, const Budget& budget,
                 const MemoryBudget& memory, const Settings& base, bool same_cores)
    : model_(model),
      predictor_(predictor),
      budget_(budget),
      memory_(memory),
      base_(base),
      same_cores_(same_cores),
      program_(ProgramOf(model, budget, base, memory)) {}

Candidate Planner::Best() const {
  std::optional<Candidate> best = CandidateOf(program_.problem);
  if (!best) {
    throw Error(ExitCode::kInconclusive, "no settings satisfy all budgets", "plan",
                "raise --memory or --cores");
  }
  if (best->caches.empty()) return std::move(*best);
  HostProblem without = program_.problem;
  without.sites.clear();
  std::optional<Candidate> plain = CandidateOf(std::move(without));
  if (plain && plain->average_s * (1 - kWorthwhileGain) <= best->average_s)
    return std::move(*plain);
  GiveRoom(&*best);
  return std::move(*best);
}

std::optional<Candidate> Planner::CandidateOf(HostProblem problem) const {
  Candidate candidate;
  std::optional<HostSolution> solution = Solve(problem, &candidate.report);
  if (!solution) return std::nullopt;
  if (!budget_.price_per_core_hour && !budget_.watts_per_core) {
    FillCaches(problem, kCacheFillLoss, &*solution);
  }
  candidate.solution = *solution;
  const double cache_bytes = AddCaches(problem, &candidate);
  const auto fits = [this, cache_bytes](const Settings& settings) {
    return memory_.Fits(settings, cache_bytes);
  };
  const Settings& current = model_.current();
  Search search(model_, predictor_, program_.most, candidate.warm, fits,
                budget_.target.value_or(kInfinite));
  search.Run(StartOf(problem, *solution), current);
  candidate.settings = search.plan();
  candidate.rate = candidate.fill_rate = search.rate();
  // A plan that gains nothing worth a change changes nothing.
  const double now = model_.demands().rate;
  if (candidate.caches.empty() && same_cores_ && candidate.rate < now * (1 + kWorthwhileGain) &&
      fits(current) && WithinMost(program_.most, current)) {
    candidate.settings = current;
    candidate.rate = candidate.fill_rate = now;
  }
  candidate.average_s = 1 / candidate.rate;
  if (!candidate.caches.empty()) AddFill(&candidate);
  return candidate;
}

// Returns the bytes that they take of the process's memory.
double Planner::AddCaches(const HostProblem& problem, Candidate* candidate) const {
  double in_memory = 0;
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    const double share = candidate->solution.kept[k];
    if (share <= 0) continue;
    const CacheSite& site = problem.sites[k];
    const CacheTier& tier = budget_.cache->tiers[site.tier];
    candidate->caches.push_back({site.stage, site.tier, share, share * site.bytes, 0});
    if (problem.tiers[site.tier].memory) in_memory += share * site.bytes;
    for (const bool reading : {true, false}) {
      const double each_s = share * (reading ? site.read_s : site.write_s);
      const std::vector<Scale> scales =
          CacheScales(model_, site.stage, reading ? 1 - share : 1, each_s, tier, site.tier);
      std::vector<Scale>& all = reading ? candidate->warm : candidate->fill;
      all.insert(all.end(), scales.begin(), scales.end());
    }
  }
  return in_memory;
}

Settings Planner::StartOf(const HostProblem& problem, const HostSolution& solution) const {
  Settings start = base_;
  for (size_t s = 0; s < solution.stages.size(); ++s) {
    if (model_.stages()[s].stays_on_consumer) continue;
    start.parallelism[s] = solution.stages[s].threads;
    start.queue_capacity[s] = solution.stages[s].queue;
  }
  if (!problem.sets.empty()) {
    start.order_window = problem.sets[0].modes[solution.modes[0]].value;
  }
  return start;
}

// The first epoch does all the work, and writes.
void Planner::AddFill(Candidate* candidate) const {
  candidate->fill_rate = std::min(predictor_.Rate({candidate->settings, candidate->fill}),
                                  predictor_.Rate({candidate->settings, {}}));
  const double epochs = budget_.cache->epochs;
  if (epochs > 0) {
    candidate->average_s = (1 / candidate->fill_rate + (epochs - 1) / candidate->rate) / epochs;
  }
}

// PlannedCache::most_bytes: what is left of a tier and of the memory, in equal parts.
void Planner::GiveRoom(Candidate* candidate) const {
  const std::vector<CacheTier>& tiers = budget_.cache->tiers;
  std::vector<double> left;
  for (const CacheTier& tier : tiers) left.push_back(tier.budget_bytes);
  double memory_left = memory_.limit_bytes() - memory_.Needed(candidate->settings);
  double in_memory = 0;
  std::vector<double> in_tier(left.size(), 0);
  for (const PlannedCache& cache : candidate->caches) {
    left[cache.tier] -= cache.bytes;
    ++in_tier[cache.tier];
    if (tiers[cache.tier].name != "memory") continue;
    ++in_memory;
    memory_left -= cache.bytes;
  }
  for (PlannedCache& cache : candidate->caches) {
    double more = left[cache.tier] / in_tier[cache.tier];
    if (tiers[cache.tier].name == "memory") more = std::min(more, memory_left / in_memory);
    cache.most_bytes = cache.bytes + std::max(0.0, more);
  }
}

}  // namespace headrace::analysis
