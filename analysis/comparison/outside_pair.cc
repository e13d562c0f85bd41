#include "analysis/comparison/outside_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/comparison/attribution_rows.h"
#include "analysis/outside/outside.h"
#include "analysis/thresholds.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

// Seconds of one run, by name.
struct Times {
  double wall_s = 0;
  std::map<std::string, double> main;         // parts of the wall time
  std::map<std::string, CostFigures> groups;  // of threads
};

std::string NameOf(const Outside& outside, const ThreadGroup& group) {
  const std::string& kind = outside.kinds[group.kind].name;
  if (group.main) return Printable(kind) + kMainSuffix;
  return fmt::format("{} of {}", Printable(group.thread), Printable(kind));
}

// The group whose time is the run's: of the consumer, or the one that works most among main
// threads.
std::optional<size_t> MainGroup(const Outside& outside) {
  for (const OutsideUnit& unit : outside.units) {
    if (unit.role == UnitRole::kConsumer) return unit.key_group;
  }
  std::optional<size_t> best;
  for (size_t g = 0; g < outside.groups.size(); ++g) {
    if (!outside.groups[g].main) continue;
    if (!best || outside.groups[g].time.total() > outside.groups[*best].time.total()) best = g;
  }
  return best;
}

std::optional<Times> TimesOf(const RunView& run, std::string* why) {
  const Outside outside = LookFromOutside(run);
  if (outside.groups.empty()) {
    *why = "the times of its threads were not recorded";
    return std::nullopt;
  }
  Times times;
  times.wall_s = static_cast<double>(run.run.duration_ns) * 1e-9;
  for (const ThreadGroup& group : outside.groups) {
    CostFigures& cost = times.groups[NameOf(outside, group)];
    cost.cpu_s += group.time.on_cpu_s;
    cost.blocked_s += group.time.blocked();
  }
  const std::optional<size_t> main = MainGroup(outside);
  if (!main || times.wall_s <= 0) {
    *why = "none of its threads is the one that the others work for";
    return std::nullopt;
  }
  const ThreadGroup& group = outside.groups[*main];
  const double threads = std::max(1.0, group.threads_count);
  const std::string of = " of " + NameOf(outside, group);
  times.main["CPU time" + of] = group.time.on_cpu_s / threads;
  times.main["time runnable without a core" + of] = group.time.runnable_s / threads;
  for (size_t c = 0; c < kNumWaitCauses; ++c) {
    const double waited_s = group.time.blocked_s[c] / threads;
    if (waited_s <= 0) continue;
    const WaitCause cause = static_cast<WaitCause>(c);
    // Waits that another group of the run ended are waits for that group.
    double known_s = 0;
    for (const WakeEdge& edge : outside.edges) {
      if (edge.wakee != *main || edge.cause != cause || !edge.waker || *edge.waker == *main) {
        continue;
      }
      const double wait_s = std::min(edge.wait_s / threads, waited_s - known_s);
      times.main["waits for " + NameOf(outside, outside.groups[*edge.waker])] += wait_s;
      known_s += wait_s;
    }
    times.main[fmt::format("waits ({}){}", WaitCauseName(cause), of)] += waited_s - known_s;
  }
  return times;
}

double At(const std::map<std::string, double>& times, const std::string& name) {
  const auto it = times.find(name);
  return it == times.end() ? 0 : it->second;
}

Times MeanOf(const std::vector<const Times*>& runs) {
  Times mean;
  const double each = 1 / static_cast<double>(runs.size());
  for (const Times* run : runs) {
    mean.wall_s += each * run->wall_s;
    for (const auto& [name, seconds] : run->main) mean.main[name] += each * seconds;
    for (const auto& [name, cost] : run->groups) {
      mean.groups[name].cpu_s += each * cost.cpu_s;
      mean.groups[name].blocked_s += each * cost.blocked_s;
    }
  }
  return mean;
}

Times MeanOf(const std::vector<Times>& runs) {
  std::vector<const Times*> all;
  for (const Times& run : runs) all.push_back(&run);
  return MeanOf(all);
}

// Parts of ln(wall A / wall B), which is the change of the rate.
double PartOf(const Times& a, const Times& b, const std::string& name) {
  return (At(a.main, name) - At(b.main, name)) / LogMean(a.wall_s, b.wall_s);
}

// The times of each run of one side; absent with the reason if those of one are not known.
std::optional<std::vector<Times>> TimesOfSide(std::span<const RunView> runs, std::string* why) {
  std::vector<Times> all;
  for (const RunView& run : runs) {
    std::string reason;
    std::optional<Times> one = TimesOf(run, &reason);
    if (!one) {
      *why = fmt::format("run {}: {}", Printable(run.run.name), reason);
      return std::nullopt;
    }
    all.push_back(std::move(*one));
  }
  return all;
}

// The mean of the drawn runs, disturbed by what separates runs of the same program.
Times DisturbedMean(const std::vector<const Times*>& drawn, Random* random) {
  Times mean = MeanOf(drawn);
  const double deviation = kRunDeviation / std::sqrt(static_cast<double>(drawn.size()));
  for (auto& [name, seconds] : mean.main) seconds *= std::exp(deviation * random->Normal());
  mean.wall_s *= std::exp(deviation * random->Normal());
  return mean;
}

// What resampling the runs makes of the change and of its parts.
struct Draws {
  std::vector<double> log_ratios;                    // of the wall times
  std::map<std::string, std::vector<double>> parts;  // by part of the wall time
  std::vector<double> rests;                         // what no part explains
};

Draws Resample(const std::vector<Times>& runs_a, const std::vector<Times>& runs_b, bool paired,
               const AttributionOptions& options) {
  Draws draws;
  for (const std::vector<Times>* runs : {&runs_a, &runs_b}) {
    for (const Times& run : *runs) {
      for (const auto& [name, seconds] : run.main) draws.parts[name];
    }
  }
  Random random(options.seed);
  for (size_t d = 0; d < options.draws; ++d) {
    std::vector<const Times*> some_a, some_b;
    for (size_t i = 0; i < runs_a.size(); ++i) {
      const size_t pick = random.Below(runs_a.size());
      some_a.push_back(&runs_a[pick]);
      if (paired) some_b.push_back(&runs_b[pick]);
    }
    for (size_t i = 0; !paired && i < runs_b.size(); ++i) {
      some_b.push_back(&runs_b[random.Below(runs_b.size())]);
    }
    const Times a = DisturbedMean(some_a, &random);
    const Times b = DisturbedMean(some_b, &random);
    double rest = std::log(a.wall_s / b.wall_s);
    draws.log_ratios.push_back(rest);
    for (auto& [name, values] : draws.parts) {
      values.push_back(PartOf(a, b, name));
      rest -= values.back();
    }
    draws.rests.push_back(rest);
  }
  return draws;
}

// One row for each part of the time of the thread that all wait for.
void AddCauses(const Times& a, const Times& b, const Draws& draws, Attribution* result) {
  for (const auto& [name, values] : draws.parts) {
    AttributionRow row;
    row.to = AttributedTo::kCause;
    row.name = name;
    row.setting_a = At(a.main, name);
    row.setting_b = At(b.main, name);
    row.throughput.value = PartOf(a, b, name);
    row.throughput.interval = IntervalAround(row.throughput.value, values, kAttributionLevel);
    row.told = row.throughput.interval.low > 0 || row.throughput.interval.high < 0;
    result->explained += row.throughput.value;
    result->rows.push_back(std::move(row));
  }
}

// One row for each group of threads, with its share of the change of all threads' times.
void AddGroups(const Times& a, const Times& b, Attribution* result) {
  std::set<std::string> names;
  for (const Times* side : {&a, &b}) {
    for (const auto& [name, cost] : side->groups) names.insert(name);
  }
  std::vector<AttributionRow> rows;
  for (const std::string& name : names) {
    AttributionRow& row = rows.emplace_back();
    row.to = AttributedTo::kGroup;
    row.name = name;
    if (a.groups.contains(name)) row.a = a.groups.at(name);
    if (b.groups.contains(name)) row.b = b.groups.at(name);
    const CostFigures of_a = row.a.value_or(CostFigures()), of_b = row.b.value_or(CostFigures());
    result->total_a.cpu_s += of_a.cpu_s;
    result->total_b.cpu_s += of_b.cpu_s;
    result->total_a.blocked_s += of_a.blocked_s;
    result->total_b.blocked_s += of_b.blocked_s;
  }
  const double cpu = LogMean(result->total_a.cpu_s, result->total_b.cpu_s);
  const double blocked = LogMean(result->total_a.blocked_s, result->total_b.blocked_s);
  for (AttributionRow& row : rows) {
    const CostFigures of_a = row.a.value_or(CostFigures()), of_b = row.b.value_or(CostFigures());
    if (cpu > 0) row.cpu_share = (of_b.cpu_s - of_a.cpu_s) / cpu;
    if (blocked > 0) row.blocked_share = (of_b.blocked_s - of_a.blocked_s) / blocked;
    result->rows.push_back(std::move(row));
  }
}

}  // namespace

Attribution AttributeFromOutside(std::span<const RunView> a, std::span<const RunView> b,
                                 const AttributionOptions& options) {
  std::string why;
  const std::optional<std::vector<Times>> runs_a = TimesOfSide(a, &why);
  if (!runs_a) return UnavailableAttribution(why);
  const std::optional<std::vector<Times>> runs_b = TimesOfSide(b, &why);
  if (!runs_b) return UnavailableAttribution(why);
  const Times mean_a = MeanOf(*runs_a), mean_b = MeanOf(*runs_b);
  Attribution result;
  result.unit = "run";
  result.runs_a = a.size();
  result.runs_b = b.size();
  result.paired = a.size() == b.size();
  result.seed = options.seed;
  result.rate_a = 1 / mean_a.wall_s;
  result.rate_b = 1 / mean_b.wall_s;
  result.bytes_unavailable = "not instrumented";
  const double measured = std::log(mean_a.wall_s / mean_b.wall_s);
  result.log_ratio.value = options.log_ratio.value_or(measured);
  const Draws draws = Resample(*runs_a, *runs_b, result.paired, options);
  if (!draws.log_ratios.empty())
    result.log_ratio.interval = IntervalAround(measured, draws.log_ratios, kAttributionLevel);
  AddCauses(mean_a, mean_b, draws, &result);
  AddGroups(mean_a, mean_b, &result);
  const double left = measured - result.explained;
  CloseRows(options, measured, "another time than the recording's",
            "not explained by the main thread",
            {left, IntervalAround(left, draws.rests, kAttributionLevel)}, &result);
  result.method =
      "no operators: parts of the time of the thread that all wait for, differences over the "
      "logarithmic mean";
  result.notes.emplace_back(
      "the unit is the run, as rows were not counted: the sides are taken to do "
      "the same work");
  return result;
}

}  // namespace headrace::analysis
