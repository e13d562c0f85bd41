#include "analysis/program/host_problem.h"

#include <algorithm>
#include <cmath>

namespace headrace::analysis {
namespace {

// What a batch takes once the caches hold what they keep, and while they are filled.
struct BatchTimes {
  double warm_s = 0, fill_s = 0;          // at least
  double warm_cpu_s = 0, fill_cpu_s = 0;  // of all cores together

  void AtLeast(double warm, double fill) {
    warm_s = std::max(warm_s, warm);
    fill_s = std::max(fill_s, fill);
  }
};

// Whether each tier has room for what it is to keep, and there are no more caches than may be.
bool CachesFit(const HostProblem& problem, const HostSolution& solution) {
  std::vector<double> held(problem.tiers.size(), 0);
  size_t caches = 0;
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    held[problem.sites[k].tier] += solution.kept[k] * problem.sites[k].bytes;
    caches += solution.kept[k] > 0;
  }
  if (problem.one_cache && caches > 1) return false;
  for (size_t t = 0; t < problem.tiers.size(); ++t) {
    if (held[t] > problem.tiers[t].budget_bytes * (1 + kRound)) return false;
  }
  return true;
}

// The part of each stage's work that is left once the caches behind it are warm; absent where two
// caches keep what one stage makes.
std::optional<std::vector<double>> WorkLeft(const HostProblem& problem,
                                            const HostSolution& solution,
                                            const std::vector<std::vector<size_t>>& behind) {
  std::vector<double> left(problem.stages.size(), 1);
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    size_t on_path = 0;
    for (const size_t k : behind[s]) {
      left[s] -= solution.kept[k];
      on_path += solution.kept[k] > 0;
    }
    if (on_path > 1) return std::nullopt;
  }
  return left;
}

void AddStages(const HostProblem& problem, const HostSolution& solution,
               const std::vector<double>& left, BatchTimes* times) {
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    const HostStage& stage = problem.stages[s];
    double warm = stage.service_s * left[s], fill = stage.service_s;
    times->warm_cpu_s += stage.cpu_s * left[s];
    times->fill_cpu_s += stage.cpu_s;
    for (size_t k = 0; k < problem.sites.size(); ++k) {
      const CacheSite& site = problem.sites[k];
      if (site.stage != s) continue;
      warm += site.read_s * solution.kept[k];
      fill += site.write_s * solution.kept[k];
      if (!site.cpu) continue;
      times->warm_cpu_s += site.read_s * solution.kept[k];
      times->fill_cpu_s += site.write_s * solution.kept[k];
    }
    const double workers = solution.stages[s].workers;
    times->AtLeast(warm / workers, fill / workers);
  }
}

void AddCapacities(const HostProblem& problem, const std::vector<double>& left, BatchTimes* times) {
  for (const Capacity& capacity : problem.capacities) {
    double warm = capacity.other_s, fill = capacity.other_s;
    for (size_t s = 0; s < problem.stages.size(); ++s) {
      warm += capacity.stage_s[s] * left[s];
      fill += capacity.stage_s[s];
    }
    times->AtLeast(warm / capacity.servers, fill / capacity.servers);
  }
}

// The time of the tiers' devices.
void AddTiers(const HostProblem& problem, const HostSolution& solution, BatchTimes* times) {
  for (size_t t = 0; t < problem.tiers.size(); ++t) {
    double warm = 0, fill = 0;
    for (size_t k = 0; k < problem.sites.size(); ++k) {
      if (problem.sites[k].tier != t) continue;
      warm += problem.sites[k].tier_read_s * solution.kept[k];
      fill += problem.sites[k].tier_write_s * solution.kept[k];
    }
    times->AtLeast(warm, fill);
  }
}

}  // namespace

std::vector<std::vector<size_t>> SitesBehind(const HostProblem& problem) {
  std::vector<std::vector<size_t>> behind(problem.stages.size());
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    for (std::optional<size_t> at = s; at; at = problem.stages[*at].output) {
      for (size_t k = 0; k < problem.sites.size(); ++k) {
        if (problem.sites[k].stage == *at) behind[s].push_back(k);
      }
    }
  }
  return behind;
}

double MostKept(const HostProblem& problem, size_t site) {
  const CacheSite& at = problem.sites[site];
  if (at.bytes <= 0) return 1;
  return std::min(1.0, problem.tiers[at.tier].budget_bytes / at.bytes);
}

bool Counts(const HostProblem& problem, CachePhase phase) {
  if (phase == kWarm) return problem.sites.empty() || problem.epochs != 1;
  return !problem.sites.empty() && problem.epochs > 0;
}

double WeightOf(const HostProblem& problem, CachePhase phase) {
  const bool counted = !problem.sites.empty() && problem.epochs > 0;
  if (!counted) return phase == kWarm ? 1 : 0;
  return phase == kFill ? 1 / problem.epochs : (problem.epochs - 1) / problem.epochs;
}

Range LoadRange(const HostProblem& problem, const std::vector<size_t>& behind, size_t s,
                CachePhase phase, const std::vector<double>* shares) {
  const HostStage& stage = problem.stages[s];
  if (shares != nullptr) {
    double load = stage.service_s;
    for (size_t k : behind) {
      const CacheSite& site = problem.sites[k];
      if (phase == kWarm) load -= stage.service_s * (*shares)[k];
      if (site.stage == s) load += (*shares)[k] * (phase == kWarm ? site.read_s : site.write_s);
    }
    return {load, load};
  }
  double least = stage.service_s, most = stage.service_s;
  for (size_t k : behind) {
    const CacheSite& site = problem.sites[k];
    const double kept = MostKept(problem, k);
    const double own = site.stage != s ? 0 : phase == kWarm ? site.read_s : site.write_s;
    const double load =
        (phase == kWarm ? stage.service_s * (1 - kept) : stage.service_s) + own * kept;
    least = std::min(least, load);
    most = std::max(most, load);
  }
  return {least, most};
}

double BytesBesideStages(const HostProblem& problem, const HostSolution& solution) {
  double bytes = problem.fixed_bytes;
  for (size_t i = 0; i < problem.sets.size(); ++i) {
    bytes += problem.sets[i].modes[solution.modes[i]].bytes;
  }
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    const CacheSite& site = problem.sites[k];
    if (problem.tiers[site.tier].memory) bytes += solution.kept[k] * site.bytes;
  }
  return bytes;
}

bool OwnQueue(const HostProblem& problem, const HostSolution& solution, size_t s) {
  const HostStage& stage = problem.stages[s];
  const std::vector<StageChoice>& list = stage.choices[stage.set ? solution.modes[*stage.set] : 0];
  return !list.empty() && list[0].queue == 0;
}

double BytesOf(const HostProblem& problem, const HostSolution& solution) {
  double bytes = BytesBesideStages(problem, solution);
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    bytes += solution.stages[s].bytes;
    if (OwnQueue(problem, solution, s)) {
      bytes += problem.stages[s].element_bytes * solution.stages[s].queue;
    }
  }
  return bytes;
}

bool Evaluate(const HostProblem& problem, HostSolution* solution) {
  if (!CachesFit(problem, *solution)) return false;
  const auto left = WorkLeft(problem, *solution, SitesBehind(problem));
  if (!left) return false;
  const double most_bytes = problem.memory_bytes * (1 + kRound) + kSolverBytes;
  if (BytesOf(problem, *solution) > most_bytes) return false;
  BatchTimes times{problem.least_s, problem.least_s, problem.other_cpu_s, problem.other_cpu_s};
  AddStages(problem, *solution, *left, &times);
  if (std::isfinite(problem.cores)) {
    times.AtLeast(times.warm_cpu_s / problem.cores, times.fill_cpu_s / problem.cores);
  }
  AddCapacities(problem, *left, &times);
  AddTiers(problem, *solution, &times);
  const bool cached = std::any_of(solution->kept.begin(), solution->kept.end(),
                                  [](double kept) { return kept > 0; });
  if (!cached) times.fill_s = times.warm_s;
  solution->batch_s = times.warm_s;
  solution->fill_s = times.fill_s;
  const double warm_weight = WeightOf(problem, kWarm), fill_weight = WeightOf(problem, kFill);
  solution->average_s = warm_weight * times.warm_s + fill_weight * times.fill_s;
  if (!problem.price_per_core_hour) {
    solution->cores = times.warm_s > 0 ? std::max(times.warm_cpu_s / times.warm_s,
                                                  times.fill_cpu_s / times.fill_s)
                                       : 0;
  }
  return true;
}

}  // namespace headrace::analysis
