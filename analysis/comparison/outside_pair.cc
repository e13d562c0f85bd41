#include "analysis/comparison/outside_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

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

}  // namespace

Attribution AttributeFromOutside(std::span<const RunView> a, std::span<const RunView> b,
                                 const AttributionOptions& options) {
  std::vector<Times> runs_a, runs_b;
  for (const auto& [runs, times] : {std::pair{a, &runs_a}, std::pair{b, &runs_b}}) {
    for (const RunView& run : runs) {
      std::string why;
      std::optional<Times> one = TimesOf(run, &why);
      if (!one)
        return UnavailableAttribution(fmt::format("run {}: {}", Printable(run.run.name), why));
      times->push_back(std::move(*one));
    }
  }
  const Times mean_a = MeanOf(runs_a), mean_b = MeanOf(runs_b);
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

  std::map<std::string, std::vector<double>> drawn;
  for (const Times* mean : {&mean_a, &mean_b}) {
    for (const auto& [name, seconds] : mean->main) drawn[name];
  }
  std::vector<double> ratios, rests;
  Random random(options.seed);
  for (size_t d = 0; d < options.draws; ++d) {
    std::vector<const Times*> some_a, some_b;
    for (size_t i = 0; i < runs_a.size(); ++i) {
      const size_t pick = random.Below(runs_a.size());
      some_a.push_back(&runs_a[pick]);
      if (result.paired) some_b.push_back(&runs_b[pick]);
    }
    for (size_t i = 0; !result.paired && i < runs_b.size(); ++i) {
      some_b.push_back(&runs_b[random.Below(runs_b.size())]);
    }
    Times one_a = MeanOf(some_a), one_b = MeanOf(some_b);
    for (Times* one : {&one_a, &one_b}) {
      const size_t runs = one == &one_a ? runs_a.size() : runs_b.size();
      const double deviation = kRunDeviation / std::sqrt(static_cast<double>(runs));
      for (auto& [name, seconds] : one->main) seconds *= std::exp(deviation * random.Normal());
      one->wall_s *= std::exp(deviation * random.Normal());
    }
    double rest = std::log(one_a.wall_s / one_b.wall_s);
    ratios.push_back(rest);
    for (auto& [name, values] : drawn) {
      values.push_back(PartOf(one_a, one_b, name));
      rest -= values.back();
    }
    rests.push_back(rest);
  }
  for (auto& [name, values] : drawn) {
    AttributionRow row;
    row.to = AttributedTo::kCause;
    row.name = name;
    row.setting_a = At(mean_a.main, name);
    row.setting_b = At(mean_b.main, name);
    row.throughput.value = PartOf(mean_a, mean_b, name);
    row.throughput.interval = IntervalAround(row.throughput.value, values, kAttributionLevel);
    row.told = row.throughput.interval.low > 0 || row.throughput.interval.high < 0;
    result.explained += row.throughput.value;
    result.rows.push_back(std::move(row));
  }
  if (!ratios.empty())
    result.log_ratio.interval = IntervalAround(measured, ratios, kAttributionLevel);
  std::map<std::string, bool> names;
  for (const auto& [name, cost] : mean_a.groups) names[name] = true;
  for (const auto& [name, cost] : mean_b.groups) names[name] = true;
  for (const auto& [name, there] : names) {
    AttributionRow row;
    row.to = AttributedTo::kGroup;
    row.name = name;
    if (mean_a.groups.contains(name)) row.a = mean_a.groups.at(name);
    if (mean_b.groups.contains(name)) row.b = mean_b.groups.at(name);
    const CostFigures none, &of_a = row.a ? *row.a : none, &of_b = row.b ? *row.b : none;
    result.total_a.cpu_s += of_a.cpu_s;
    result.total_b.cpu_s += of_b.cpu_s;
    result.total_a.blocked_s += of_a.blocked_s;
    result.total_b.blocked_s += of_b.blocked_s;
    result.rows.push_back(std::move(row));
  }
  const double cpu = LogMean(result.total_a.cpu_s, result.total_b.cpu_s);
  const double blocked = LogMean(result.total_a.blocked_s, result.total_b.blocked_s);
  for (AttributionRow& row : result.rows) {
    if (row.to != AttributedTo::kGroup) continue;
    const CostFigures none, &of_a = row.a ? *row.a : none, &of_b = row.b ? *row.b : none;
    if (cpu > 0) row.cpu_share = (of_b.cpu_s - of_a.cpu_s) / cpu;
    if (blocked > 0) row.blocked_share = (of_b.blocked_s - of_a.blocked_s) / blocked;
  }
  const double left = measured - result.explained;
  CloseRows(options, measured, "another time than the recording's",
            "not explained by the main thread",
            {left, IntervalAround(left, rests, kAttributionLevel)}, &result);
  result.method =
      "no operators: parts of the time of the thread that all wait for, differences over the "
      "logarithmic mean";
  result.notes.emplace_back(
      "the unit is the run, as rows were not counted: the sides are taken to do "
      "the same work");
  return result;
}

}  // namespace headrace::analysis
