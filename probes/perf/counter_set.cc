#include "probes/perf/counter_set.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <map>

#include "probes/metric.h"

namespace headrace::probes::perf {
namespace {

constexpr size_t kWordsShown = 3;  // reasons of missing events in one sentence

EventCode Generic(uint64_t config) { return {PERF_TYPE_HARDWARE, config, 0, 0}; }
EventCode Cache(uint64_t cache, uint64_t result) {
  return {PERF_TYPE_HW_CACHE, cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | result << 16, 0, 0};
}

// The value of `terms` in one group; nothing if the group lacks an event.
std::optional<double> SumOf(const std::vector<DerivedMetric::Term>& terms,
                            const EventPlan::Group& group, const std::vector<double>& counts) {
  double sum = 0;
  for (const auto& [event, weight] : terms) {
    const auto it = std::find(group.names.begin(), group.names.end(), event);
    if (it == group.names.end()) return std::nullopt;
    sum += weight * counts[static_cast<size_t>(it - group.names.begin())];
  }
  return sum;
}

}  // namespace

CounterSet GenericCounterSet() {
  CounterSet set;
  set.cpu = "the kernel's generic events";
  const WishedEvent cycles{"cycles", Generic(PERF_COUNT_HW_CPU_CYCLES)};
  const WishedEvent instructions{"instructions", Generic(PERF_COUNT_HW_INSTRUCTIONS)};
  set.base.events = {cycles, instructions};
  set.rotated = {
      {{instructions,
        {"llc_references", Cache(PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
        {"llc_misses", Cache(PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_RESULT_MISS)}}},
      {{instructions,
        {"branches", Generic(PERF_COUNT_HW_BRANCH_INSTRUCTIONS)},
        {"branch_misses", Generic(PERF_COUNT_HW_BRANCH_MISSES)}}},
      {{instructions,
        {"dtlb_misses", Cache(PERF_COUNT_HW_CACHE_DTLB, PERF_COUNT_HW_CACHE_RESULT_MISS)}}},
      {{cycles,
        {"stall_frontend_cycles", Generic(PERF_COUNT_HW_STALLED_CYCLES_FRONTEND)},
        {"stall_backend_cycles", Generic(PERF_COUNT_HW_STALLED_CYCLES_BACKEND)}}}};
  set.derived = {{"ipc_ratio", {{"instructions"}}, {{"cycles"}}},
                 {"llc_miss_ratio", {{"llc_misses"}}, {{"llc_references"}}},
                 {"llc_misses_per_instruction_ratio", {{"llc_misses"}}, {{"instructions"}}},
                 {"branch_miss_ratio", {{"branch_misses"}}, {{"branches"}}},
                 {"branch_misses_per_instruction_ratio", {{"branch_misses"}}, {{"instructions"}}},
                 {"dtlb_misses_per_instruction_ratio", {{"dtlb_misses"}}, {{"instructions"}}},
                 {"stall_frontend_ratio", {{"stall_frontend_cycles"}}, {{"cycles"}}},
                 {"stall_backend_ratio", {{"stall_backend_cycles"}}, {{"cycles"}}}};
  return set;
}

CounterSet CounterSetOfThisCpu(const Host&) { return GenericCounterSet(); }

void EmitCounters(const EventPlan& plan, const CounterSet& set, const Totals& totals,
                  const Labels& labels, Sink& sink) {
  struct Best {
    double value, ratio;
  };
  std::map<std::string_view, Best> best;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (!totals[g].known()) continue;
    const double ratio = totals[g].running_ratio();
    for (size_t e = 0; e < plan.groups[g].names.size(); ++e) {
      const auto [it, fresh] =
          best.try_emplace(plan.groups[g].names[e], Best{totals[g].scaled[e], ratio});
      if (!fresh && ratio > it->second.ratio) it->second = {totals[g].scaled[e], ratio};
    }
  }
  Measurement m;
  m.labels = labels;
  for (const auto& [event, value] : best) {
    const Metric* metric = FindMetric(fmt::format("{}_count", event));
    if (!metric) continue;
    m.metric = metric->name;
    m.value = value.value;
    m.running_ratio = value.ratio;
    sink.Add(m);
  }
  for (const DerivedMetric& derived : set.derived) {
    const Metric* metric = FindMetric(derived.metric);
    if (!metric) continue;
    for (size_t g = 0; g < plan.groups.size(); ++g) {
      const auto over = SumOf(derived.over, plan.groups[g], totals[g].interval);
      const auto under = SumOf(derived.under, plan.groups[g], totals[g].interval);
      if (!over || !under) continue;
      if (totals[g].fresh && *under > 0 && *over >= 0) {
        m.metric = metric->name;
        m.value = *over / *under;
        m.running_ratio = totals[g].running_ratio();
        sink.Add(m);
      }
      break;  // the first group that has all of it, always the same
    }
  }
}

Availability Summarise(const EventPlan& plan, const CounterSet& set) {
  if (!plan.base.ok()) return Availability::Unavailable(plan.base.reason, plan.base.fix);
  std::string counted;
  std::vector<std::string> seen;
  for (const EventPlan::Group& group : plan.groups) {
    for (const std::string& name : group.names) {
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      if (!FindMetric(name + "_count")) continue;
      counted += (counted.empty() ? "" : ", ") + name;
    }
  }
  std::replace(counted.begin(), counted.end(), '_', ' ');
  if (plan.missing.empty()) return Availability::Ok(fmt::format("{} ({})", counted, set.cpu));
  std::string missing, fix;
  for (size_t i = 0; i < plan.missing.size(); ++i) {
    const auto& [name, why] = plan.missing[i];
    if (fix.empty()) fix = why.fix;
    if (i == kWordsShown) missing += fmt::format("; and {} more", plan.missing.size() - i);
    if (i < kWordsShown) missing += (i == 0 ? "" : "; ") + why.reason;
  }
  return Availability::Degraded(fmt::format("{} count ({}); not to be had: {}", counted, set.cpu,
                                            missing),
                                fix);
}

}  // namespace headrace::probes::perf
