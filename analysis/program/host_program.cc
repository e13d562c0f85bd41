#include "analysis/program/host_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>

#include "analysis/program/host_choices.h"
#include "analysis/program/host_rows.h"
#include "analysis/program/max_min.h"
#include "base/error.h"
#include "base/infinite.h"

namespace headrace::analysis {
namespace {

constexpr double kSolverSeconds = 10;
constexpr double kFine = 1e4;  // rates are told apart to 1e-9
// Time limit for the last objective, on which no rate depends.
constexpr double kChangesSeconds = 0.3;
// Relative slack for cores and watts that an earlier objective reached.
constexpr double kLoose = 1e-4;
// Relative slack for a rate that an earlier objective reached.
constexpr double kEqual = 4e-7;

// What the last objective counts: a knob that changes, a thread of headroom that is missing.
// Threads hardly count: none of the choices is wider than is of use. An answer within half a change
// of the least has no change too many.
constexpr double kChange = 100, kMissing = 1000, kThread = 0.001, kContent = 50;

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
  HostRows rows(fixed, AllChoices(fixed), unit_s, true);
  rows.AddTimes();
  rows.program().Objective(rows.TimeTerms(), false);
  rows.program().Finely(kFine);
  const std::optional<std::vector<double>> values = rows.program().Solve(kSolverSeconds);
  if (!values) return;
  const std::vector<double> kept = rows.Read(*values).kept;
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
        rows_(problem, Reaching(problem, batch_s_, fill_s_, memory_matters, shares), unit_s_,
              memory_matters, shares),
        report_(report) {
    const bool priced = problem.price_per_core_hour.has_value();
    // Cores are bought whole, where other programs leave a part of one too.
    cores_ = rows_.program().Column("cores", priced ? 1 : 0,
                                    priced ? std::ceil(problem.cores) : problem.cores, priced);
    rows_.AddRates(batch_s_, fill_s_, cores_);
  }

  // Whether anything reaches the rates.
  bool Reachable() {
    rows_.program().Objective({}, false);
    return rows_.program().Solve(kSolverSeconds).has_value();
  }

  // Cores or their price: P2.
  double LeastCores() {
    const bool priced = problem_.price_per_core_hour.has_value();
    return Solve(priced ? "price of whole cores" : "cores used", priced ? "an hour" : "cores",
                 Cores(), 0);
  }
  void KeepCores(double most) {
    const double away = problem_.watts_per_core ? 1 + problem_.yielded : 1;
    rows_.program().Row(problem_.price_per_core_hour ? "P2_price" : "P2_cores", Cores(), -HUGE_VAL,
                        most * away * (1 + kLoose) + kSolver);
  }

  // Power of the cores in use, mean over the epochs: P3.
  double LeastWatts() {
    const Sum watts = Watts();
    return Solve("power of the cores used", "W", watts.terms, watts.constant);
  }
  void KeepWatts(double most) {
    const Sum watts = Watts();
    if (watts.terms.empty()) return;
    rows_.program().Row("P3_watts", watts.terms, -HUGE_VAL,
                        most - watts.constant + kLoose * (1 + std::abs(most)));
  }

  // The first half of P4: no cache that is of no use.
  void FewestCaches() {
    Terms cost;
    for (const size_t use : rows_.uses()) cost.push_back({use, 1});
    Solve("caches", "caches", cost, 0);
  }

  // The second half.
  void FewestChanges() {
    Terms cost;
    Program& program = rows_.program();
    std::vector<std::optional<size_t>> shorter(problem_.stages.size());
    for (size_t s = 0; s < problem_.stages.size(); ++s) {
      const HostStage& stage = problem_.stages[s];
      for (const auto& [column, value] : rows_.OverChoices(s, [&](const StageChoice& choice) {
             return kThread * choice.threads + (choice.threads != stage.threads_now ? kChange : 0) +
                    (choice.queue > 0 && choice.queue != stage.queue_now ? kChange : 0);
           })) {
        cost.push_back({column, value});
      }
      if (rows_.queue(s)) {
        const size_t queue = *rows_.queue(s);
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
        if (m != problem_.sets[i].now) cost.push_back({rows_.modes()[i][m], kChange});
      }
    }
    rows_.AddRelief(shorter);
    program.AllowGap(kContent);
    Solve("changes and missing headroom", "points", cost, 0, kChangesSeconds);
  }

  HostSolution Found() const {
    HostSolution solution = rows_.Read(*values_);
    solution.cores = (*values_)[cores_];
    return solution;
  }

 private:
  Terms Cores() const { return {{cores_, problem_.price_per_core_hour.value_or(1)}}; }

  Sum Watts() const {
    Sum watts;
    double whole = 0;
    for (const CachePhase phase : {kWarm, kFill}) {
      const double weight = WeightOf(problem_, phase);
      if (weight <= 0) continue;
      whole += weight * (phase == kWarm ? batch_s_ : fill_s_);
      const Sum load = rows_.CoresLoad(phase);
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
    const size_t missing = rows_.program().Column("missing_" + stage.name, 0, HUGE_VAL, false);
    for (const CachePhase phase : {kWarm, kFill}) {
      if (!Counts(problem_, phase)) continue;
      const double time = (phase == kWarm ? first_.batch_s : first_.fill_s) / unit_s_;
      Sum wanted = rows_.Load(s, phase);
      wanted.constant *= (1 + problem_.headroom) / time;
      for (auto& [column, value] : wanted.terms) value *= (1 + problem_.headroom) / time;
      Terms terms = rows_.Workers(s);
      terms.push_back({missing, 1});
      rows_.AtLeast(fmt::format("headroom_{}{}", stage.name, phase == kFill ? "_fill" : ""),
                    std::move(terms), wanted);
    }
    return missing;
  }

  double Solve(const std::string& what, const std::string& unit, const Terms& terms,
               double constant, double max_seconds = kSolverSeconds) {
    SolvedObjective objective{what, constant, unit, {}};
    rows_.program().Objective(terms, false);
    values_ = rows_.program().Solve(max_seconds, &objective.proof);
    if (!values_) {
      throw Error(ExitCode::kFailure, fmt::format("the program of '{}' has no answer", what),
                  "plan", "report the run: the rate was reached before");
    }
    for (const auto& [column, value] : terms) objective.value += value * (*values_)[column];
    const double value = objective.value;
    if (report_ != nullptr) {
      report_->words += fmt::format("then, at that: {}, least\n{}", what, rows_.program().Text());
      report_->objectives.push_back(std::move(objective));
    }
    return value;
  }

  const HostProblem& problem_;
  const HostSolution& first_;
  double batch_s_, fill_s_, unit_s_;
  HostRows rows_;
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

// The exact method knows one budget, and threads that each do a thread's work. `room`: bytes more.
std::optional<double> ExactSeconds(const HostProblem& problem, double room = 0) {
  if (!problem.sites.empty() || !problem.sets.empty()) return std::nullopt;
  MaxMinProblem exact;
  exact.budget = problem.memory_bytes * (1 + kRound) + room - problem.fixed_bytes;
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

void FillCaches(const HostProblem& problem, double loss, HostSolution* solution) {
  if (!Evaluate(problem, solution)) return;
  const double most_s = solution->average_s * (1 + loss);
  for (size_t k = 0; k < problem.sites.size(); ++k) {
    if (solution->kept[k] <= 0) continue;
    const CacheSite& site = problem.sites[k];
    double room = problem.tiers[site.tier].budget_bytes;
    for (size_t j = 0; j < problem.sites.size(); ++j) {
      if (problem.sites[j].tier == site.tier) room -= solution->kept[j] * problem.sites[j].bytes;
    }
    if (problem.tiers[site.tier].memory) {
      room = std::min(room, problem.memory_bytes - BytesOf(problem, *solution));
    }
    HostSolution more = *solution;
    more.kept[k] =
        std::min(MostKept(problem, k), solution->kept[k] + std::max(0.0, room) / site.bytes);
    if (Evaluate(problem, &more) && more.average_s <= most_s) {
      *solution = std::move(more);
    }
  }
}

std::optional<HostSolution> SolveHost(const HostProblem& problem, HostReport* report) {
  const bool memory_matters = MemoryMatters(problem);
  const Lists frontiers = Frontiers(problem, memory_matters);
  const std::optional<double> exact = ExactSeconds(problem);
  const std::optional<HostSolution> known = FirstSolution(problem, frontiers);
  // T in units of one that can be reached, so that coefficients are of one size.
  double unit_s = known ? known->average_s : 0;
  if (!(unit_s > 0)) unit_s = problem.least_s > 0 ? problem.least_s : 1;
  HostRows rows(problem, known ? Pruned(problem, frontiers, *known) : frontiers, unit_s,
                memory_matters);
  rows.AddTimes();
  rows.program().Objective(rows.TimeTerms(), false);
  rows.program().Finely(kFine);
  if (known) {
    rows.program().Row("known", rows.TimeTerms(), -HUGE_VAL,
                       known->average_s / unit_s * (1 + 1e-9));
  }
  SolvedObjective first{"seconds a batch", 0, "s", {}};
  const std::optional<std::vector<double>> values =
      rows.program().Solve(kSolverSeconds, &first.proof);
  if (report != nullptr) {
    HostRows whole(problem, AllChoices(problem), unit_s, true);
    whole.AddTimes();
    whole.program().Objective(whole.TimeTerms(), false);
    report->lp = whole.program().Lp();
    report->words = fmt::format("T in units of {:.6g} s:\n", unit_s) + rows.program().Text();
  }
  if (!values) {
    if (known) ThrowDisagreement(kInfinite, known->average_s);
    if (exact && std::isfinite(*exact)) ThrowDisagreement(kInfinite, *exact);
    return std::nullopt;
  }
  HostSolution best = rows.Read(*values);
  if (!problem.sites.empty()) Polish(problem, unit_s, &best);
  Settle(problem, &best);
  if (!Evaluate(problem, &best)) ThrowDisagreement(0, kInfinite);
  first.value = best.average_s;
  const double said = [&] {
    double sum = 0;
    for (const auto& [column, value] : rows.TimeTerms()) sum += value * (*values)[column];
    return sum * unit_s;
  }();
  if (std::abs(said - best.average_s) > 1e-5 * best.average_s) {
    ThrowDisagreement(said, best.average_s);
  }
  if (exact && first.proof.optimal && best.average_s > 0) {
    // Where the memory is full to the byte, the solver may see room that the exact method does not.
    const double least_s = *ExactSeconds(problem, kSolverBytes);
    if (best.average_s < least_s * (1 - 1e-5)) ThrowDisagreement(best.average_s, least_s);
    if (best.average_s > *exact * (1 + 1e-5)) ThrowDisagreement(best.average_s, *exact);
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
