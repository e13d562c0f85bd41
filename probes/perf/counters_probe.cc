#include "probes/perf/counters_probe.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include "base/registry.h"

namespace headrace::probes::perf {
namespace {

constexpr int64_t kTurnNs = 200'000'000;  // a turn of a group

const EventCode kTaskClock{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, 0};
const EventCode kMigrations{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 0, 0};

void ReportLosses(const ProcessCounters& counters, const std::string& probe, Sink& sink) {
  const int64_t all =
      counters.threads_attached() + counters.threads_without_room() + counters.threads_refused();
  sink.Lost(probe + ": threads beyond the limit of open files", counters.threads_without_room(),
            all);
  sink.Lost(probe + ": threads that may not be counted", counters.threads_refused(), all);
  sink.Lost(probe + ": groups that lost their place on the PMU", counters.groups_lost(),
            std::nullopt);
}

// Nothing if at least one thread is counted.
std::optional<Availability> NothingCounted(const ProcessCounters& counters, std::string_view what,
                                           const Host& host) {
  if (counters.threads_attached() > 0) return std::nullopt;
  if (counters.last_error() != 0) {
    const CounterAvailability why =
        ExplainOpen(counters.last_error(), what, Role::kAlone, true, LookAround(host));
    return Availability::Unavailable(why.reason, why.fix);
  }
  if (counters.threads_without_room() > 0) {
    return Availability::Unavailable("the limit of open files leaves no room for counters",
                                     "a higher limit of open files (ulimit -n, LimitNOFILE=)");
  }
  return std::nullopt;  // no process yet
}

ProcessCountersOptions Affordable() {
  ProcessCountersOptions options;
  options.most_handles = AffordableHandles();
  return options;
}

// {task clock, migrations}, or the clock alone where kernel events may not be counted.
EventPlan TaskClockPlan(PerfBackend& backend, bool* exclude_kernel, Availability* found,
                        const Host& host) {
  EventPlan plan;
  CounterGroup group(backend);
  OpenRequest request;
  request.inherit = request.threads_only = true;
  request.exclude_kernel = false;
  const std::vector<EventCode> both = {kTaskClock, kMigrations};
  plan.inherit = true;
  *exclude_kernel = false;
  auto opened = group.Open(request, both);
  if (!opened.ok() && opened.error == EINVAL) {
    request.inherit = request.threads_only = plan.inherit = false;
    opened = group.Open(request, both);
  }
  if (opened.ok()) {
    plan.groups = {{{"task_clock", "cpu_migrations"}, both}};
    *found = Availability::Ok("task clock and migrations of every thread");
    return plan;
  }
  const CounterAvailability why = ExplainOpen(opened.error, "task clock, kernel included",
                                              Role::kAlone, true, LookAround(host));
  request.exclude_kernel = true;
  *exclude_kernel = true;
  const std::vector<EventCode> clock = {kTaskClock};
  if (const auto alone = group.Open(request, clock); !alone.ok()) {
    plan.base = ExplainOpen(alone.error, "task clock", Role::kAlone, true, LookAround(host));
    *found = Availability::Unavailable(plan.base.reason, plan.base.fix);
    return plan;
  }
  plan.groups = {{{"task_clock"}, clock}};
  *found = Availability::Degraded("task clock only: " + why.reason,
                                  "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=1 or less");
  return plan;
}

}  // namespace

bool& OperatorCountersActive() {
  static bool active = false;
  return active;
}

CountersProbe::CountersProbe(Options options) : options_(std::move(options)) {}

Availability CountersProbe::Check(const Host& host) {
  const CounterSet set = CounterSet::OfThisMachine(host);
  return Summarise(PlanOfThisMachine(host, set), set);
}

Availability CountersProbe::Start(const Host& host, const Target& target) {
  host_ = &host;
  target_ = &target;
  if (!options_.plan && OperatorCountersActive()) {
    return Availability::Ok("the probe \"counters by operator\" counts every thread");
  }
  if (!options_.set) options_.set = CounterSet::OfThisMachine(host);
  EventPlan plan = options_.plan ? *options_.plan : PlanOfThisMachine(host, *options_.set);
  const Availability found = Summarise(plan, *options_.set);
  if (!found.usable()) return found;
  PerfBackend& backend = options_.backend ? *options_.backend : kernel_;
  counters_.emplace(backend, std::move(plan), options_.process.value_or(Affordable()));
  counters_->Follow(host, target);
  if (const auto nothing = NothingCounted(*counters_, "cycles", host)) {
    counters_.reset();
    return *nothing;
  }
  return found;
}

void CountersProbe::Read(Sink& sink) {
  if (!counters_) return;
  counters_->Follow(*host_, *target_);
  counters_->Read();
  for (const auto& [pid, process] : counters_->processes()) {
    Labels labels;
    labels.pid = pid;
    EmitCounters(counters_->plan(), *options_.set, process.totals, labels, sink);
  }
  ReportLosses(*counters_, "hardware counters", sink);
}

void CountersProbe::Stop() { counters_.reset(); }

Availability TaskClockProbe::Check(const Host& host) {
  if (!host.is_this_machine()) {
    return Availability::Unavailable("no running machine to count on", "a live host");
  }
  KernelBackend kernel;
  bool exclude_kernel;
  Availability found;
  TaskClockPlan(kernel, &exclude_kernel, &found, host);
  return found;
}

Availability TaskClockProbe::Start(const Host& host, const Target& target) {
  host_ = &host;
  target_ = &target;
  PerfBackend& backend = backend_ ? *backend_ : kernel_;
  ProcessCountersOptions options = Affordable();
  Availability found;
  EventPlan plan = TaskClockPlan(backend, &options.exclude_kernel, &found, host);
  if (!found.usable()) return found;
  counters_.emplace(backend, std::move(plan), options);
  counters_->Follow(host, target);
  if (const auto nothing = NothingCounted(*counters_, "task clock", host)) {
    counters_.reset();
    return *nothing;
  }
  return found;
}

void TaskClockProbe::Read(Sink& sink) {
  if (!counters_) return;
  counters_->Follow(*host_, *target_);
  counters_->Read();
  for (const auto& [pid, process] : counters_->processes()) {
    const GroupTotals& totals = process.totals[0];
    if (!totals.known()) continue;
    Measurement m;
    m.labels.pid = pid;
    m.metric = "task_clock_ns";
    m.value = totals.scaled[0];
    sink.Add(m);
    if (totals.scaled.size() < 2) continue;
    m.metric = "cpu_migrations_count";
    m.value = totals.scaled[1];
    sink.Add(m);
  }
  ReportLosses(*counters_, "task clock", sink);
}

void TaskClockProbe::Stop() { counters_.reset(); }

HR_PROBE("hardware counters",
         {.summary = "cycles, instructions, cache, TLB and branch misses, stalls and top-down of "
                     "every process (perf_event_open)",
          .affects = "instructions per cycle, cache misses, stalls and top-down, by process",
          // Saved and loaded at every switch of a thread: not for level 1.
          .level = 2,
          .period_ns = kTurnNs,
          .check = [](const Host& host) { return CountersProbe::Check(host); },
          .make = [] { return std::make_unique<CountersProbe>(); }});

// HR_PROBE names one variable: the second probe of a file has a scope of its own.
namespace task_clock {
HR_PROBE("task clock", {.summary = "time on a CPU to the nanosecond, and moves between CPUs, of "
                                   "every process (perf software events)",
                        .affects = "exact CPU time of processes and their moves between CPUs",
                        .level = 2,
                        // Costs at each switch of a thread, for what /proc knows nearly as well.
                        .deep_only = true,
                        .period_ns = kTurnNs,
                        .check = [](const Host& host) { return TaskClockProbe::Check(host); },
                        .make = [] { return std::make_unique<TaskClockProbe>(); }});
}  // namespace task_clock

}  // namespace headrace::probes::perf
