#include "analysis/program/host_choices.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace headrace::analysis {
namespace {

// Those that no other does as well with less memory; by workers.
std::vector<StageChoice> Frontier(std::vector<StageChoice> choices, bool memory_matters) {
  std::stable_sort(choices.begin(), choices.end(), [](const StageChoice& a, const StageChoice& b) {
    if (a.workers != b.workers) return a.workers > b.workers;
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.threads < b.threads;
  });
  std::vector<StageChoice> kept;
  for (const StageChoice& choice : choices) {
    if (kept.empty() || (memory_matters && choice.bytes < kept.back().bytes))
      kept.push_back(choice);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

double QueueBytes(const HostStage& stage, const StageChoice& choice, int queue) {
  return choice.queue > 0 ? 0 : stage.element_bytes * queue;
}

// A solution for given shares: the stage that limits is widened while memory is left. For stages
// whose choices are ordered by memory it is the best there is at these shares and the present
// modes.
std::optional<HostSolution> Widened(const HostProblem& problem, const Lists& frontiers,
                                    std::vector<double> kept) {
  HostSolution solution;
  solution.kept = std::move(kept);
  for (const ModeSet& set : problem.sets) solution.modes.push_back(set.now);
  const auto list_of = [&](size_t s) -> const std::vector<StageChoice>& {
    const std::optional<size_t>& set = problem.stages[s].set;
    return frontiers[s][set ? problem.sets[*set].now : 0];
  };
  double bytes = BytesBesideStages(problem, solution);
  std::vector<double> load(problem.stages.size());
  std::vector<size_t> at(problem.stages.size(), 0);
  const CachePhase by = WeightOf(problem, kWarm) > 0 ? kWarm : kFill;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    const HostStage& stage = problem.stages[s];
    if (list_of(s).empty()) return std::nullopt;
    double share = 0, own = 0;
    for (std::optional<size_t> next = s; next; next = problem.stages[*next].output) {
      for (size_t k = 0; k < problem.sites.size(); ++k) {
        if (problem.sites[k].stage != *next) continue;
        share += solution.kept[k];
        if (*next == s) {
          own +=
              solution.kept[k] * (by == kWarm ? problem.sites[k].read_s : problem.sites[k].write_s);
        }
      }
    }
    load[s] = stage.service_s * (by == kWarm ? 1 - share : 1) + own;
    solution.stages.push_back(list_of(s)[0]);
    bytes += solution.stages[s].bytes;
    bytes += QueueBytes(stage, solution.stages[s], stage.queue_least);
  }
  const double most_bytes = problem.memory_bytes * (1 + kRound);
  if (bytes > most_bytes) return std::nullopt;
  std::priority_queue<std::pair<double, size_t>> slowest;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    slowest.push({load[s] / solution.stages[s].workers, s});
  }
  while (!slowest.empty()) {
    const size_t s = slowest.top().second;
    slowest.pop();
    if (at[s] + 1 >= list_of(s).size()) break;
    const StageChoice& wider = list_of(s)[at[s] + 1];
    const double more = wider.bytes - solution.stages[s].bytes;
    if (bytes + more > most_bytes) break;
    bytes += more;
    ++at[s];
    solution.stages[s] = wider;
    slowest.push({load[s] / wider.workers, s});
  }
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    if (solution.stages[s].queue == 0) solution.stages[s].queue = problem.stages[s].queue_least;
  }
  if (!Evaluate(problem, &solution)) return std::nullopt;
  return solution;
}

}  // namespace

Lists AllChoices(const HostProblem& problem) {
  Lists lists;
  for (const HostStage& stage : problem.stages) {
    lists.push_back(stage.choices);
    for (std::vector<StageChoice>& list : lists.back()) {
      std::stable_sort(list.begin(), list.end(), [](const StageChoice& a, const StageChoice& b) {
        return a.workers != b.workers ? a.workers < b.workers : a.threads < b.threads;
      });
    }
  }
  return lists;
}

bool MemoryMatters(const HostProblem& problem) {
  if (!std::isfinite(problem.memory_bytes)) return false;
  double bytes = problem.fixed_bytes;
  for (const HostStage& stage : problem.stages) {
    double most = 0;
    bool own = false;
    for (const std::vector<StageChoice>& list : stage.choices) {
      for (const StageChoice& choice : list) {
        most = std::max(most, choice.bytes);
        own = own || choice.queue == 0;
      }
    }
    bytes += most + (own ? stage.element_bytes * stage.queue_now : 0);
  }
  for (const ModeSet& set : problem.sets) {
    double most = 0;
    for (const Mode& mode : set.modes) most = std::max(most, mode.bytes);
    bytes += most;
  }
  for (const HostTier& tier : problem.tiers) bytes += tier.memory ? tier.budget_bytes : 0;
  return bytes > problem.memory_bytes;
}

std::optional<HostSolution> FirstSolution(const HostProblem& problem, const Lists& frontiers) {
  std::optional<HostSolution> best;
  for (size_t k = 0; k <= problem.sites.size(); ++k) {
    std::vector<double> kept(problem.sites.size(), 0);
    if (k < problem.sites.size()) kept[k] = MostKept(problem, k);
    std::optional<HostSolution> found = Widened(problem, frontiers, std::move(kept));
    if (found && (!best || found->average_s < best->average_s)) best = std::move(found);
  }
  return best;
}

Lists Frontiers(const HostProblem& problem, bool memory_matters) {
  Lists frontiers;
  for (const HostStage& stage : problem.stages) {
    auto& lists = frontiers.emplace_back();
    for (const std::vector<StageChoice>& list : stage.choices) {
      lists.push_back(Frontier(list, memory_matters));
    }
  }
  return frontiers;
}

Lists Pruned(const HostProblem& problem, const Lists& frontiers, const HostSolution& known) {
  const std::vector<std::vector<size_t>> behind = SitesBehind(problem);
  Lists lists = frontiers;
  const double slow = known.average_s * (1 + kRound);
  for (size_t s = 0; s < lists.size(); ++s) {
    const Range warm = LoadRange(problem, behind[s], s, kWarm);
    const Range fill = LoadRange(problem, behind[s], s, kFill);
    for (std::vector<StageChoice>& list : lists[s]) {
      const auto least_s = [&](const StageChoice& choice) {
        return (WeightOf(problem, kWarm) * warm.least + WeightOf(problem, kFill) * fill.least) /
               choice.workers;
      };
      std::erase_if(list, [&](const StageChoice& choice) { return least_s(choice) > slow; });
      const double most = std::max(warm.most, Counts(problem, kFill) ? fill.most : 0);
      size_t useful = 0;
      while (useful < list.size() && most / list[useful].workers > problem.least_s) ++useful;
      if (useful + 1 < list.size()) list.resize(useful + 1);
    }
  }
  return lists;
}

Lists Reaching(const HostProblem& problem, double batch_s, double fill_s, bool memory_matters,
               const std::vector<double>* shares) {
  const std::vector<std::vector<size_t>> behind = SitesBehind(problem);
  Lists lists = AllChoices(problem);
  for (size_t s = 0; s < lists.size(); ++s) {
    double least = 0, most = 0;
    for (const CachePhase phase : {kWarm, kFill}) {
      if (!Counts(problem, phase)) continue;
      const double time = phase == kWarm ? batch_s : fill_s;
      const Range range = LoadRange(problem, behind[s], s, phase, shares);
      least = std::max(least, range.least / time);
      most = std::max(most, range.most / time);
    }
    const bool fixed = most <= least;
    const double roomy = most * (1 + problem.headroom);
    for (std::vector<StageChoice>& list : lists[s]) {
      std::vector<StageChoice> kept;
      bool enough = false;
      for (const StageChoice& choice : list) {
        if (choice.workers < least * (1 - 1e-6)) continue;
        const bool now = choice.threads == problem.stages[s].threads_now;
        const bool wide = choice.workers >= roomy;
        // Where memory is no matter, one between the least and the roomy is never the answer, but
        // with a load that a cache may take away each may be. Of those with a queue of their own a
        // wider one may take less memory, or change less.
        const bool between = !wide && (memory_matters || !fixed);
        if (now || between || (wide && !enough) || choice.queue > 0) kept.push_back(choice);
        enough = enough || wide;
      }
      if (kept.empty() && !list.empty() && list.back().workers >= least * (1 - 1e-6)) {
        kept.push_back(list.back());
      }
      // The widest, where none has all the headroom.
      if (!enough && !kept.empty() && kept.back().workers < list.back().workers) {
        kept.push_back(list.back());
      }
      list = std::move(kept);
    }
  }
  return lists;
}

}  // namespace headrace::analysis
