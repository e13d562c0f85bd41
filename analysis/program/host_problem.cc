#include "analysis/program/host_problem.h"

#include <algorithm>
#include <cmath>

namespace headrace::analysis {

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
  const std::vector<std::vector<size_t>> behind = SitesBehind(problem);
  std::vector<double> held(problem.tiers.size(), 0);
  size_t caches = 0;
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    const CacheSite& site = problem.sites[k];
    held[site.tier] += solution->kept[k] * site.bytes;
    caches += solution->kept[k] > 0;
  }
  if (problem.one_cache && caches > 1) return false;
  for (size_t t = 0; t < problem.tiers.size(); ++t) {
    if (held[t] > problem.tiers[t].budget_bytes * (1 + kRound)) return false;
  }
  double batch_s = problem.least_s, fill_s = problem.least_s;
  double cpu_s = problem.other_cpu_s, fill_cpu_s = problem.other_cpu_s;
  std::vector<double> left(problem.stages.size(), 1);  // of each stage's work, when warm
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    const HostStage& stage = problem.stages[s];
    const StageChoice& choice = solution->stages[s];
    double load = stage.service_s, fill = stage.service_s;
    size_t on_path = 0;
    for (size_t k : behind[s]) {
      left[s] -= solution->kept[k];
      on_path += solution->kept[k] > 0;
    }
    if (on_path > 1) return false;
    load *= left[s];
    cpu_s += stage.cpu_s * left[s];
    fill_cpu_s += stage.cpu_s;
    for (size_t k : behind[s]) {
      const CacheSite& site = problem.sites[k];
      if (site.stage != s) continue;
      load += site.read_s * solution->kept[k];
      fill += site.write_s * solution->kept[k];
      if (site.cpu) {
        cpu_s += site.read_s * solution->kept[k];
        fill_cpu_s += site.write_s * solution->kept[k];
      }
    }
    batch_s = std::max(batch_s, load / choice.workers);
    fill_s = std::max(fill_s, fill / choice.workers);
  }
  const double most_bytes = problem.memory_bytes * (1 + kRound) + kSolverBytes;
  if (BytesOf(problem, *solution) > most_bytes) return false;
  if (std::isfinite(problem.cores)) {
    batch_s = std::max(batch_s, cpu_s / problem.cores);
    fill_s = std::max(fill_s, fill_cpu_s / problem.cores);
  }
  for (const Capacity& capacity : problem.capacities) {
    double warm = capacity.other_s, fill = capacity.other_s;
    for (size_t s = 0; s < problem.stages.size(); ++s) {
      warm += capacity.stage_s[s] * left[s];
      fill += capacity.stage_s[s];
    }
    batch_s = std::max(batch_s, warm / capacity.servers);
    fill_s = std::max(fill_s, fill / capacity.servers);
  }
  for (size_t t = 0; t < problem.tiers.size(); ++t) {
    double warm = 0, fill = 0;
    for (size_t k = 0; k < problem.sites.size(); ++k) {
      if (problem.sites[k].tier != t) continue;
      warm += problem.sites[k].tier_read_s * solution->kept[k];
      fill += problem.sites[k].tier_write_s * solution->kept[k];
    }
    batch_s = std::max(batch_s, warm);
    fill_s = std::max(fill_s, fill);
  }
  if (caches == 0) fill_s = batch_s;
  solution->batch_s = batch_s;
  solution->fill_s = fill_s;
  const double warm_weight = WeightOf(problem, kWarm), fill_weight = WeightOf(problem, kFill);
  solution->average_s = warm_weight * batch_s + fill_weight * fill_s;
  if (!problem.price_per_core_hour) {
    solution->cores = batch_s > 0 ? std::max(cpu_s / batch_s, fill_cpu_s / fill_s) : 0;
  }
  return true;
}

}  // namespace headrace::analysis
