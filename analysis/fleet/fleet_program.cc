#include "analysis/fleet/fleet_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/program/program.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr double kMostRows = 1e15;  // of a node whose rows cost nothing that was recorded
constexpr double kSlack = 1e-7;     // relative: what an optimum is held to in the next program
constexpr double kMostX = 2;        // in units of the target: more is never wanted

double RateOf(const FleetType& type) { return std::clamp(type.rows_per_s, 0.0, kMostRows); }

// More than that many reach the target alone: a finite range for the solver.
int MostOf(const FleetType& type, double target) {
  const double rate = RateOf(type);
  if (rate <= 0) return 0;
  const int enough = static_cast<int>(std::min<double>(kMostNodes, std::ceil(target / rate) + 1));
  return std::min(enough, type.max_count.value_or(enough));
}

// Most nodes of each type that can be of use. A type of which one node costs more than a whole
// fleet of another is left out: its price would make all others look alike to the solver.
std::vector<int> MostOfEach(const FleetProblem& problem) {
  double cheapest = HUGE_VAL;
  for (const FleetType& type : problem.types) {
    if (RateOf(type) <= 0) continue;
    const double alone = std::ceil(problem.target / RateOf(type));
    if (alone <= MostOf(type, problem.target))
      cheapest = std::min(cheapest, std::max(1.0, alone) * type.price_per_hour);
  }
  std::vector<int> most;
  for (const FleetType& type : problem.types)
    most.push_back(type.price_per_hour > cheapest ? 0 : MostOf(type, problem.target));
  return most;
}

struct Objective {
  std::string name;
  std::vector<double> cost;  // of a node of each type
};

std::vector<Objective> ObjectivesOf(const FleetProblem& problem, const std::vector<int>& most) {
  Objective price{"price", {}}, watts{"power", {}}, nodes{"nodes", {}};
  bool power_known = true;
  for (size_t t = 0; t < problem.types.size(); ++t) {
    const FleetType& type = problem.types[t];
    const bool used = most[t] > 0;
    price.cost.push_back(used ? type.price_per_hour : 0);
    watts.cost.push_back(used ? type.watts.value_or(0) : 0);
    nodes.cost.push_back(1);
    power_known = power_known && (type.watts || !used);
  }
  std::vector<Objective> objectives = {price};
  if (power_known) objectives.push_back(watts);
  objectives.push_back(nodes);
  return objectives;
}

// What is solved, for a person: only rows that limit.
std::string Words(const FleetProblem& problem, const std::vector<Objective>& objectives,
                  const std::vector<int>& most) {
  std::string order;
  for (const Objective& objective : objectives)
    order += (order.empty() ? "least " : ", then least ") + objective.name;
  std::string text = order + ", with N whole numbers:\n  ";
  for (size_t t = 0; t < problem.types.size(); ++t) {
    text += fmt::format("{}{} N({})", t == 0 ? "" : " + ",
                        FormatRate(RateOf(problem.types[t]), "rows"), problem.types[t].name);
  }
  text += fmt::format(" >= X\n  X >= {}  (target)\n", FormatRate(problem.target, "rows"));
  for (const FleetLimit& limit : problem.limits) {
    if (std::isfinite(limit.rows_per_s))
      text += fmt::format("  X <= {}  ({})\n", FormatRate(limit.rows_per_s, "rows"), limit.name);
  }
  for (size_t t = 0; t < problem.types.size(); ++t) {
    const FleetType& type = problem.types[t];
    const bool dear = most[t] == 0 && MostOf(type, problem.target) > 0;
    const char* why = dear             ? "  (another type alone costs less)"
                      : type.max_count ? ""
                                       : "  (more are never needed)";
    text += fmt::format("  N({}) <= {}{}; each costs {:g} an hour{}\n", type.name, most[t], why,
                        type.price_per_hour,
                        type.watts ? fmt::format(" and draws {:.4g} W", *type.watts) : "");
  }
  return text;
}

}  // namespace

std::optional<std::vector<int>> SolveFleet(const FleetProblem& problem, std::string* text,
                                           std::string* lp) {
  const std::vector<int> most = MostOfEach(problem);
  const std::vector<Objective> objectives = ObjectivesOf(problem, most);
  if (lp != nullptr) lp->clear();
  if (text != nullptr) *text = Words(problem, objectives, most);
  std::vector<std::pair<const Objective*, double>> held;
  std::optional<std::vector<int>> counts;
  for (const Objective& objective : objectives) {
    const double largest = *std::max_element(objective.cost.begin(), objective.cost.end());
    if (largest <= 0) continue;  // all alike
    // Rates in units of the target, costs in units of the dearest: coefficients of one size.
    Program program;
    program.WithoutPreprocessing();
    std::vector<std::pair<size_t, double>> work;
    for (size_t t = 0; t < problem.types.size(); ++t) {
      const FleetType& type = problem.types[t];
      const size_t column = program.Column("N_" + type.name, 0, most[t], true);
      // One node that carries more than all of it carries it: larger coefficients would only make
      // the solver lose its grip.
      work.push_back({column, std::min(1.0, RateOf(type) / problem.target)});
    }
    const size_t rate = program.Column("X", 0, kMostX, false);
    work.push_back({rate, -1});
    program.Row("nodes do X", work, 0, HUGE_VAL);
    program.Row("target", {{rate, 1}}, 1, HUGE_VAL);
    for (const FleetLimit& limit : problem.limits) {
      if (std::isfinite(limit.rows_per_s))
        program.Row(limit.name, {{rate, 1}}, -HUGE_VAL, limit.rows_per_s / problem.target);
    }
    for (const auto& [earlier, best] : held) {
      std::vector<std::pair<size_t, double>> terms;
      const double unit = best > 0 ? best : 1;
      for (size_t t = 0; t < problem.types.size(); ++t)
        terms.push_back({t, earlier->cost[t] / unit});
      program.Row("least " + earlier->name, terms, -HUGE_VAL, best / unit + kSlack);
    }
    std::vector<std::pair<size_t, double>> cost;
    for (size_t t = 0; t < problem.types.size(); ++t)
      cost.push_back({t, objective.cost[t] / largest});
    program.Objective(cost, false);
    if (lp != nullptr && lp->empty()) *lp = program.Lp();
    const std::optional<std::vector<double>> solution = program.Solve();
    if (!solution) return counts;
    double best = 0;
    counts.emplace();
    for (size_t t = 0; t < problem.types.size(); ++t) {
      counts->push_back(static_cast<int>(std::lround((*solution)[t])));
      best += objective.cost[t] * counts->back();
    }
    held.push_back({&objective, best});
  }
  return counts;
}

}  // namespace headrace::analysis
