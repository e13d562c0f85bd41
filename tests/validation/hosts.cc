#include "tests/validation/hosts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace headrace::validation {
namespace {

using analysis::CacheSite;
using analysis::HostProblem;
using analysis::HostStage;
using analysis::StageChoice;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool Reaches(const HostProblem& problem, size_t from, size_t to) {
  for (size_t at = from;; at = *problem.stages[at].output) {
    if (at == to) return true;
    if (!problem.stages[at].output) return false;
  }
}

// One way to run it, but for the shares.
struct Way {
  std::vector<size_t> modes;
  std::vector<StageChoice> stages;
  std::vector<size_t> sites;  // in use
};

double BytesOf(const HostProblem& problem, const Way& way) {
  double bytes = problem.fixed_bytes;
  for (size_t i = 0; i < way.modes.size(); ++i) {
    bytes += problem.sets[i].modes[way.modes[i]].bytes;
  }
  for (size_t s = 0; s < way.stages.size(); ++s) {
    bytes += way.stages[s].bytes;
    if (way.stages[s].queue == 0) {
      bytes += problem.stages[s].element_bytes * problem.stages[s].queue_least;
    }
  }
  return bytes;
}

// Average seconds a batch with these shares of the way's sites.
double SecondsOf(const HostProblem& problem, const Way& way, const std::vector<double>& shares) {
  double warm_s = problem.least_s, fill_s = problem.least_s;
  double warm_cpu = problem.other_cpu_s, fill_cpu = problem.other_cpu_s;
  std::vector<double> warm_shared, fill_shared;
  for (const analysis::Capacity& capacity : problem.capacities) {
    warm_shared.push_back(capacity.other_s);
    fill_shared.push_back(capacity.other_s);
  }
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    const HostStage& stage = problem.stages[s];
    double made = 1, warm_more = 0, fill_more = 0, warm_copy = 0, fill_copy = 0;
    for (size_t i = 0; i < way.sites.size(); ++i) {
      const CacheSite& site = problem.sites[way.sites[i]];
      if (Reaches(problem, s, site.stage)) made -= shares[i];
      if (site.stage != s) continue;
      warm_more += shares[i] * site.read_s;
      fill_more += shares[i] * site.write_s;
      warm_copy += site.cpu ? shares[i] * site.read_s : 0;
      fill_copy += site.cpu ? shares[i] * site.write_s : 0;
    }
    warm_s = std::max(warm_s, (made * stage.service_s + warm_more) / way.stages[s].workers);
    fill_s = std::max(fill_s, (stage.service_s + fill_more) / way.stages[s].workers);
    warm_cpu += made * stage.cpu_s + warm_copy;
    fill_cpu += stage.cpu_s + fill_copy;
    for (size_t r = 0; r < warm_shared.size(); ++r) {
      warm_shared[r] += made * problem.capacities[r].stage_s[s];
      fill_shared[r] += problem.capacities[r].stage_s[s];
    }
  }
  for (size_t r = 0; r < warm_shared.size(); ++r) {
    warm_s = std::max(warm_s, warm_shared[r] / problem.capacities[r].servers);
    fill_s = std::max(fill_s, fill_shared[r] / problem.capacities[r].servers);
  }
  warm_s = std::max(warm_s, warm_cpu / problem.cores);
  fill_s = std::max(fill_s, fill_cpu / problem.cores);
  for (size_t t = 0; t < problem.tiers.size(); ++t) {
    double reads = 0, writes = 0;
    for (size_t i = 0; i < way.sites.size(); ++i) {
      const CacheSite& site = problem.sites[way.sites[i]];
      if (site.tier != t) continue;
      reads += shares[i] * site.tier_read_s;
      writes += shares[i] * site.tier_write_s;
    }
    warm_s = std::max(warm_s, reads);
    fill_s = std::max(fill_s, writes);
  }
  if (way.sites.empty() || problem.epochs == 0) return warm_s;
  return (fill_s + (problem.epochs - 1) * warm_s) / problem.epochs;
}

double Ternary(double high, const std::function<double(double)>& value) {
  double low = 0;
  for (int i = 0; i < 60; ++i) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    const bool left = value(a) <= value(b);
    (left ? high : low) = left ? b : a;
  }
  return std::min(value(low), value(high));
}

// How much of site `i` can be kept beside the shares of those before it.
double MostOf(const HostProblem& problem, const Way& way, const std::vector<double>& shares,
              size_t i, double room_bytes) {
  const CacheSite& site = problem.sites[way.sites[i]];
  double budget = problem.tiers[site.tier].budget_bytes;
  for (size_t j = 0; j < i; ++j) {
    const CacheSite& other = problem.sites[way.sites[j]];
    if (other.tier == site.tier) budget -= shares[j] * other.bytes;
    if (problem.tiers[other.tier].memory) room_bytes -= shares[j] * other.bytes;
  }
  if (problem.tiers[site.tier].memory) budget = std::min(budget, room_bytes);
  return std::clamp(budget / site.bytes, 0.0, 1.0);
}

double LeastOverShares(const HostProblem& problem, const Way& way, std::vector<double>* shares,
                       double room_bytes) {
  if (shares->size() == way.sites.size()) return SecondsOf(problem, way, *shares);
  const size_t i = shares->size();
  const double most = MostOf(problem, way, *shares, i, room_bytes);
  return Ternary(most, [&](double share) {
    shares->push_back(share);
    const double least = LeastOverShares(problem, way, shares, room_bytes);
    shares->pop_back();
    return least;
  });
}

// All sets of sites of which no two are on one path.
std::vector<std::vector<size_t>> SiteSets(const HostProblem& problem) {
  std::vector<std::vector<size_t>> sets{{}};
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    const size_t before = sets.size();
    for (size_t i = 0; i < before; ++i) {
      bool apart = true;
      for (size_t other : sets[i]) {
        const size_t a = problem.sites[k].stage, b = problem.sites[other].stage;
        apart = apart && !problem.one_cache && !Reaches(problem, a, b) && !Reaches(problem, b, a);
      }
      if (!apart) continue;
      sets.push_back(sets[i]);
      sets.back().push_back(k);
    }
  }
  return sets;
}

void ForEachWay(const HostProblem& problem, Way* way, const std::function<void()>& use) {
  if (way->modes.size() < problem.sets.size()) {
    const size_t i = way->modes.size();
    for (size_t m = 0; m < problem.sets[i].modes.size(); ++m) {
      way->modes.push_back(m);
      ForEachWay(problem, way, use);
      way->modes.pop_back();
    }
    return;
  }
  if (way->stages.size() == problem.stages.size()) return use();
  const HostStage& stage = problem.stages[way->stages.size()];
  for (const StageChoice& choice : stage.choices[stage.set ? way->modes[*stage.set] : 0]) {
    way->stages.push_back(choice);
    ForEachWay(problem, way, use);
    way->stages.pop_back();
  }
}

std::vector<StageChoice> Threads(int most, double bytes) {
  std::vector<StageChoice> list;
  for (int p = 1; p <= most; ++p) list.push_back({p, 0, double(p), p * bytes});
  return list;
}

// Threads and queue lengths of an ordered stage: the less room, the more waiting.
std::vector<StageChoice> OrderedThreads(int most, int window, double bytes) {
  std::vector<StageChoice> list;
  for (int p = 1; p <= most; ++p) {
    for (const int queue : {2, 8}) {
      const double room = std::min(queue, window > 0 ? window : queue);
      list.push_back({p, queue, p == 1 ? 1 : p * (1 - 0.5 * p / (p + room)), (p + queue) * bytes});
    }
  }
  return list;
}

}  // namespace

HostProblem DrawHost(const HostSize& size, Dice* dice) {
  HostProblem problem;
  const bool ordered = dice->Chance(size.with_order);
  const bool branched = size.stages >= 3 && dice->Chance(size.branches);
  const bool copied = !ordered && dice->Chance(size.with_copies);
  double cpu_s = 0, least_bytes = 0, most_bytes = 0;
  if (ordered) problem.sets.push_back({"window", {{2, 0}, {4, 0}, {16, 0}}, 1});
  // The stages from here on have copies.
  const size_t first_copied = static_cast<size_t>(dice->Below(static_cast<int>(size.stages)));
  if (copied) {
    analysis::ModeSet copies{"copies", {}, 0};
    const double each = dice->Uniform(0, 2e6);
    for (int k = 1; k <= 3; ++k) copies.modes.push_back({k, k * each});
    problem.sets.push_back(copies);
  }
  for (size_t s = 0; s < size.stages; ++s) {
    HostStage stage;
    stage.name = "s" + std::to_string(s);
    stage.service_s = dice->Uniform(0.0002, 0.0102);
    stage.cpu_s = stage.service_s * (dice->Chance(0.4) ? 1 : dice->Uniform());
    cpu_s += stage.cpu_s;
    if (s + 1 < size.stages) stage.output = s + 1;
    if (branched && s == 0) stage.output = 2;
    stage.element_bytes = dice->Chance(0.3) ? 0 : dice->Uniform(0, 1e6);
    stage.queue_now = 1 + dice->Below(8);
    stage.queue_least = 1 + dice->Below(stage.queue_now);
    const bool sequential = dice->Chance(0.2);
    const int most = sequential ? 1 : 1 + dice->Below(size.threads);
    stage.threads_now = 1 + dice->Below(most);
    if (ordered) {
      stage.set = 0;
      for (const analysis::Mode& mode : problem.sets[0].modes) {
        stage.choices.push_back(OrderedThreads(most, mode.value, stage.element_bytes));
      }
      stage.queue_now = 2;
    } else if (copied && s >= first_copied) {
      stage.set = 0;
      for (const analysis::Mode& mode : problem.sets[0].modes) {
        std::vector<StageChoice>& list = stage.choices.emplace_back();
        for (int p = 1; p <= most; ++p) {
          const int all = p * mode.value, queue = stage.queue_now * mode.value;
          list.push_back({all, queue, double(all), (all + queue) * stage.element_bytes});
        }
      }
    } else {
      stage.choices = {Threads(most, stage.element_bytes)};
    }
    double least = kInfinite, wide = 0;
    for (const std::vector<StageChoice>& list : stage.choices) {
      for (const StageChoice& choice : list) {
        const double own = choice.queue == 0 ? stage.element_bytes * stage.queue_least : 0;
        least = std::min(least, choice.bytes + own);
        wide = std::max(wide, choice.bytes + own);
      }
    }
    least_bytes += least;
    most_bytes += wide;
    problem.stages.push_back(std::move(stage));
  }
  problem.other_cpu_s = 0.1 * cpu_s * dice->Uniform();
  problem.cores = 1 + dice->Below(8);
  problem.least_s = dice->Uniform(0.0002, 0.003);
  if (dice->Chance(0.5)) {
    analysis::Capacity lock{"lock", 1.0 + dice->Below(3), dice->Uniform(0, 0.0005), {}};
    for (const HostStage& stage : problem.stages) {
      lock.stage_s.push_back(dice->Chance(0.5) ? 0 : stage.service_s * dice->Uniform());
    }
    problem.capacities.push_back(lock);
  }
  problem.fixed_bytes = 1e6;
  double room = least_bytes + (most_bytes - least_bytes) * dice->Uniform(-0.05, 1.1);
  if (size.sites > 0) {
    const double epoch = std::exp(dice->Uniform(std::log(10), std::log(1000)));
    double most = 0;
    for (size_t k = 0; k < size.sites; ++k) {
      CacheSite site;
      site.stage = static_cast<size_t>(dice->Below(static_cast<int>(size.stages)));
      site.tier = static_cast<size_t>(dice->Below(2));
      const double batch_bytes = dice->Uniform(1e4, 2e6);
      site.bytes = batch_bytes * epoch;
      most = std::max(most, site.bytes);
      const double read_s = dice->Uniform(0, 0.006), write_s = dice->Uniform(0, 0.01);
      site.read_s = read_s;
      site.write_s = write_s;
      site.cpu = site.tier == 0;
      if (site.tier == 1) {
        site.tier_read_s = read_s * dice->Uniform();
        site.tier_write_s = write_s * dice->Uniform();
      }
      problem.sites.push_back(site);
    }
    problem.tiers = {{"memory", most * dice->Uniform(0.1, 1.5), true},
                     {"disk", most * dice->Uniform(0.3, 3), false}};
    const int kinds[] = {0, 1, 2, 3, 30};
    problem.epochs = kinds[dice->Below(5)];
    problem.one_cache = dice->Chance(0.3);
    if (dice->Chance(0.7)) room += most * dice->Uniform(0, 1.2);
  }
  problem.memory_bytes = dice->Chance(0.25) ? kInfinite : problem.fixed_bytes + room;
  problem.headroom = dice->Chance(0.5) ? 0.2 : 0;
  if (dice->Chance(0.3)) problem.price_per_core_hour = 0.05;
  if (dice->Chance(0.3)) problem.watts_per_core = 6;
  problem.yielded = problem.price_per_core_hour ? 0.01 : 1e-7;
  if (dice->Chance(0.5)) problem.cores -= dice->Uniform();  // other programs leave a part of a core
  return problem;
}

std::optional<double> LeastSeconds(const HostProblem& problem) {
  double best = kInfinite;
  const std::vector<std::vector<size_t>> sets = SiteSets(problem);
  Way way;
  ForEachWay(problem, &way, [&] {
    const double room = problem.memory_bytes - BytesOf(problem, way);
    if (room < -1e-9 * problem.memory_bytes) return;
    for (const std::vector<size_t>& sites : sets) {
      way.sites = sites;
      std::vector<double> shares;
      best = std::min(best, LeastOverShares(problem, way, &shares, room));
    }
    way.sites.clear();
  });
  if (!std::isfinite(best)) return std::nullopt;
  return best;
}

int ChangesOf(const HostProblem& problem, const analysis::HostSolution& solution) {
  int changes = 0;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    changes += solution.stages[s].threads != problem.stages[s].threads_now;
    changes += solution.stages[s].queue != problem.stages[s].queue_now;
  }
  for (size_t i = 0; i < problem.sets.size(); ++i) {
    changes += solution.modes[i] != problem.sets[i].now;
  }
  for (const double kept : solution.kept) changes += kept > 0;
  return changes;
}

std::optional<int> FewestChanges(const HostProblem& problem, double batch_s) {
  std::optional<int> fewest;
  Way way;
  ForEachWay(problem, &way, [&] {
    if (SecondsOf(problem, way, {}) > batch_s * (1 + 1e-7)) return;
    // Queues as they are where they fit, else the fewest shorter ones: by what each would save.
    double bytes = BytesOf(problem, way);
    std::vector<double> longer;
    int changes = 0;
    for (size_t s = 0; s < way.stages.size(); ++s) {
      const HostStage& stage = problem.stages[s];
      changes += way.stages[s].threads != stage.threads_now;
      if (way.stages[s].queue > 0) {
        changes += way.stages[s].queue != stage.queue_now;
      } else if (stage.queue_least < stage.queue_now) {
        longer.push_back(stage.element_bytes * (stage.queue_now - stage.queue_least));
      }
    }
    for (size_t i = 0; i < way.modes.size(); ++i) {
      changes += way.modes[i] != problem.sets[i].now;
    }
    std::sort(longer.begin(), longer.end());
    if (bytes > problem.memory_bytes * (1 + 1e-9)) return;
    for (const double more : longer) {
      bytes += more;
      changes += bytes > problem.memory_bytes * (1 + 1e-9);
    }
    if (!fewest || changes < *fewest) fewest = changes;
  });
  return fewest;
}

}  // namespace headrace::validation
