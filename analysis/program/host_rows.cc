#include "analysis/program/host_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/infinite.h"

namespace headrace::analysis {
HostRows::HostRows(const HostProblem& problem, Lists lists, double unit_s, bool memory,
                   const std::vector<double>* shares)
    : problem_(problem),
      lists_(std::move(lists)),
      unit_s_(unit_s),
      memory_(memory && std::isfinite(problem.memory_bytes)),
      shares_(shares),
      behind_(SitesBehind(problem)) {
  // CBC's preprocessing was seen to lose an optimum (program.h).
  program_.WithoutPreprocessing();
  AddSets();
  AddChoices();
  AddSites();
  AddMemory();
}

void HostRows::AddTimes() {
  for (const CachePhase phase : {kWarm, kFill}) {
    if (!Counts(problem_, phase)) continue;
    time_[phase] = program_.Column(phase == kWarm ? "T" : "T_fill", problem_.least_s / unit_s_,
                                   HUGE_VAL, false);
    for (size_t s = 0; s < problem_.stages.size(); ++s) AddStageTime(s, phase);
    AddShared(phase, Sum{0, {{*time_[phase], 1}}}, std::nullopt);
  }
}

Terms HostRows::TimeTerms() const {
  Terms terms;
  for (const CachePhase phase : {kWarm, kFill}) {
    const double weight = WeightOf(problem_, phase);
    if (time_[phase] && weight > 0) terms.push_back({*time_[phase], weight});
  }
  return terms;
}

void HostRows::AddRates(double batch_s, double fill_s, size_t cores) {
  for (const CachePhase phase : {kWarm, kFill}) {
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

Sum HostRows::Load(size_t s, CachePhase phase) const {
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

Sum HostRows::CoresLoad(CachePhase phase) const {
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

void HostRows::AddRelief(const std::vector<std::optional<size_t>>& changed) {
  if (!memory_) return;
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
  // Less what the memory row lets pass.
  const double needed = bytes - problem_.memory_bytes * (1 + kRound) - kSolverBytes;
  if (needed <= 0) return;
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

Terms HostRows::Workers(size_t s) const {
  return OverChoices(s, [](const StageChoice& choice) { return choice.workers; });
}

void HostRows::AtLeast(const std::string& name, Terms terms, const Sum& sum) {
  for (const auto& [column, value] : sum.terms) terms.push_back({column, -value});
  if (terms.empty() && sum.constant <= 1e-6) return;  // holds whatever is chosen
  program_.Row(name, std::move(terms), sum.constant, HUGE_VAL);
}

HostSolution HostRows::Read(const std::vector<double>& values) const {
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
    solution.kept.push_back(used ? std::clamp(values[kept_[k]], 0.0, MostKept(problem_, k)) : 0.0);
  }
  return solution;
}

std::string HostRows::Name(const char* what, size_t s, CachePhase phase) const {
  return fmt::format("{}_{}{}", what, problem_.stages[s].name, phase == kFill ? "_fill" : "");
}

void HostRows::AddKept(const std::vector<double>& of, Sum* sum) const {
  for (size_t k = 0; k < of.size(); ++k) {
    if (of[k] != 0) sum->terms.push_back({kept_[k], of[k] / unit_s_});
  }
}

void HostRows::AddSets() {
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

void HostRows::AddChoices() {
  for (size_t s = 0; s < problem_.stages.size(); ++s) {
    const HostStage& stage = problem_.stages[s];
    auto& columns = chosen_.emplace_back();
    for (size_t m = 0; m < lists_[s].size(); ++m) {
      std::vector<size_t>& list = columns.emplace_back();
      const std::string mode =
          stage.set ? fmt::format("_{}", problem_.sets[*stage.set].modes[m].value) : std::string();
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

void HostRows::AddSites() {
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
    program_.Row("kept_" + name, {{uses_[k], MostKept(problem_, k)}, {kept_[k], -1}}, 0, HUGE_VAL);
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

void HostRows::AddMemory() {
  Terms terms;
  double rest = problem_.memory_bytes * (1 + kRound) - problem_.fixed_bytes;
  for (size_t s = 0; s < problem_.stages.size(); ++s) {
    const HostStage& stage = problem_.stages[s];
    queues_.emplace_back();
    bool own = false;
    for (const std::vector<StageChoice>& list : lists_[s]) {
      for (const StageChoice& choice : list) own = own || choice.queue == 0;
    }
    if (!memory_) continue;
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
  if (!memory_) return;
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

void HostRows::AddStageTime(size_t s, CachePhase phase) {
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
      const size_t part = program_.Column(
          fmt::format("v_{}_{}_{}{}", problem_.stages[s].name, m, o, phase == kFill ? "_fill" : ""),
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

void HostRows::AddShared(CachePhase phase, const Sum& time, std::optional<size_t> cores) {
  const char* fill = phase == kFill ? "_fill" : "";
  const auto add = [&](const std::string& name, double servers, Sum load) {
    Terms terms;
    for (const auto& [column, value] : time.terms) terms.push_back({column, servers * value});
    load.constant -= servers * time.constant;
    AtLeast(name + fill, std::move(terms), load);
  };
  if (cores) {
    AtLeast(std::string("cores") + fill, {{*cores, time.constant}}, CoresLoad(phase));
  }
  // Whole cores that are bought can be more than those there are.
  if (std::isfinite(problem_.cores) && (!cores || problem_.price_per_core_hour)) {
    add(cores ? "cores_there" : "cores", problem_.cores, CoresLoad(phase));
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

}  // namespace headrace::analysis
