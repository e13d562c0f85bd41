#include "dashboards/export/run_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "dashboards/export/escape.h"
#include "dashboards/export/export.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using collectors::ReadStore;
using collectors::SqlResult;

constexpr double kNs = 1e9, kAsItIs = 1;  // divisors

// A metric made of a column of a summary view.
struct ViewMetric {
  const char* column;
  const char* name;
  const char* unit;
  double divisor;
  bool counter;
  const char* help;
};
// A view, its columns that are labels, and its metrics.
struct ViewMetrics {
  const char* view;
  std::vector<const char*> labels;
  std::vector<ViewMetric> metrics;
};

const std::vector<ViewMetrics>& MetricsOfViews() {
  static const std::vector<ViewMetrics> views = {
      {"step_summary",
       {},
       {{"steps_count", "steps", "", kAsItIs, true, "Steps of the trainer"},
        {"rows_count", "rows", "", kAsItIs, true, "Rows that the trainer took"},
        {"wait_ns", "step_wait", "seconds", kNs, true, "Time the trainer waited for batches"},
        {"compute_ns", "step_compute", "seconds", kNs, true, "Time the trainer worked on batches"},
        {"wall_ns", "step_wall", "seconds", kNs, true,
         "Time from the begin of the first step to the end of the last"},
        {"step_p50_ns", "step_p50", "seconds", kNs, false, "Half of the steps took at most this"},
        {"step_p99_ns", "step_p99", "seconds", kNs, false, "99 of 100 steps took at most this"}}},
      {"stage_summary",
       {"stage"},
       {{"parallelism_count", "stage_threads", "", kAsItIs, false,
         "Threads set for the stage, mean over its life"},
        {"lifetime_ns", "stage_lifetime", "seconds", kNs, true,
         "Time the stage's threads lived, summed over them"},
        {"on_cpu_ns", "stage_on_cpu", "seconds", kNs, true,
         "Time the stage's threads were on a CPU, as the scheduler counts it"},
        {"runnable_ns", "stage_runnable", "seconds", kNs, true,
         "Time the stage's threads waited for a CPU"},
        {"unattributed_ns", "stage_unattributed", "seconds", kNs, true,
         "Time of the stage's threads outside every operator"}}},
      {"operator_summary",
       {"stage", "operator"},
       {{"completions_count", "operator_completions", "", kAsItIs, true,
         "Elements the operator finished"},
        {"rows_count", "operator_rows", "", kAsItIs, true, "Rows the operator finished"},
        {"bytes_in_bytes", "operator_in", "bytes", kAsItIs, true, "Bytes the operator took"},
        {"bytes_out_bytes", "operator_out", "bytes", kAsItIs, true, "Bytes the operator gave"},
        {"busy_ns", "operator_busy", "seconds", kNs, true,
         "Time in the operator: on a CPU, blocked, and waiting for a CPU"},
        {"on_cpu_ns", "operator_on_cpu", "seconds", kNs, true,
         "Part of the operator's time on a CPU"},
        {"blocked_ns", "operator_blocked", "seconds", kNs, true,
         "Part of the operator's time blocked, locks included"},
        {"runnable_ns", "operator_runnable", "seconds", kNs, true,
         "Part of the operator's time waiting for a CPU"},
        {"lock_wait_ns", "operator_lock_wait", "seconds", kNs, true,
         "Part of the operator's time waiting for locks and devices"},
        {"wait_in_ns", "operator_wait_in", "seconds", kNs, true,
         "Time its threads waited for an element from upstream"},
        {"wait_out_ns", "operator_wait_out", "seconds", kNs, true,
         "Time its threads waited for room downstream"},
        {"enters_count", "operator_visits", "", kAsItIs, true,
         "Times a thread entered the operator"}}},
      {"queue_summary",
       {"queue"},
       {{"capacity_count", "queue_capacity", "", kAsItIs, false,
         "Elements the queue holds at most"},
        {"mean_occupancy_ratio", "queue_fill", "ratio", kAsItIs, false,
         "Share of the queue's capacity in use, mean over time"},
        {"full_ratio", "queue_full", "ratio", kAsItIs, false,
         "Share of time in which the queue was full"},
        {"empty_ratio", "queue_empty", "ratio", kAsItIs, false,
         "Share of time in which the queue was empty"},
        {"puts_count", "queue_puts", "", kAsItIs, true, "Elements put into the queue"},
        {"gets_count", "queue_gets", "", kAsItIs, true, "Elements taken from the queue"}}},
      {"resource_summary",
       {"resource", "kind"},
       {{"acquisitions_count", "resource_acquisitions", "", kAsItIs, true,
         "Times the lock or device was taken"},
        {"wait_ns", "resource_wait", "seconds", kNs, true,
         "Time threads waited for it, summed over them"},
        {"hold_ns", "resource_hold", "seconds", kNs, true, "Time it was held, summed over holders"},
        {"moved_bytes", "resource_moved", "bytes", kAsItIs, true,
         "Bytes moved through the device"}}},
      {"loss_summary",
       {"what"},
       {{"lost_count", "lost_events", "", kAsItIs, true,
         "Events of the recording that were lost, by kind"}}}};
  return views;
}

constexpr const char* kRunInfoHelp = "What the run is: 1, with labels that say so";
constexpr const char* kRunStateHelp = "State of the run: 1, with the state as a label";
constexpr const char* kRunDurationHelp = "Length of the recording";
constexpr const char* kRunStartHelp = "When the run began, since 1970";
constexpr const char* kProbeHelp =
    "1 where the probe works, 0 where it does not, with its state as a label";

MetricFamily FamilyOf(const ViewMetric& metric) {
  return {metric.name, metric.unit, metric.counter, metric.help, {}};
}

using Labels = std::vector<std::pair<std::string, std::string>>;

// Labels of other people's names: those that are empty say nothing.
void AddLabel(const std::string& name, const std::string& value, Labels* labels) {
  if (!value.empty()) labels->emplace_back(name, value);
}

void AddRun(const ExportedRun& run, std::vector<MetricFamily>* families) {
  const auto add = [&](const char* name, const char* unit, const char* help, const Labels& labels,
                       double value) {
    families->push_back({name, unit, false, help, {}});
    families->back().samples.push_back({labels, value});
  };
  Labels id;
  AddLabel("run", std::to_string(run.run_id), &id);
  Labels about = id, state = id;
  AddLabel("name", run.name, &about);
  AddLabel("program", run.program, &about);
  AddLabel("host", run.hostname, &about);
  AddLabel("tags", run.tags, &about);
  AddLabel("headrace_version", run.headrace_version, &about);
  AddLabel("measurement_level", std::to_string(run.accounting_level), &about);
  AddLabel("state", run.state, &state);
  add("run_info", "", kRunInfoHelp, about, 1);
  add("run_state", "", kRunStateHelp, state, 1);
  add("run_duration", "seconds", kRunDurationHelp, id, static_cast<double>(run.duration_ns) / kNs);
  add("run_start_time", "seconds", kRunStartHelp, id,
      static_cast<double>(run.started_realtime_ns) / kNs);
}

void AddView(ReadStore& store, int64_t run_id, const ViewMetrics& view,
             std::vector<MetricFamily>* families) {
  std::string columns = "run_id";
  for (const char* label : view.labels) columns += fmt::format(", {}", label);
  for (const ViewMetric& metric : view.metrics) columns += fmt::format(", {}", metric.column);
  const SqlResult rows =
      store.Query(fmt::format("SELECT {} FROM {} WHERE run_id = ?1", columns, view.view), {run_id});
  for (size_t m = 0; m < view.metrics.size(); ++m) {
    MetricFamily family = FamilyOf(view.metrics[m]);
    for (const auto& row : rows.rows) {
      const auto value = NumberOf(row[1 + view.labels.size() + m]);
      if (!value) continue;
      Labels labels = {{"run", std::to_string(run_id)}};
      for (size_t l = 0; l < view.labels.size(); ++l) {
        AddLabel(view.labels[l], TextOf(row[1 + l]), &labels);
      }
      family.samples.push_back({std::move(labels), *value / view.metrics[m].divisor});
    }
    families->push_back(std::move(family));
  }
}

void AddProbes(ReadStore& store, int64_t run_id, std::vector<MetricFamily>* families) {
  const SqlResult rows =
      store.Query("SELECT probe, state FROM probe_status WHERE run_id = ?1", {run_id});
  MetricFamily family{"probe_works", "", false, kProbeHelp, {}};
  for (const auto& row : rows.rows) {
    const std::string state = TextOf(row[1]);
    family.samples.push_back(
        {{{"run", std::to_string(run_id)}, {"probe", TextOf(row[0])}, {"state", state}},
         state == "unavailable" ? 0.0 : 1.0});
  }
  families->push_back(std::move(family));
}

void AddMeasurements(ReadStore& store, int64_t run_id, std::vector<MetricFamily>* families) {
  const SqlResult helps =
      store.Query("SELECT metric, help FROM metric_list WHERE run_id = ?1", {run_id});
  std::map<std::string, std::string> help_of;
  for (const auto& row : helps.rows) help_of[TextOf(row[0])] = TextOf(row[1]);
  const SqlResult rows = store.Query(
      "SELECT metric, unit, kind, stage, operator, process, pid, process_id, subject, cause, value "
      "FROM measurement_summary WHERE run_id = ?1 AND thread = '' AND bucket IS NULL "
      "ORDER BY metric",
      {run_id});
  std::string last;
  for (const auto& row : rows.rows) {
    const auto value = NumberOf(row[10]);
    if (!value) continue;
    const std::string metric = TextOf(row[0]);
    const BaseUnit base = InBaseUnits(metric, TextOf(row[1]));
    if (families->empty() || metric != last) {
      families->push_back({base.name, base.unit, TextOf(row[2]) == "counter", help_of[metric], {}});
      if (families->back().help.empty()) families->back().help = "Measured by a probe";
      last = metric;
    }
    Labels labels = {{"run", std::to_string(run_id)}};
    constexpr const char* kLabels[] = {"stage",      "operator", "process", "pid",
                                       "process_id", "subject",  "cause"};
    for (size_t l = 0; l < std::size(kLabels); ++l) {
      AddLabel(kLabels[l], TextOf(row[3 + l]), &labels);
    }
    families->back().samples.push_back({std::move(labels), *value / base.divisor});
  }
}

// A database may hold names that come to the same here. A text with one family twice is refused
// whole by those who read it, so the second gets a name of its own; a sample with the labels of
// another one, which only a damaged store has, is left out.
void MakeUnique(std::vector<MetricFamily>* families) {
  std::erase_if(*families, [](const MetricFamily& family) { return family.samples.empty(); });
  std::set<std::string> names;
  for (MetricFamily& family : *families) {
    const std::string name = family.name;
    for (int copy = 2; !names.insert(family.full_name()).second; ++copy) {
      family.name = fmt::format("{}_{}", name, copy);
    }
    std::set<Labels> seen;
    std::vector<MetricFamily::Sample> samples;
    for (MetricFamily::Sample& sample : family.samples) {
      if (seen.insert(sample.labels).second) samples.push_back(std::move(sample));
    }
    family.samples = std::move(samples);
  }
  std::sort(families->begin(), families->end(), [](const MetricFamily& a, const MetricFamily& b) {
    return a.full_name() < b.full_name();
  });
}

}  // namespace

std::string MetricFamily::full_name() const {
  return "headrace_" + name + (unit.empty() ? "" : "_" + unit);
}

std::vector<MetricFamily> RunFamilies() {
  std::vector<MetricFamily> families = {{"run_info", "", false, kRunInfoHelp, {}},
                                        {"run_state", "", false, kRunStateHelp, {}},
                                        {"run_duration", "seconds", false, kRunDurationHelp, {}},
                                        {"run_start_time", "seconds", false, kRunStartHelp, {}},
                                        {"probe_works", "", false, kProbeHelp, {}}};
  for (const ViewMetrics& view : MetricsOfViews()) {
    for (const ViewMetric& metric : view.metrics) families.push_back(FamilyOf(metric));
  }
  return families;
}

BaseUnit InBaseUnits(std::string_view metric, std::string_view unit) {
  struct Rule {
    std::string_view unit, suffix;
    const char* base;
    double divisor;
  };
  static constexpr Rule kRules[] = {{"ns", "_ns", "seconds", 1e9},
                                    {"bytes", "_bytes", "bytes", 1},
                                    {"count", "_count", "", 1},
                                    {"ratio", "_ratio", "ratio", 1},
                                    {"cores", "_cores", "cores", 1},
                                    {"J", "_joules", "joules", 1},
                                    {"W", "_watts", "watts", 1},
                                    {"C", "_celsius", "celsius", 1},
                                    {"Hz", "_hertz", "hertz", 1},
                                    {"B/s", "_bytes_per_s", "bytes_per_second", 1},
                                    {"bit/s", "_bits_per_s", "bytes_per_second", 8},
                                    {"1/s", "_per_s", "per_second", 1}};
  for (const Rule& rule : kRules) {
    if (unit != rule.unit || !metric.ends_with(rule.suffix)) continue;
    return {MetricName(metric.substr(0, metric.size() - rule.suffix.size())), rule.base,
            rule.divisor};
  }
  // Of a store that somebody else wrote: as it is, but not under a name that a format reserves.
  std::string name = MetricName(metric);
  for (const char* reserved : {"_total", "_count", "_sum", "_bucket", "_info", "_created"}) {
    if (name.ends_with(reserved)) name += "_value";
  }
  return {name, "", 1};
}

std::vector<MetricFamily> ReadRunMetrics(ReadStore& store, int64_t run_id) {
  std::vector<MetricFamily> families;
  AddRun(ReadExportedRun(store, run_id), &families);
  for (const ViewMetrics& view : MetricsOfViews()) AddView(store, run_id, view, &families);
  AddProbes(store, run_id, &families);
  AddMeasurements(store, run_id, &families);
  MakeUnique(&families);
  return families;
}

}  // namespace headrace::dashboards
