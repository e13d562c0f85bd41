#include "probes/perf/counter_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "probes/metric.h"

namespace headrace::probes::perf {
namespace {

constexpr size_t kReasonsShown = 2;
constexpr std::string_view kSlotsPerCycle = "slots_per_cycle";

std::optional<double> ValueIn(const std::vector<std::string>& names,
                              const std::vector<double>& values, std::string_view word) {
  for (size_t i = 0; i < std::min(names.size(), values.size()); ++i) {
    if (names[i] == word) return values[i];
  }
  return std::nullopt;
}

bool Has(const EventPlan::Group& group, std::string_view word) {
  return std::find(group.names.begin(), group.names.end(), word) != group.names.end();
}

// The group of the plan that a formula is computed from: the first with all of its words, those of
// the base group aside.
std::optional<size_t> GroupOf(const EventPlan& plan, const CounterSet& set,
                              const Formula& formula) {
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const auto& words = formula.expression.words();
    const bool all = std::all_of(words.begin(), words.end(), [&](std::string_view word) {
      return (word == kSlotsPerCycle && set.slots_per_cycle) || Has(plan.groups[g], word) ||
             Has(plan.groups[0], word);
    });
    if (all) return g;
  }
  return std::nullopt;
}

}  // namespace

CounterSet::CounterSet(const CpuFamily& f, std::optional<double> slots)
    : family(&f), slots_per_cycle(slots) {
  for (const CatalogueGroup& group : f.groups) {
    WishedGroup wished;
    wished.whole = group.whole;
    for (const std::string_view word : group.words) {
      if (const CatalogueEvent* event = f.Find(word)) {
        wished.events.push_back({std::string(word), event->code});
      }
    }
    if (&group == &f.groups[0])
      base = std::move(wished);
    else if (!wished.events.empty())
      rotated.push_back(std::move(wished));
  }
}

CounterSet CounterSet::OfThisMachine(const Host& host) {
  const CpuFamily& family = FindFamily(ReadCpuId(host));
  return CounterSet(family, SlotsPerCycle(family, host));
}

void EmitCounters(const EventPlan& plan, const CounterSet& set, const Totals& totals,
                  const Labels& labels, Sink& sink) {
  struct Best {
    double value, ratio;
  };
  std::map<std::string_view, Best> best;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (!totals[g].known()) continue;
    const Best seen{0, totals[g].running_ratio()};
    for (size_t e = 0; e < plan.groups[g].names.size(); ++e) {
      const auto [it, fresh] = best.try_emplace(plan.groups[g].names[e], seen);
      if (fresh || seen.ratio > it->second.ratio) it->second = {totals[g].scaled[e], seen.ratio};
    }
  }
  Measurement m;
  m.labels = labels;
  for (const auto& [word, value] : best) {
    const auto name = MetricOfWord(word);
    const Metric* metric = name ? FindMetric(*name) : nullptr;
    if (!metric) continue;
    m.metric = metric->name;
    m.value = value.value;
    m.running_ratio = value.ratio;
    sink.Add(m);
  }
  for (const CatalogueGroup& group : set.family->groups) {
    for (const Formula& formula : group.formulas) {
      const Metric* metric = FindMetric(formula.metric);
      const auto g = GroupOf(plan, set, formula);
      if (!metric || !g || !totals[*g].fresh) continue;
      const auto value = formula.Evaluate([&](std::string_view word) -> std::optional<double> {
        if (word == kSlotsPerCycle) return set.slots_per_cycle;
        if (const auto own = ValueIn(plan.groups[*g].names, totals[*g].turn, word)) return own;
        return ValueIn(plan.groups[0].names, totals[*g].turn_base, word);
      });
      if (!value) continue;
      m.metric = metric->name;
      m.value = *value;
      m.running_ratio = totals[*g].running_ratio();
      sink.Add(m);
    }
  }
}

Availability Summarise(const EventPlan& plan, const CounterSet& set) {
  if (!plan.base.ok()) return Availability::Unavailable(plan.base.reason, plan.base.fix);
  std::string counted;
  std::vector<std::string> seen;
  for (const EventPlan::Group& group : plan.groups) {
    for (const std::string& name : group.names) {
      if (!MetricOfWord(name) || std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      counted += (counted.empty() ? "" : ", ") + name;
    }
  }
  std::replace(counted.begin(), counted.end(), '_', ' ');
  counted = fmt::format("{}: {}", set.family->name, counted);
  if (plan.missing.empty()) return Availability::Ok(counted);
  std::string missing, fix;
  for (size_t i = 0; i < plan.missing.size(); ++i) {
    const auto& [name, why] = plan.missing[i];
    if (fix.empty()) fix = why.fix;
    if (i == kReasonsShown) missing += fmt::format("; and {} more", plan.missing.size() - i);
    if (i < kReasonsShown) missing += (i == 0 ? "" : "; ") + why.reason;
  }
  return Availability::Degraded(fmt::format("{}; not: {}", counted, missing), fix);
}

EventPlan PlanOfThisMachine(const Host& host, const CounterSet& set) {
  static std::mutex mutex;
  static std::optional<EventPlan> works;
  std::lock_guard lock(mutex);
  if (works) return *works;
  if (!host.is_this_machine()) {
    EventPlan none;
    none.base = {CounterState::kNoPmu, "no running machine to count on", "a live host"};
    return none;
  }
  KernelBackend kernel;
  ProofOptions options;
  options.around = LookAround(host);
  EventPlan plan = ProveEvents(kernel, set.base, set.rotated, options);
  if (plan.base.ok()) works = plan;
  return plan;
}

}  // namespace headrace::probes::perf
