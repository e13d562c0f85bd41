#include "analysis/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/prediction.h"
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
constexpr int kMostChoices = 512;    // numbers of threads of a stage in the program
constexpr double kQueueLoss = 0.05;  // that a queue may cost before the memory takes places of it
constexpr double kYielded = 0.01;    // of the rate, for a lower price or less power
constexpr int kOrderedPlaces = 4;    // of an ordered queue, for each thread that fills it

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

// Why a stage is to run on other than its present number of threads. `stage_s`: what one batch
// takes of it, with the planned caches.
std::string WhyThreads(const PipelineModel& model, double stage_s, int most, double rate, size_t s,
                       int planned, bool fits_now) {
  const int now = model.current().parallelism[s];
  if (planned < now) {
    if (now > most) return fmt::format("{} threads are the most it may have", most);
    return fits_now ? "fewer threads leave the cores to the stages that need them"
                    : "fewer threads fit the memory budget";
  }
  const std::string each = fmt::format("one {} does {}; {} wanted", now == 0 ? "worker" : "thread",
                                       FormatRate(stage_s > 0 ? 1 / stage_s : kInfinite, "batches"),
                                       FormatRate(rate, "batches"));
  if (now == 0) return "the consumer's thread loads and computes in turn; " + each;
  if (model.cores_contended()) {
    return each + "; other programs use the cores, too, and each thread takes a share of its own";
  }
  if (planned <= std::ceil(stage_s * rate * (1 + kHeadroom))) return each;
  return fmt::format("{}, and costs vary by {:.0f} %", each, 100 * model.stages()[s].cv);
}

bool WithinMost(const std::vector<int>& most, const Settings& settings) {
  for (size_t s = 0; s < most.size(); ++s) {
    if (settings.parallelism[s] > most[s]) return false;
  }
  return true;
}

// What the program does not know, found by predicting: which of its changes pay, what longer queues
// and a few threads more gain where costs vary. Every step must fit the memory.
class Search {
 public:
  Search(const PipelineModel& model, const Predictor& predictor, const std::vector<int>& most,
         std::vector<Scale> scales, std::function<bool(const Settings&)> fits, double target)
      : model_(model),
        predictor_(predictor),
        most_(most),
        scales_(std::move(scales)),
        demands_(Apply(model, model.demands(), scales_)),
        fits_(std::move(fits)),
        target_(target) {}

  const Settings& plan() const { return plan_; }
  double rate() const { return rate_; }

  void Begin(const Settings& settings) {
    plan_ = settings;
    rate_ = RateOf(settings);
  }

  // Takes back changes that gain next to nothing, as long as all of them together lose little.
  void Undo(const Settings& current) {
    const double needed = std::min(target_, rate_) * (1 - kWorthwhile / 2);
    for (auto member : {&Settings::parallelism, &Settings::queue_capacity}) {
      for (size_t s = 0; s < plan_.parallelism.size(); ++s) {
        Settings without = plan_;
        (without.*member)[s] = (current.*member)[s];
        if ((without.*member)[s] == (plan_.*member)[s]) continue;
        if (!fits_(without) || !WithinMost(most_, without)) continue;
        const double rate = RateOf(without);
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
      if (model_.stages()[s].on_consumer) continue;  // it has no queue yet
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
        const double rate = RateOf(step);
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

  double RateOf(const Settings& settings) const { return predictor_.Rate({settings, scales_}); }

  bool Try(const Settings& settings) {
    const double rate = RateOf(settings);
    if (rate < rate_ * (1 + kWorthwhile / 2)) return false;
    plan_ = settings;
    rate_ = rate;
    return true;
  }

  // By the diffusion formula at the planned loads; in order, threads wait for the slowest of them
  // unless there is room for what they did since.
  int Places(size_t s) const {
    const std::vector<StageModel>& stages = model_.stages();
    const auto capacity = [&](size_t i) {
      return plan_.parallelism[i] / std::max(demands_.stage_s[i], 1e-9);
    };
    const std::optional<size_t> next = stages[s].output;
    const double ours = capacity(s);
    const double theirs = next ? capacity(*next) : 1 / std::max(demands_.consumer_s, 1e-9);
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
      const double bound = plan_.parallelism[s] / std::max(demands_.stage_s[s], 1e-9);
      const int threads = plan_.parallelism[s];
      // A few more; twice as many, where costs vary so much that a few are all caught by slow
      // elements; half, where they take the cores from stages that need them more.
      for (const int other : {threads + std::max(1, threads / 4), 2 * threads, threads / 2}) {
        Settings step = plan_;
        step.parallelism[s] = std::clamp(other, 1, std::max(threads, most_[s]));
        if (step.parallelism[s] != threads && fits_(step)) steps.emplace_back(bound, step);
      }
      const int most = std::max(model_.ordered() ? kOrderedPlaces * 2 * threads : 0, kMaxCapacity);
      Settings deeper = plan_;
      if (model_.stages()[s].on_consumer) continue;
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
      wider.parallelism[s] = std::min(std::max(most_[s], plan_.parallelism[s]),
                                      plan_.parallelism[s] + std::max(1, plan_.parallelism[s] / 4));
      if (plan_.queue_capacity[s] < kMaxCapacity && !model_.stages()[s].on_consumer) {
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
  const std::vector<int>& most_;
  std::vector<Scale> scales_;
  Demands demands_;
  std::function<bool(const Settings&)> fits_;
  double target_;
  Settings plan_;
  double rate_ = 0;
};

// The program of a model within a budget.
class Host {
 public:
  Host(const PipelineModel& model, const Budget& budget, Settings base, double base_bytes,
       double limit_bytes)
      : model_(model), budget_(budget), base_(std::move(base)), demands_(model.demands()) {
    problem_.memory_bytes = limit_bytes;
    problem_.fixed_bytes = base_bytes;
    problem_.headroom = kHeadroom;
    problem_.price_per_core_hour = budget.price_per_core_hour;
    problem_.watts_per_core = budget.watts_per_core;
    problem_.yielded = budget.price_per_core_hour || budget.watts_per_core ? kYielded : 1e-7;
    problem_.cores = model.cores_known() ? base_.cores : kInfinite;
    problem_.least_s = demands_.consumer_s;
    if (budget.target) problem_.least_s = std::max(problem_.least_s, 1 / *budget.target);
    AddCapacities();
    AddSets();
    AddStages();
    AddCaches();
  }

  HostProblem& problem() { return problem_; }
  const std::vector<int>& most() const { return most_; }

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

  void AddStages() {
    problem_.other_cpu_s = demands_.cpu_s;
    const int cap = std::max(8, static_cast<int>(std::min(4 * base_.cores, 1e6)));
    for (size_t s = 0; s < model_.stages().size(); ++s) {
      const StageModel& stage = model_.stages()[s];
      int most = budget_.max_threads > 0 ? budget_.max_threads : std::max(cap, stage.parallelism);
      if (stage.max_parallelism > 0) most = std::min(most, stage.max_parallelism);
      most_.push_back(std::max(1, most));
      HostStage host;
      host.name = stage.name;
      host.service_s = std::max(0.0, demands_.stage_s[s]);
      host.cpu_s = std::clamp(demands_.stage_cpu_s[s], 0.0, host.service_s);
      problem_.other_cpu_s = std::max(0.0, problem_.other_cpu_s - host.cpu_s);
      host.output = stage.output;
      host.threads_now = base_.parallelism[s];
      host.queue_now = base_.queue_capacity[s];
      host.element_bytes = ElementBytes(model_, s);
      const double next_cv =
          stage.output ? model_.stages()[*stage.output].cv : model_.consumer_cv();
      host.queue_least =
          host.queue_now > kMostChoices
              ? host.queue_now
              : std::min(host.queue_now,
                         SufficientCapacity(1, stage.cv, next_cv, kQueueLoss, 1, kMaxCapacity));
      const int useful = std::max(Useful(s, most_[s]), std::min(most_[s], host.threads_now));
      if (!model_.ordered()) {
        host.choices = {InAnyOrder(s, useful)};
      } else if (problem_.sets.empty()) {
        host.choices = {InOrder(s, useful, base_.order_window)};
      } else {
        host.set = 0;
        for (const Mode& mode : problem_.sets[0].modes) {
          host.choices.push_back(InOrder(s, useful, mode.value));
        }
      }
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
  Settings base_;
  const Demands& demands_;
  HostProblem problem_;
  std::vector<int> most_;
};

// A plan as predicted: the program's settings, searched further.
struct Candidate {
  HostSolution solution;
  HostReport report;
  std::vector<PlannedCache> caches;
  Settings settings;
  std::vector<Scale> warm, fill;
  double rate = 0, fill_rate = 0;
  double average_s = 0;  // what is compared
};

// PlannedCache::most_bytes: what is left of a tier and of the memory, in equal parts.
void GiveRoom(const CacheQuestion& question, double memory_left,
              std::vector<PlannedCache>* caches) {
  std::vector<double> left;
  for (const CacheTier& tier : question.tiers) left.push_back(tier.budget_bytes);
  double in_memory = 0;
  std::vector<double> in_tier(left.size(), 0);
  for (const PlannedCache& cache : *caches) {
    left[cache.tier] -= cache.bytes;
    ++in_tier[cache.tier];
    if (question.tiers[cache.tier].name == "memory") ++in_memory;
  }
  for (PlannedCache& cache : *caches) {
    double more = left[cache.tier] / in_tier[cache.tier];
    if (question.tiers[cache.tier].name == "memory") {
      more = std::min(more, memory_left / in_memory);
    }
    cache.most_bytes = cache.bytes + std::max(0.0, more);
  }
}

}  // namespace

Allocation Allocate(const PipelineModel& model, const Budget& budget) {
  const Demands& demands = model.demands();
  const size_t n = model.stages().size();
  Settings base = model.current();
  const bool same_cores = !budget.cores || std::abs(*budget.cores - base.cores) < 1e-9 ||
                          std::abs(*budget.cores - model.cores_budget()) < 1e-9;
  if (budget.cores) {
    if (!model.cores_known()) {
      throw Error(ExitCode::kInconclusive,
                  "the run recorded no CPU time or no number of cores, so that a budget of cores "
                  "says nothing",
                  "cores budget", "leave --cores out, or record at accounting level 2");
    }
    // What others use of the same cores was measured.
    base.cores = same_cores ? base.cores : *budget.cores;
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

  Host host(model, budget, base, base_bytes, limit_bytes);
  const std::vector<int>& most = host.most();
  const Settings& current = model.current();

  Allocation allocation;
  allocation.no_copies =
      "the pipeline has no knob for copies of a subgraph; a stage that may have threads has them";
  // The program's answer, searched by prediction.
  const auto candidate_of = [&](HostProblem problem) -> std::optional<Candidate> {
    Candidate candidate;
    std::optional<HostSolution> solution = SolveHost(problem, &candidate.report);
    if (!solution) {  // shorter queues than are good, where nothing else fits
      for (HostStage& stage : problem.stages) stage.queue_least = 1;
      solution = SolveHost(problem, &candidate.report);
    }
    if (!solution) return std::nullopt;
    constexpr double kFilled = 0.005;  // of the rate, for a cache as full as it may be
    if (!budget.price_per_core_hour && !budget.watts_per_core) {
      FillCaches(problem, kFilled, &*solution);
    }
    candidate.solution = *solution;
    double cache_bytes = 0;
    for (size_t k = 0; k < problem.sites.size(); ++k) {
      const double share = solution->kept[k];
      if (share <= 0) continue;
      const CacheSite& site = problem.sites[k];
      const CacheTier& tier = budget.cache->tiers[site.tier];
      candidate.caches.push_back({site.stage, site.tier, share, share * site.bytes, 0});
      if (problem.tiers[site.tier].memory) cache_bytes += share * site.bytes;
      for (const bool reading : {true, false}) {
        const double each_s = share * (reading ? site.read_s : site.write_s);
        const std::vector<Scale> scales =
            CacheScales(model, site.stage, reading ? 1 - share : 1, each_s, tier, site.tier);
        std::vector<Scale>& all = reading ? candidate.warm : candidate.fill;
        all.insert(all.end(), scales.begin(), scales.end());
      }
    }
    Settings start = base;
    for (size_t s = 0; s < n; ++s) {
      start.parallelism[s] = solution->stages[s].threads;
      start.queue_capacity[s] = solution->stages[s].queue;
    }
    if (!problem.sets.empty()) {
      start.order_window = problem.sets[0].modes[solution->modes[0]].value;
    }
    const auto fits = [&, cache_bytes](const Settings& settings) {
      return base_bytes + cache_bytes + QueueMemory(model, settings).value_or(0) <= limit_bytes;
    };
    Search search(model, predictor, most, candidate.warm, fits, budget.target.value_or(kInfinite));
    search.Begin(start);
    search.Undo(current);
    search.Deepen();
    search.Climb();
    search.Undo(current);
    candidate.settings = search.plan();
    candidate.rate = candidate.fill_rate = search.rate();
    // A plan that gains nothing worth a change changes nothing.
    if (candidate.caches.empty() && same_cores &&
        candidate.rate < demands.rate * (1 + kWorthwhile) && fits(current) &&
        WithinMost(most, current)) {
      candidate.settings = current;
      candidate.rate = candidate.fill_rate = demands.rate;
    }
    candidate.average_s = 1 / candidate.rate;
    if (candidate.caches.empty()) return candidate;
    const CacheQuestion& question = *budget.cache;
    // The first epoch does all the work.
    candidate.fill_rate = std::min(predictor.Rate({candidate.settings, candidate.fill}),
                                   predictor.Rate({candidate.settings, {}}));
    if (question.epochs > 0) {
      candidate.average_s =
          (1 / candidate.fill_rate + (question.epochs - 1) / candidate.rate) / question.epochs;
    }
    return candidate;
  };
  std::optional<Candidate> chosen = candidate_of(host.problem());
  if (!chosen) {
    throw Error(ExitCode::kInconclusive, "no settings satisfy all budgets", "plan",
                "loosen --memory or --cores");
  }
  // The same without a cache, which is to be preferred where it is as good by prediction.
  if (!chosen->caches.empty()) {
    HostProblem without = host.problem();
    without.sites.clear();
    std::optional<Candidate> plain = candidate_of(std::move(without));
    if (plain && plain->average_s * (1 - kWorthACache) <= chosen->average_s) chosen = plain;
  }
  allocation.program = chosen->report;
  allocation.solution = chosen->solution;
  if (!chosen->caches.empty()) {
    double used = base_bytes + QueueMemory(model, chosen->settings).value_or(0);
    for (const PlannedCache& cache : chosen->caches) {
      if (budget.cache->tiers[cache.tier].name == "memory") used += cache.bytes;
    }
    GiveRoom(*budget.cache, limit_bytes - used, &chosen->caches);
  }
  allocation.caches = chosen->caches;
  allocation.scales = chosen->warm;
  allocation.cores_used = chosen->solution.cores;
  allocation.watts = chosen->solution.watts;
  const Settings plan = chosen->settings;
  const double rate = chosen->rate;
  const std::vector<Scale>& warm = chosen->warm;
  const Demands planned_demands = Apply(model, demands, warm);
  const auto fits = [&](const Settings& settings) {
    return base_bytes + QueueMemory(model, settings).value_or(0) <= limit_bytes;
  };
  if (budget.cache && budget.cache->epochs > 0) {
    const double batches = budget.cache->epochs * budget.cache->epoch_batches;
    allocation.now_total_s = batches / demands.rate;
    allocation.total_s = batches * chosen->average_s;
  }

  allocation.settings = plan;
  allocation.now = demands.rate;
  allocation.rows_per_batch = demands.rows;
  const auto gain_over = [&](const Settings& without) {
    return rate / predictor.Rate({without, warm}) - 1;
  };
  const auto with_without = [&](auto member, size_t s) {
    Change& change = allocation.changes.back();
    Settings without = plan;
    (without.*member)[s] = (current.*member)[s];
    change.gain = gain_over(without);
    if (model.stages()[s].element_bytes) {
      change.memory_bytes = ElementBytes(model, s) * (change.to - change.from);
    }
  };
  for (size_t s = 0; s < n; ++s) {
    const StageModel& stage = model.stages()[s];
    if (plan.parallelism[s] != current.parallelism[s]) {
      allocation.changes.push_back({stage.name + ".parallelism",
                                    current.parallelism[s],
                                    plan.parallelism[s],
                                    WhyThreads(model, planned_demands.stage_s[s], most[s], rate, s,
                                               plan.parallelism[s], fits(current)),
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
  if (plan.order_window != current.order_window) {
    allocation.changes.push_back({"pipeline.reorder_window",
                                  current.order_window,
                                  plan.order_window,
                                  "threads wait for the slowest of them unless others may go ahead",
                                  0,
                                  {}});
    Settings without = plan;
    without.order_window = current.order_window;
    allocation.changes.back().gain = gain_over(without);
  }
  Settings predicted = plan;
  if (same_cores) predicted.cores = current.cores;
  const Prediction prediction = predictor.Predict({predicted, warm});
  if (!chosen->caches.empty()) allocation.predicted_fill = chosen->fill_rate;
  const bool changes = predicted != current || !warm.empty();
  allocation.predicted = prediction.rate;
  allocation.predicted_interval = prediction.interval;
  // A 90 % interval reaches 1.645 deviations down, the 10th percentile is at 1.2816.
  const double deviation =
      std::log(prediction.rate / std::max(prediction.interval.low, 1e-12)) / 1.645;
  allocation.promise = prediction.rate * std::exp(-1.2816 * deviation);
  const double gained = std::log(prediction.rate / demands.rate);
  if (changes && deviation > 0) {
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
    throw Error(ExitCode::kInconclusive,
                fmt::format("no plan reaches {}: the most is {}, {} short, limited by {}",
                            FormatRate(*budget.target, "batches"),
                            FormatRate(allocation.predicted, "batches"),
                            FormatPercent(1 - allocation.predicted / *budget.target),
                            Describe(allocation.limited_by)),
                "target", "lower --target, or make that part cheaper");
  }
  return allocation;
}

}  // namespace headrace::analysis
