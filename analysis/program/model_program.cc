#include "analysis/program/model_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "analysis/model/limits/bounds.h"
#include "analysis/model/limits/limit.h"
#include "analysis/model/queue_loss.h"
#include "analysis/program/search.h"
#include "analysis/run/known_loaders.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr int kMostChoices = 512;  // numbers of threads of a stage in the program

class Builder {
 public:
  Builder(const PipelineModel& model, const Budget& budget, const Settings& base,
          const MemoryBudget& memory)
      : model_(model), budget_(budget), base_(base), demands_(model.demands()) {
    problem_.memory_bytes = memory.limit_bytes();
    problem_.fixed_bytes = memory.base_bytes();
    problem_.headroom = kHeadroom;
    problem_.price_per_core_hour = budget.price_per_core_hour;
    problem_.watts_per_core = budget.watts_per_core;
    problem_.yielded =
        budget.price_per_core_hour || budget.watts_per_core ? kYieldedForPrice : 1e-7;
    problem_.cores = model.cores_known() ? base_.cores : std::numeric_limits<double>::infinity();
    problem_.least_s = demands_.consumer_s;
    if (budget.target) problem_.least_s = std::max(problem_.least_s, 1 / *budget.target);
  }

  ModelProgram Make() {
    AddCapacities();
    AddSets();
    AddStages();
    AddCaches();
    return {std::move(problem_), std::move(most_)};
  }

 private:
  void AddCapacities() {
    for (SharedLoad& load : SharedLoads(model_, demands_)) {
      problem_.capacities.push_back(
          {std::move(load.name), load.servers, load.other_s, std::move(load.stage_s)});
    }
  }

  // The reorder window, where the pipeline has one that holds it back.
  void AddSets() {
    const int now = base_.order_window;
    if (!model_.ordered() || now <= 0) return;
    ModeSet set{"pipeline.reorder_window", {{now, 0}}, 0};
    for (const int times : {2, 4, 8}) set.modes.push_back({now * times, 0});
    problem_.sets.push_back(std::move(set));
  }

  // Most threads that could be of use: those that reach the rate of all else with headroom.
  int Useful(size_t s, int most) const {
    double least_s = problem_.least_s;
    if (!budget_.cache) {
      if (std::isfinite(problem_.cores))
        least_s = std::max(least_s, demands_.cpu_s / problem_.cores);
      for (const Capacity& capacity : problem_.capacities) {
        double demand = capacity.other_s;
        for (const double stage_s : capacity.stage_s) demand += stage_s;
        least_s = std::max(least_s, demand / capacity.servers);
      }
    }
    if (least_s <= 0) return std::min(most, kMostChoices);
    // In order, threads wait: as many again.
    const double wanted =
        demands_.stage_s[s] / least_s * (1 + kHeadroom) * (model_.ordered() ? 2 : 1);
    return static_cast<int>(
        std::clamp(std::ceil(wanted) + 1, 1.0, std::min<double>(most, kMostChoices)));
  }

  std::vector<StageChoice> InAnyOrder(size_t s, int most) const {
    std::vector<StageChoice> list;
    for (int p = 1; p <= most; ++p) {
      list.push_back({p, 0, static_cast<double>(p), p * ElementBytes(model_, s)});
    }
    return list;
  }
  // With what waiting for the slowest leaves of the threads' rate, by simulation at some numbers of
  // threads and in between by their neighbours.
  std::vector<StageChoice> InOrder(size_t s, int most, int window) const {
    std::vector<int> counts;
    for (const int p : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
      if (p <= most) counts.push_back(p);
    }
    if (base_.parallelism[s] <= most) counts.push_back(base_.parallelism[s]);
    counts.push_back(most);
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    std::vector<StageChoice> list;
    for (const int p : counts) {
      for (const int queue : {base_.queue_capacity[s], kOrderedPlaces * p}) {
        if (queue < base_.queue_capacity[s]) continue;
        Settings settings = base_;
        settings.parallelism[s] = p;
        settings.queue_capacity[s] = queue;
        settings.order_window = window;
        list.push_back({p, queue, p * model_.OrderShare(s, settings),
                        ElementBytes(model_, s) * (static_cast<double>(p) + queue)});
        if (queue == kOrderedPlaces * p) break;
      }
    }
    return list;
  }

  // Of another program's loader: as many as the cores let work. PyTorch warns of more.
  int MostWorkers(size_t s, int most) const {
    const StageModel& stage = model_.stages()[s];
    if (FindKnownLoader(model_.run(), stage.name) == nullptr) return most;
    const double computes = demands_.stage_cpu_s[s] / std::max(demands_.stage_s[s], 1e-12);
    const double room = model_.cores_budget() / std::max(computes, 1e-3);
    return std::max(stage.parallelism, static_cast<int>(std::lround(std::min(room, 1e6))));
  }

  int MostThreads(size_t s) const {
    const StageModel& stage = model_.stages()[s];
    const int cap = std::max(8, static_cast<int>(std::min(4 * base_.cores, 1e6)));
    int most = budget_.max_threads > 0 ? budget_.max_threads : std::max(cap, stage.parallelism);
    if (stage.max_parallelism > 0) most = std::min(most, stage.max_parallelism);
    if (budget_.max_threads <= 0) most = std::min(most, MostWorkers(s, most));
    return std::max(1, most);
  }

  // The shortest queue behind a stage that memory may ask for.
  int LeastQueue(size_t s) const {
    const StageModel& stage = model_.stages()[s];
    const int now = base_.queue_capacity[s];
    if (now > kMostChoices) return now;
    const double next_cv = stage.output ? model_.stages()[*stage.output].cv : model_.consumer_cv();
    return std::min(now, SufficientCapacity(1, stage.cv, next_cv, kQueueLoss, 1, kMaxCapacity));
  }

  void AddChoices(size_t s, HostStage* host) const {
    const int useful = std::max(Useful(s, most_[s]), std::min(most_[s], host->threads_now));
    if (!model_.ordered()) {
      host->choices = {InAnyOrder(s, useful)};
    } else if (problem_.sets.empty()) {
      host->choices = {InOrder(s, useful, base_.order_window)};
    } else {
      host->set = 0;
      for (const Mode& mode : problem_.sets[0].modes) {
        host->choices.push_back(InOrder(s, useful, mode.value));
      }
    }
  }

  void AddStages() {
    problem_.other_cpu_s = demands_.cpu_s;
    for (size_t s = 0; s < model_.stages().size(); ++s) {
      const StageModel& stage = model_.stages()[s];
      most_.push_back(MostThreads(s));
      HostStage host;
      host.name = stage.name;
      host.service_s = std::max(0.0, demands_.stage_s[s]);
      host.cpu_s = std::clamp(demands_.stage_cpu_s[s], 0.0, host.service_s);
      problem_.other_cpu_s = std::max(0.0, problem_.other_cpu_s - host.cpu_s);
      host.output = stage.output;
      host.threads_now = base_.parallelism[s];
      host.queue_now = base_.queue_capacity[s];
      host.element_bytes = ElementBytes(model_, s);
      host.queue_least = LeastQueue(s);
      AddChoices(s, &host);
      problem_.stages.push_back(std::move(host));
    }
  }

  void AddCaches() {
    if (!budget_.cache) return;
    const CacheQuestion& question = *budget_.cache;
    problem_.epochs = question.epochs;
    problem_.one_cache = budget_.one_cache;
    for (const CacheTier& tier : question.tiers) {
      problem_.tiers.push_back({tier.name, tier.budget_bytes, tier.name == "memory"});
    }
    for (size_t s = 0; s < model_.stages().size(); ++s) {
      const StageModel& stage = model_.stages()[s];
      if (!question.allowed.empty() && !question.allowed[s]) continue;
      if (!stage.element_bytes || *stage.element_bytes <= 0 || !RandomBefore(model_, s).empty()) {
        continue;
      }
      const double batch_bytes = *stage.element_bytes * stage.elements;
      for (size_t t = 0; t < question.tiers.size(); ++t) {
        const CacheTier& tier = question.tiers[t];
        CacheSite site;
        site.stage = s;
        site.tier = t;
        site.bytes = batch_bytes * question.epoch_batches;
        site.read_s = batch_bytes / tier.read_bytes_per_second;
        site.write_s = batch_bytes / tier.write_bytes_per_second;
        site.cpu = tier.uses_cpu;
        if (tier.shared) {
          site.tier_read_s = site.read_s;
          site.tier_write_s = site.write_s;
        }
        problem_.sites.push_back(site);
      }
    }
  }

  const PipelineModel& model_;
  const Budget& budget_;
  const Settings& base_;
  const Demands& demands_;
  HostProblem problem_;
  std::vector<int> most_;
};

}  // namespace

ModelProgram ProgramOf(const PipelineModel& model, const Budget& budget, const Settings& base,
                       const MemoryBudget& memory) {
  return Builder(model, budget, base, memory).Make();
}

}  // namespace headrace::analysis
