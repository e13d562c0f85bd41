#include "analysis/host_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "analysis/max_min.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kSolverSeconds = 10;
constexpr double kFine = 1e4;            // rates are told apart to 1e-9
constexpr double kChangesSeconds = 0.5;  // of the last objective, which no rate depends on
constexpr double kRound = 1e-9;          // of memory and rates that are equal but for rounding
constexpr double kSolver = 1e-6;         // of what the solver takes as equal
constexpr double kLoose = 1e-4;          // of cores and watts that were reached before
constexpr double kEqual = 4e-7;          // of a rate that was reached before

// What the last objective counts: a knob that changes, a thread of headroom that is missing.
// Threads hardly count: none of the choices is wider than is of use. An answer within half a change
// of the least has no change too many.
constexpr double kChange = 100, kMissing = 1000, kThread = 0.001, kContent = 50;

using Terms = std::vector<std::pair<size_t, double>>;

struct Sum {
  double constant = 0;
  Terms terms;
};

enum Phase { kWarm, kFill };

// Which sites lie at or behind each stage, on its way to the consumer.
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

bool Counts(const HostProblem& problem, Phase phase) {
  if (phase == kWarm) return problem.sites.empty() || problem.epochs != 1;
  return !problem.sites.empty() && problem.epochs > 0;
}

// Weight of a phase's T in what is least.
double WeightOf(const HostProblem& problem, Phase phase) {
  const bool counted = !problem.sites.empty() && problem.epochs > 0;
  if (!counted) return phase == kWarm ? 1 : 0;
  return phase == kFill ? 1 / problem.epochs : (problem.epochs - 1) / problem.epochs;
}

// The least and the most that one phase may ask of a stage.
struct Range {
  double least = 0, most = 0;
};
// With `shares` given that is one value.
Range LoadRange(const HostProblem& problem, const std::vector<size_t>& behind, size_t s,
                Phase phase, const std::vector<double>* shares = nullptr) {
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

using Lists = std::vector<std::vector<std::vector<StageChoice>>>;  // by stage, by mode

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

double QueueBytes(const HostStage& stage, const StageChoice& choice, int queue) {
  return choice.queue > 0 ? 0 : stage.element_bytes * queue;
}

// Whether the queue's length is no part of the stage's choice.
bool OwnQueue(const HostProblem& problem, const HostSolution& solution, size_t s) {
  const HostStage& stage = problem.stages[s];
  const std::vector<StageChoice>& list = stage.choices[stage.set ? solution.modes[*stage.set] : 0];
  return !list.empty() && list[0].queue == 0;
}

double BytesOf(const HostProblem& problem, const HostSolution& solution) {
  double bytes = problem.fixed_bytes;
  for (size_t i = 0; i < problem.sets.size(); ++i) {
    bytes += problem.sets[i].modes[solution.modes[i]].bytes;
  }
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    const CacheSite& site = problem.sites[k];
    if (problem.tiers[site.tier].memory) bytes += solution.kept[k] * site.bytes;
  }
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    bytes += solution.stages[s].bytes;
    if (OwnQueue(problem, solution, s)) {
      bytes += problem.stages[s].element_bytes * solution.stages[s].queue;
    }
  }
  return bytes;
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
  double bytes = problem.fixed_bytes;
  for (size_t i = 0; i < problem.sets.size(); ++i) {
    bytes += problem.sets[i].modes[solution.modes[i]].bytes;
  }
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    const CacheSite& site = problem.sites[k];
    if (problem.tiers[site.tier].memory) bytes += solution.kept[k] * site.bytes;
  }
  std::vector<double> load(problem.stages.size());
  std::vector<size_t> at(problem.stages.size(), 0);
  const Phase by = WeightOf(problem, kWarm) > 0 ? kWarm : kFill;
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
    if (bytes + more > problem.memory_bytes * (1 + kRound)) break;
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

// The best of no cache and of each one alone: what the program starts from.
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

// Columns and rows that all objectives have, and the sums that they are made of.
class Builder {
 public:
  // `shares`, if given, are not to be chosen any more; it must outlive the builder.
  Builder(const HostProblem& problem, Lists lists, double unit_s,
          const std::vector<double>* shares = nullptr)
      : problem_(problem),
        lists_(std::move(lists)),
        unit_s_(unit_s),
        shares_(shares),
        behind_(SitesBehind(problem)) {
    // CBC's preprocessing was seen to lose an optimum (program.h).
    program_.WithoutPreprocessing();
    AddSets();
    AddChoices();
    AddSites();
    AddMemory();
  }

  Program& program() { return program_; }
  const std::vector<size_t>& shares() const { return kept_; }
  const std::vector<size_t>& uses() const { return uses_; }

  // P1: both T as columns.
  void AddTimes() {
    for (const Phase phase : {kWarm, kFill}) {
      if (!Counts(problem_, phase)) continue;
      time_[phase] = program_.Column(phase == kWarm ? "T" : "T_fill", problem_.least_s / unit_s_,
                                     HUGE_VAL, false);
      for (size_t s = 0; s < problem_.stages.size(); ++s) AddStageTime(s, phase);
      AddShared(phase, Sum{0, {{*time_[phase], 1}}}, std::nullopt);
    }
  }
  Terms TimeTerms() const {
    Terms terms;
    for (const Phase phase : {kWarm, kFill}) {
      const double weight = WeightOf(problem_, phase);
      if (time_[phase] && weight > 0) terms.push_back({*time_[phase], weight});
    }
    return terms;
  }
  // P2 and later: T given; `cores` a column.
  void AddRates(double batch_s, double fill_s, size_t cores) {
    for (const Phase phase : {kWarm, kFill}) {
      if (!Counts(problem_, phase)) continue;
      const double given = (phase == kWarm ? batch_s : fill_s) / unit_s_;
      for (size_t s = 0; s < problem_.stages.size(); ++s) {
        Terms terms = Workers(s);
        for (auto& [column, value] : terms) value *= given;
        AtLeast(Name("stage", s, phase), std::move(terms), Load(s, phase));
      }
      AddShared(phase, Sum{given, {}}, cores);
    }
  }

  // Seconds of the stage's threads that one batch takes, in units.
  Sum Load(size_t s, Phase phase) const {
    const HostStage& stage = problem_.stages[s];
    Sum sum{stage.service_s / unit_s_, {}};
    for (size_t k : behind_[s]) {
      const CacheSite& site = problem_.sites[k];
      double value = phase == kWarm ? -stage.service_s : 0;
      if (site.stage == s) value += phase == kWarm ? site.read_s : site.write_s;
      if (value != 0) sum.terms.push_back({kept_[k], value / unit_s_});
    }
    return sum;
  }
  // Cores' seconds of one batch, in units.
  Sum CoresLoad(Phase phase) const {
    Sum sum{problem_.other_cpu_s / unit_s_, {}};
    std::vector<double> of(problem_.sites.size(), 0);
    for (size_t s = 0; s < problem_.stages.size(); ++s) {
      sum.constant += problem_.stages[s].cpu_s / unit_s_;
      for (size_t k : behind_[s]) {
        const CacheSite& site = problem_.sites[k];
        if (phase == kWarm) of[k] -= problem_.stages[s].cpu_s;
        if (site.stage == s && site.cpu) of[k] += phase == kWarm ? site.read_s : site.write_s;
      }
    }
    AddKept(of, &sum);
    return sum;
  }
  // What must be given up so that the memory suffices, as a row over what changes: without it the
  // solver would shorten a hundred queues by a hundredth each. `changed` are the columns that are 1
  // where the queue of a stage is shorter.
  void AddRelief(const std::vector<std::optional<size_t>>& changed) {
    if (!std::isfinite(problem_.memory_bytes)) return;
    struct Knob {
      double saves;
      Terms stays;  // 1 where it stays
    };
    std::vector<Knob> knobs;
    double bytes = problem_.fixed_bytes;
    for (const ModeSet& set : problem_.sets) {
      double least = kInfinite;
      for (const Mode& mode : set.modes) least = std::min(least, mode.bytes);
      bytes += least;
    }
    for (size_t k = 0; k < problem_.sites.size(); ++k) {
      if (shares_ == nullptr) return;
      const CacheSite& site = problem_.sites[k];
      if (problem_.tiers[site.tier].memory) bytes += (*shares_)[k] * site.bytes;
    }
    for (size_t s = 0; s < problem_.stages.size(); ++s) {
      const HostStage& stage = problem_.stages[s];
      double least = kInfinite;
      bool own = false;
      std::optional<size_t> now;
      for (const std::vector<StageChoice>& list : lists_[s]) {
        for (size_t o = 0; o < list.size(); ++o) {
          least = std::min(least, list[o].bytes);
          own = own || list[o].queue == 0;
          if (list[o].threads == stage.threads_now && list[o].queue == 0) now = o;
        }
      }
      bytes += (own ? stage.element_bytes * stage.queue_now : 0);
      if (changed[s]) {
        knobs.push_back(
            {stage.element_bytes * (stage.queue_now - stage.queue_least), {{*changed[s], -1}}});
      }
      if (stage.set || !now) {
        bytes += least;
        continue;
      }
      bytes += lists_[s][0][*now].bytes;
      Terms stays{{chosen_[s][0][*now], 1}};
      if (*now + 1 < lists_[s][0].size()) stays.push_back({chosen_[s][0][*now + 1], -1});
      // The first column is always 1, and so is this knob where there is nothing wider.
      knobs.push_back({lists_[s][0][*now].bytes - least, std::move(stays)});
    }
    const double needed = bytes - problem_.memory_bytes;
    if (needed <= kRound * problem_.memory_bytes) return;
    // sum over knobs of min(saves, needed) * changed >= needed; changed = 1 - stays, or a column.
    Terms terms;
    double least = 1;
    for (const Knob& knob : knobs) {
      const double share = std::min(knob.saves / needed, 1.0);
      if (share <= 0) continue;
      const bool column = knob.stays.size() == 1 && knob.stays[0].second < 0;
      if (!column) least -= share;
      for (const auto& [index, value] : knob.stays) terms.push_back({index, -value * share});
    }
    program_.Row("relief", std::move(terms), least * (1 - kRound) - kSolver, HUGE_VAL);
  }
  // Threads' worth of work of a stage.
  Terms Workers(size_t s) const {
    return OverChoices(s, [](const StageChoice& choice) { return choice.workers; });
  }
  template <typename Value>
  Terms OverChoices(size_t s, Value value) const {
    Terms terms;
    for (size_t m = 0; m < lists_[s].size(); ++m) {
      double before = 0;
      for (size_t o = 0; o < lists_[s][m].size(); ++o) {
        const double now = value(lists_[s][m][o]);
        if (now != before) terms.push_back({chosen_[s][m][o], now - before});
        before = now;
      }
    }
    return terms;
  }
  const std::optional<size_t>& queue(size_t s) const { return queues_[s]; }
  const std::vector<std::vector<size_t>>& modes() const { return modes_; }

  // row: terms - sum >= 0
  void AtLeast(const std::string& name, Terms terms, const Sum& sum) {
    for (const auto& [column, value] : sum.terms) terms.push_back({column, -value});
    if (terms.empty() && sum.constant <= 1e-6) return;  // holds whatever is chosen
    program_.Row(name, std::move(terms), sum.constant, HUGE_VAL);
  }

  HostSolution Read(const std::vector<double>& values) const {
    HostSolution solution;
    for (const std::vector<size_t>& columns : modes_) {
      size_t mode = 0;
      for (size_t m = 0; m < columns.size(); ++m) {
        if (values[columns[m]] > 0.5) mode = m;
      }
      solution.modes.push_back(mode);
    }
    for (size_t s = 0; s < problem_.stages.size(); ++s) {
      const std::optional<size_t>& set = problem_.stages[s].set;
      const size_t m = set ? solution.modes[*set] : 0;
      size_t choice = 0;
      for (size_t o = 1; o < chosen_[s][m].size(); ++o) {
        if (values[chosen_[s][m][o]] > 0.5) choice = o;
      }
      solution.stages.push_back(lists_[s][m][choice]);
      if (solution.stages[s].queue == 0) {
        solution.stages[s].queue = queues_[s] ? static_cast<int>(std::lround(values[*queues_[s]]))
                                              : problem_.stages[s].queue_now;
      }
    }
    for (size_t k = 0; k < problem_.sites.size(); ++k) {
      const bool used = values[uses_[k]] > 0.5;
      solution.kept.push_back(used ? std::clamp(values[kept_[k]], 0.0, MostKept(problem_, k))
                                   : 0.0);
    }
    return solution;
  }

 private:
  std::string Name(const char* what, size_t s, Phase phase) const {
    return fmt::format("{}_{}{}", what, problem_.stages[s].name, phase == kFill ? "_fill" : "");
  }
  void AddKept(const std::vector<double>& of, Sum* sum) const {
    for (size_t k = 0; k < of.size(); ++k) {
      if (of[k] != 0) sum->terms.push_back({kept_[k], of[k] / unit_s_});
    }
  }

  void AddSets() {
    for (const ModeSet& set : problem_.sets) {
      Terms one;
      std::vector<size_t>& columns = modes_.emplace_back();
      for (const Mode& mode : set.modes) {
        columns.push_back(program_.Column(fmt::format("{}_{}", set.name, mode.value), 0, 1, true));
        one.push_back({columns.back(), 1});
      }
      program_.Row("one_" + set.name, std::move(one), 1, 1);
    }
  }

  // A column of a choice is 1 where the stage runs that way or wider; the first of a list is that
  // of its mode, or always 1.
  void AddChoices() {
    for (size_t s = 0; s < problem_.stages.size(); ++s) {
      const HostStage& stage = problem_.stages[s];
      auto& columns = chosen_.emplace_back();
      for (size_t m = 0; m < lists_[s].size(); ++m) {
        std::vector<size_t>& list = columns.emplace_back();
        const std::string mode = stage.set
                                     ? fmt::format("_{}", problem_.sets[*stage.set].modes[m].value)
                                     : std::string();
        for (size_t o = 0; o < lists_[s][m].size(); ++o) {
          const StageChoice& choice = lists_[s][m][o];
          if (o == 0 && stage.set) {
            list.push_back(modes_[*stage.set][m]);
            continue;
          }
          const std::string queue = choice.queue > 0 ? fmt::format("_q{}", choice.queue) : "";
          list.push_back(
              program_.Column(fmt::format("p_{}_{}{}{}", stage.name, choice.threads, queue, mode),
                              o == 0 ? 1 : 0, 1, o > 0));
          if (o > 0) {
            program_.Row(fmt::format("wider_{}_{}{}{}", stage.name, choice.threads, queue, mode),
                         {{list[o - 1], 1}, {list[o], -1}}, 0, HUGE_VAL);
          }
        }
        // A mode in which the stage cannot run.
        if (lists_[s][m].empty() && stage.set) {
          program_.Row(fmt::format("never_{}{}", stage.name, mode), {{modes_[*stage.set][m], 1}}, 0,
                       0);
        }
      }
    }
  }

  void AddSites() {
    std::vector<Terms> in_tier(problem_.tiers.size());
    Terms all;
    for (size_t k = 0; k < problem_.sites.size(); ++k) {
      const CacheSite& site = problem_.sites[k];
      const std::string name =
          fmt::format("{}_{}", problem_.stages[site.stage].name, problem_.tiers[site.tier].name);
      const double share = shares_ != nullptr ? (*shares_)[k] : 0;
      if (shares_ != nullptr) {
        uses_.push_back(program_.Column("z_" + name, 1, 1, false));
        kept_.push_back(program_.Column("w_" + name, share, share, false));
        continue;
      }
      uses_.push_back(program_.Column("z_" + name, 0, 1, true));
      kept_.push_back(program_.Column("w_" + name, 0, 1, false));
      program_.Row("kept_" + name, {{uses_[k], MostKept(problem_, k)}, {kept_[k], -1}}, 0,
                   HUGE_VAL);
      in_tier[site.tier].push_back({kept_[k], site.bytes / 1048576});
      all.push_back({uses_[k], 1});
    }
    for (size_t t = 0; t < problem_.tiers.size(); ++t) {
      if (in_tier[t].size() < 2) continue;  // said by the column's own row
      program_.Row("budget_" + problem_.tiers[t].name, in_tier[t], -HUGE_VAL,
                   problem_.tiers[t].budget_bytes / 1048576);
    }
    if (shares_ != nullptr) return;
    if (problem_.one_cache && all.size() > 1) program_.Row("one_cache", all, -HUGE_VAL, 1);
    if (problem_.one_cache) return;
    std::vector<bool> taken(problem_.stages.size(), false);
    for (const HostStage& stage : problem_.stages) {
      if (stage.output) taken[*stage.output] = true;
    }
    for (size_t s = 0; s < problem_.stages.size(); ++s) {
      if (taken[s] || behind_[s].size() < 2) continue;
      Terms path;
      for (size_t k : behind_[s]) path.push_back({uses_[k], 1});
      program_.Row("one_cache_behind_" + problem_.stages[s].name, path, -HUGE_VAL, 1);
    }
  }

  void AddMemory() {
    const bool limited = std::isfinite(problem_.memory_bytes);
    Terms terms;
    double rest = problem_.memory_bytes - problem_.fixed_bytes;
    for (size_t s = 0; s < problem_.stages.size(); ++s) {
      const HostStage& stage = problem_.stages[s];
      queues_.emplace_back();
      bool own = false;
      for (const std::vector<StageChoice>& list : lists_[s]) {
        for (const StageChoice& choice : list) own = own || choice.queue == 0;
      }
      if (!limited) continue;
      if (own && stage.element_bytes > 0 && stage.queue_least < stage.queue_now) {
        queues_[s] = program_.Column("q_" + stage.name, stage.queue_least, stage.queue_now, true);
        terms.push_back({*queues_[s], stage.element_bytes / 1048576});
      } else if (own) {
        rest -= stage.element_bytes * stage.queue_now;
      }
      for (const auto& [column, bytes] :
           OverChoices(s, [](const StageChoice& choice) { return choice.bytes; })) {
        terms.push_back({column, bytes / 1048576});
      }
    }
    if (!limited) return;
    for (size_t i = 0; i < problem_.sets.size(); ++i) {
      for (size_t m = 0; m < modes_[i].size(); ++m) {
        const double bytes = problem_.sets[i].modes[m].bytes;
        if (bytes != 0) terms.push_back({modes_[i][m], bytes / 1048576});
      }
    }
    for (size_t k = 0; k < problem_.sites.size(); ++k) {
      const CacheSite& site = problem_.sites[k];
      if (problem_.tiers[site.tier].memory) terms.push_back({kept_[k], site.bytes / 1048576});
    }
    program_.Row("memory", std::move(terms), -HUGE_VAL, rest / 1048576);
  }

  // T >= load / workers of the choice that is taken.
  void AddStageTime(size_t s, Phase phase) {
    const Sum load = Load(s, phase);
    const size_t time = *time_[phase];
    size_t ways = 0;
    for (const std::vector<StageChoice>& list : lists_[s]) ways += list.size();
    if (load.constant <= 0 && load.terms.empty()) return;
    if (ways == 1) {
      const double workers = lists_[s][0][0].workers;
      AtLeast(Name("stage", s, phase), {{time, workers}}, load);
      return;
    }
    if (load.terms.empty()) {
      Terms terms{{time, 1}};
      for (const auto& [column, value] :
           OverChoices(s, [](const StageChoice& choice) { return 1 / choice.workers; })) {
        terms.push_back({column, -value * load.constant});
      }
      program_.Row(Name("stage", s, phase), std::move(terms), 0, HUGE_VAL);
      return;
    }
    // The load falls to the choice that is taken: v of the others is 0.
    const double most = LoadRange(problem_, behind_[s], s, phase).most / unit_s_;
    Terms all, spent{{time, 1}};
    for (size_t m = 0; m < lists_[s].size(); ++m) {
      for (size_t o = 0; o < lists_[s][m].size(); ++o) {
        const StageChoice& choice = lists_[s][m][o];
        const size_t part = program_.Column(fmt::format("v_{}_{}_{}{}", problem_.stages[s].name, m,
                                                        o, phase == kFill ? "_fill" : ""),
                                            0, most, false);
        Terms only{{chosen_[s][m][o], most}, {part, -1}};
        if (o + 1 < lists_[s][m].size()) only.push_back({chosen_[s][m][o + 1], -most});
        program_.Row(fmt::format("only_{}_{}_{}{}", problem_.stages[s].name, m, o,
                                 phase == kFill ? "_fill" : ""),
                     std::move(only), 0, HUGE_VAL);
        all.push_back({part, 1});
        spent.push_back({part, -1 / choice.workers});
      }
    }
    AtLeast(Name("load", s, phase), std::move(all), load);
    program_.Row(Name("stage", s, phase), std::move(spent), 0, HUGE_VAL);
  }

  // Cores, what all stages share, the tiers' devices: `time` is T in units.
  void AddShared(Phase phase, const Sum& time, std::optional<size_t> cores) {
    const char* fill = phase == kFill ? "_fill" : "";
    const auto add = [&](const std::string& name, double servers, Sum load) {
      Terms terms;
      for (const auto& [column, value] : time.terms) terms.push_back({column, servers * value});
      load.constant -= servers * time.constant;
      AtLeast(name + fill, std::move(terms), load);
    };
    if (cores) {
      AtLeast(std::string("cores") + fill, {{*cores, time.constant}}, CoresLoad(phase));
    } else if (std::isfinite(problem_.cores)) {
      add("cores", problem_.cores, CoresLoad(phase));
    }
    for (const Capacity& capacity : problem_.capacities) {
      Sum load{capacity.other_s / unit_s_, {}};
      std::vector<double> of(problem_.sites.size(), 0);
      for (size_t s = 0; s < problem_.stages.size(); ++s) {
        load.constant += capacity.stage_s[s] / unit_s_;
        if (phase == kFill) continue;
        for (size_t k : behind_[s]) of[k] -= capacity.stage_s[s];
      }
      AddKept(of, &load);
      if (load.constant > 0) add(capacity.name, capacity.servers, std::move(load));
    }
    for (size_t t = 0; t < problem_.tiers.size(); ++t) {
      Sum load;
      std::vector<double> of(problem_.sites.size(), 0);
      for (size_t k = 0; k < problem_.sites.size(); ++k) {
        const CacheSite& site = problem_.sites[k];
        if (site.tier == t) of[k] = phase == kWarm ? site.tier_read_s : site.tier_write_s;
      }
      AddKept(of, &load);
      if (!load.terms.empty()) add("tier_" + problem_.tiers[t].name, 1, std::move(load));
    }
  }

  const HostProblem& problem_;
  Lists lists_;
  double unit_s_;
  const std::vector<double>* shares_;
  std::vector<std::vector<size_t>> behind_;
  Program program_;
  std::vector<std::vector<size_t>> modes_;                // by set
  std::vector<std::vector<std::vector<size_t>>> chosen_;  // by stage, mode, choice
  std::vector<std::optional<size_t>> queues_;
  std::vector<size_t> uses_, kept_;
  std::optional<size_t> time_[2];
};

// Choices that can be part of an answer as fast as `known`, and no wider than is of use.
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

// For the later objectives: choices that reach the rates with headroom, and the present one.
Lists Reaching(const HostProblem& problem, double batch_s, double fill_s, bool memory_matters,
               const std::vector<double>* shares) {
  const std::vector<std::vector<size_t>> behind = SitesBehind(problem);
  Lists lists = AllChoices(problem);
  for (size_t s = 0; s < lists.size(); ++s) {
    double least = 0, most = 0;
    for (const Phase phase : {kWarm, kFill}) {
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

// Shares within budgets and memory, that the solver keeps only within its tolerance.
void Settle(const HostProblem& problem, HostSolution* solution) {
  std::vector<double> held(problem.tiers.size(), 0);
  double in_memory = 0;
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    held[problem.sites[k].tier] += solution->kept[k] * problem.sites[k].bytes;
  }
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    const HostTier& tier = problem.tiers[problem.sites[k].tier];
    const double full = held[problem.sites[k].tier];
    if (full > tier.budget_bytes) solution->kept[k] *= tier.budget_bytes / full;
    if (tier.memory) in_memory += solution->kept[k] * problem.sites[k].bytes;
  }
  const double over = BytesOf(problem, *solution) - problem.memory_bytes;
  if (over <= 0 || in_memory <= 0) return;
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    if (problem.tiers[problem.sites[k].tier].memory) {
      solution->kept[k] *= std::max(0.0, 1 - over / in_memory);
    }
  }
}

// The same whole choices with the best shares: without whole columns the solver is exact.
void Polish(const HostProblem& problem, double unit_s, HostSolution* solution) {
  HostProblem fixed = problem;
  for (size_t i = 0; i < fixed.sets.size(); ++i) {
    fixed.sets[i] = {fixed.sets[i].name, {fixed.sets[i].modes[solution->modes[i]]}, 0};
  }
  for (size_t s = 0; s < fixed.stages.size(); ++s) {
    HostStage& stage = fixed.stages[s];
    stage.choices = {{solution->stages[s]}};
    const std::optional<size_t>& set = problem.stages[s].set;
    if (problem.stages[s].choices[set ? solution->modes[*set] : 0][0].queue == 0) {
      stage.choices[0][0].queue = 0;
      stage.queue_now = stage.queue_least = solution->stages[s].queue;
    }
  }
  std::vector<size_t> used;
  fixed.sites.clear();
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    if (solution->kept[k] <= 0) continue;
    used.push_back(k);
    fixed.sites.push_back(problem.sites[k]);
  }
  if (used.empty()) return;
  Builder builder(fixed, AllChoices(fixed), unit_s);
  builder.AddTimes();
  builder.program().Objective(builder.TimeTerms(), false);
  builder.program().Finely(kFine);
  const std::optional<std::vector<double>> values = builder.program().Solve(kSolverSeconds);
  if (!values) return;
  const std::vector<double> kept = builder.Read(*values).kept;
  for (size_t i = 0; i < used.size(); ++i) solution->kept[used[i]] = kept[i];
}

// P2 to P4 at given rates: of the first solution, less what may be given away.
class Later {
 public:
  // `shares`, if given, of the caches of `problem`, are not to be chosen any more.
  Later(const HostProblem& problem, const HostSolution& first, bool memory_matters,
        const std::vector<double>* shares, HostReport* report, double equal = kEqual)
      : problem_(problem),
        first_(first),
        batch_s_(first.batch_s * (1 + equal) / (1 - problem.yielded)),
        fill_s_(first.fill_s * (1 + equal) / (1 - problem.yielded)),
        unit_s_(first.average_s),
        builder_(problem, Reaching(problem, batch_s_, fill_s_, memory_matters, shares), unit_s_,
                 shares),
        report_(report) {
    const bool priced = problem.price_per_core_hour.has_value();
    cores_ = builder_.program().Column("cores", priced ? 1 : 0, problem.cores, priced);
    builder_.AddRates(batch_s_, fill_s_, cores_);
  }

  // Whether anything reaches the rates.
  bool Reachable() {
    builder_.program().Objective({}, false);
    return builder_.program().Solve(kSolverSeconds).has_value();
  }

  // Cores or their price: P2.
  double LeastCores() {
    const bool priced = problem_.price_per_core_hour.has_value();
    return Solve(priced ? "price of whole cores" : "cores used", priced ? "an hour" : "cores",
                 Cores(), 0);
  }
  void KeepCores(double most) {
    const double away = problem_.watts_per_core ? 1 + problem_.yielded : 1;
    builder_.program().Row(problem_.price_per_core_hour ? "P2_price" : "P2_cores", Cores(),
                           -HUGE_VAL, most * away * (1 + kLoose) + kSolver);
  }

  // Power of the cores in use, mean over the epochs: P3.
  double LeastWatts() {
    const Sum watts = Watts();
    return Solve("power of the cores used", "W", watts.terms, watts.constant);
  }
  void KeepWatts(double most) {
    const Sum watts = Watts();
    if (watts.terms.empty()) return;
    builder_.program().Row("P3_watts", watts.terms, -HUGE_VAL,
                           most - watts.constant + kLoose * (1 + std::abs(most)));
  }

  // The first half of P4: no cache that is of no use.
  void FewestCaches() {
    Terms cost;
    for (const size_t use : builder_.uses()) cost.push_back({use, 1});
    Solve("caches", "caches", cost, 0);
  }

  // The second half.
  void FewestChanges() {
    Terms cost;
    Program& program = builder_.program();
    std::vector<std::optional<size_t>> shorter(problem_.stages.size());
    for (size_t s = 0; s < problem_.stages.size(); ++s) {
      const HostStage& stage = problem_.stages[s];
      for (const auto& [column, value] : builder_.OverChoices(s, [&](const StageChoice& choice) {
             return kThread * choice.threads + (choice.threads != stage.threads_now ? kChange : 0) +
                    (choice.queue > 0 && choice.queue != stage.queue_now ? kChange : 0);
           })) {
        cost.push_back({column, value});
      }
      if (builder_.queue(s)) {
        const size_t queue = *builder_.queue(s);
        const size_t changed = program.Column("changed_q_" + stage.name, 0, 1, true);
        program.Row("shorter_" + stage.name,
                    {{queue, 1}, {changed, double(stage.queue_now - stage.queue_least)}},
                    stage.queue_now, HUGE_VAL);
        cost.push_back({changed, kChange});
        shorter[s] = changed;
      }
      if (problem_.headroom > 0) cost.push_back({MissingOf(s), kMissing});
    }
    for (size_t i = 0; i < problem_.sets.size(); ++i) {
      for (size_t m = 0; m < problem_.sets[i].modes.size(); ++m) {
        if (m != problem_.sets[i].now) cost.push_back({builder_.modes()[i][m], kChange});
      }
    }
    builder_.AddRelief(shorter);
    program.AllowGap(kContent);
    Solve("changes and missing headroom", "points", cost, 0, kChangesSeconds);
  }

  HostSolution Found() const {
    HostSolution solution = builder_.Read(*values_);
    solution.cores = (*values_)[cores_];
    return solution;
  }

 private:
  Terms Cores() const { return {{cores_, problem_.price_per_core_hour.value_or(1)}}; }

  Sum Watts() const {
    Sum watts;
    double whole = 0;
    for (const Phase phase : {kWarm, kFill}) {
      const double weight = WeightOf(problem_, phase);
      if (weight <= 0) continue;
      whole += weight * (phase == kWarm ? batch_s_ : fill_s_);
      const Sum load = builder_.CoresLoad(phase);
      watts.constant += weight * load.constant;
      for (const auto& [column, value] : load.terms) {
        watts.terms.push_back({column, weight * value});
      }
    }
    const double scale = *problem_.watts_per_core * unit_s_ / whole;
    for (auto& [column, value] : watts.terms) value *= scale;
    watts.constant *= scale;
    return watts;
  }

  // Threads that the stage has fewer than with headroom in every phase.
  size_t MissingOf(size_t s) {
    const HostStage& stage = problem_.stages[s];
    const size_t missing = builder_.program().Column("missing_" + stage.name, 0, HUGE_VAL, false);
    for (const Phase phase : {kWarm, kFill}) {
      if (!Counts(problem_, phase)) continue;
      const double time = (phase == kWarm ? first_.batch_s : first_.fill_s) / unit_s_;
      Sum wanted = builder_.Load(s, phase);
      wanted.constant *= (1 + problem_.headroom) / time;
      for (auto& [column, value] : wanted.terms) value *= (1 + problem_.headroom) / time;
      Terms terms = builder_.Workers(s);
      terms.push_back({missing, 1});
      builder_.AtLeast(fmt::format("headroom_{}{}", stage.name, phase == kFill ? "_fill" : ""),
                       std::move(terms), wanted);
    }
    return missing;
  }

  double Solve(const std::string& what, const std::string& unit, const Terms& terms,
               double constant, double max_seconds = kSolverSeconds) {
    SolvedObjective objective{what, constant, unit, {}};
    builder_.program().Objective(terms, false);
    values_ = builder_.program().Solve(max_seconds, &objective.proof);
    if (!values_) {
      throw Error(ExitCode::kFailure, fmt::format("the program of '{}' has no answer", what),
                  "plan", "report the run: the rate was reached before");
    }
    for (const auto& [column, value] : terms) objective.value += value * (*values_)[column];
    const double value = objective.value;
    if (report_ != nullptr) {
      report_->words +=
          fmt::format("then, at that: {}, least\n{}", what, builder_.program().Text());
      report_->objectives.push_back(std::move(objective));
    }
    return value;
  }

  const HostProblem& problem_;
  const HostSolution& first_;
  double batch_s_, fill_s_, unit_s_;
  Builder builder_;
  HostReport* report_;
  size_t cores_ = 0;
  std::optional<std::vector<double>> values_;
};

// Queues that became shorter, as long again as the memory has room for, shortest first.
void Lengthen(const HostProblem& problem, HostSolution* solution) {
  if (!std::isfinite(problem.memory_bytes)) return;
  double room = problem.memory_bytes - BytesOf(problem, *solution);
  std::priority_queue<std::pair<double, size_t>> shortest;
  for (size_t s = 0; s < problem.stages.size(); ++s) {
    if (!OwnQueue(problem, *solution, s)) continue;
    const int now = problem.stages[s].queue_now;
    if (solution->stages[s].queue < now) {
      shortest.push({-double(solution->stages[s].queue) / now, s});
    }
  }
  while (!shortest.empty()) {
    const size_t s = shortest.top().second;
    shortest.pop();
    const HostStage& stage = problem.stages[s];
    int& queue = solution->stages[s].queue;
    // One by one where that matters; a queue said to be without end is not walked up.
    const int more = std::max(1, (stage.queue_now - queue) / 64);
    if (stage.element_bytes * more > room) continue;
    room -= stage.element_bytes * more;
    queue += more;
    if (queue < stage.queue_now) shortest.push({-double(queue) / stage.queue_now, s});
  }
}

// P2 to P4: first with the caches, then, when these are known, with what else there is to change.
HostSolution SolveLater(const HostProblem& problem, const HostSolution& first, bool memory_matters,
                        HostReport* report) {
  std::vector<double> shares(problem.sites.size(), 0);
  std::optional<double> cores, watts;
  if (!problem.sites.empty()) {
    Later caches(problem, first, memory_matters, nullptr, report);
    cores = caches.LeastCores();
    caches.KeepCores(*cores);
    if (problem.watts_per_core) {
      watts = caches.LeastWatts();
      caches.KeepWatts(*watts);
    }
    caches.FewestCaches();
    HostSolution found = caches.Found();
    Settle(problem, &found);
    shares = found.kept;
  }
  HostProblem with = problem;
  std::vector<double> kept;
  std::vector<size_t> used;
  with.sites.clear();
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    if (shares[k] <= 0) continue;
    used.push_back(k);
    kept.push_back(shares[k]);
    with.sites.push_back(problem.sites[k]);
  }
  // Shares that the solver's tolerance left to caches that are not used are missing now.
  std::optional<Later> later;
  for (const double equal : {kEqual, 1e-5, 1e-4}) {
    later.emplace(with, first, memory_matters, &kept, report, equal);
    if (later->Reachable()) break;
  }
  if (!cores) {
    cores = later->LeastCores();
    if (problem.watts_per_core) watts = later->LeastWatts();
  }
  later->KeepCores(*cores);
  if (watts) later->KeepWatts(*watts);
  later->FewestChanges();
  HostSolution chosen = later->Found();
  chosen.kept.assign(problem.sites.size(), 0);
  for (size_t i = 0; i < used.size(); ++i) chosen.kept[used[i]] = kept[i];
  chosen.watts = watts;
  Settle(problem, &chosen);
  Lengthen(problem, &chosen);
  return chosen;
}

// The exact method knows one budget, and threads that each do a thread's work.
std::optional<double> ExactSeconds(const HostProblem& problem) {
  if (!problem.sites.empty() || !problem.sets.empty()) return std::nullopt;
  MaxMinProblem exact;
  exact.budget = problem.memory_bytes - problem.fixed_bytes;
  double shared_s = problem.least_s, cpu_s = problem.other_cpu_s;
  for (const HostStage& stage : problem.stages) {
    const std::vector<StageChoice>& list = stage.choices[0];
    const double each = list.empty() ? 0 : list[0].bytes;
    for (size_t o = 0; o < list.size(); ++o) {
      const double threads = static_cast<double>(o + 1);
      if (list[o].queue > 0 || list[o].threads != static_cast<int>(o) + 1 ||
          list[o].workers != threads || std::abs(list[o].bytes - threads * each) > kRound * each) {
        return std::nullopt;
      }
    }
    exact.service_s.push_back(stage.service_s);
    exact.most.push_back(static_cast<int>(list.size()));
    exact.weight.push_back(each);
    exact.budget -= stage.element_bytes * stage.queue_least;
    cpu_s += stage.cpu_s;
  }
  if (std::isfinite(problem.cores)) shared_s = std::max(shared_s, cpu_s / problem.cores);
  for (const Capacity& capacity : problem.capacities) {
    double demand = capacity.other_s;
    for (double stage_s : capacity.stage_s) demand += stage_s;
    shared_s = std::max(shared_s, demand / capacity.servers);
  }
  exact.most_rate = shared_s > 0 ? 1 / shared_s : kInfinite;
  const std::optional<MaxMinSolution> solution = SolveMaxMin(exact);
  if (!solution) return kInfinite;
  return 1 / solution->rate;
}

[[noreturn]] void ThrowDisagreement(double ours, double theirs) {
  throw Error(ExitCode::kFailure,
              fmt::format("the integer program gives {:.9g} s a batch, the other method {:.9g} s",
                          ours, theirs),
              "plan", "report the run: the two must agree");
}

}  // namespace

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
  if (BytesOf(problem, *solution) > problem.memory_bytes * (1 + kRound)) return false;
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

std::optional<HostSolution> SolveHost(const HostProblem& problem, HostReport* report) {
  const bool memory_matters = MemoryMatters(problem);
  Lists frontiers;
  for (const HostStage& stage : problem.stages) {
    auto& lists = frontiers.emplace_back();
    for (const std::vector<StageChoice>& list : stage.choices) {
      lists.push_back(Frontier(list, memory_matters));
    }
  }
  const std::optional<double> exact = ExactSeconds(problem);
  const std::optional<HostSolution> known = FirstSolution(problem, frontiers);
  // T in units of one that can be reached, so that coefficients are of one size.
  double unit_s = known ? known->average_s : 0;
  if (!(unit_s > 0)) unit_s = problem.least_s > 0 ? problem.least_s : 1;
  Builder builder(problem, known ? Pruned(problem, frontiers, *known) : frontiers, unit_s);
  builder.AddTimes();
  builder.program().Objective(builder.TimeTerms(), false);
  builder.program().Finely(kFine);
  if (known) {
    builder.program().Row("known", builder.TimeTerms(), -HUGE_VAL,
                          known->average_s / unit_s * (1 + 1e-9));
  }
  SolvedObjective first{"seconds a batch", 0, "s", {}};
  const std::optional<std::vector<double>> values =
      builder.program().Solve(kSolverSeconds, &first.proof);
  if (report != nullptr) {
    Builder whole(problem, AllChoices(problem), unit_s);
    whole.AddTimes();
    whole.program().Objective(whole.TimeTerms(), false);
    report->lp = whole.program().Lp();
    report->words = fmt::format("T in units of {:.6g} s:\n", unit_s) + builder.program().Text();
  }
  if (!values) {
    if (known) ThrowDisagreement(kInfinite, known->average_s);
    if (exact && std::isfinite(*exact)) ThrowDisagreement(kInfinite, *exact);
    return std::nullopt;
  }
  HostSolution best = builder.Read(*values);
  if (!problem.sites.empty()) Polish(problem, unit_s, &best);
  Settle(problem, &best);
  if (!Evaluate(problem, &best)) ThrowDisagreement(0, kInfinite);
  first.value = best.average_s;
  const double said = [&] {
    double sum = 0;
    for (const auto& [column, value] : builder.TimeTerms()) sum += value * (*values)[column];
    return sum * unit_s;
  }();
  if (std::abs(said - best.average_s) > 1e-5 * best.average_s) {
    ThrowDisagreement(said, best.average_s);
  }
  if (exact && first.proof.optimal && best.average_s > 0 &&
      std::abs(*exact / best.average_s - 1) > 1e-5) {
    ThrowDisagreement(best.average_s, *exact);
  }
  if (report != nullptr) {
    report->objectives = {first};
    report->exact_batch_s = exact;
  }
  if (!(best.average_s > 0)) return best;  // nothing costs anything

  HostSolution chosen = SolveLater(problem, best, memory_matters, report);
  if (!Evaluate(problem, &chosen) ||
      chosen.average_s > best.average_s / (1 - problem.yielded) * (1 + 1e-6)) {
    ThrowDisagreement(chosen.average_s, best.average_s);
  }
  return chosen;
}

}  // namespace headrace::analysis
