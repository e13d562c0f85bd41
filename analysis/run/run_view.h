// RunView: one recorded run as typed rows of the store's documented views; the sole input of
// analysis and dashboards. read_run, read_windows and read_other_runs read it, the only files of
// analysis that contain SQL. Rows are plain data, so tests write them by hand. A std::optional that
// is empty was not measured; it is never 0 in its place.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headrace::analysis {

using Count = std::optional<int64_t>;
using Real = std::optional<double>;

struct RunRow {
  int64_t run_id = 0;
  std::string state, headrace_version;
  int64_t duration_ns = 0;
  // The columns of the store's run row, under their own names: collectors/store/columns.def. The
  // conditions of the run are empty where the program that ran the pipeline did not give them.
#define HR_RUN_COLUMN(type, column, help) type column{};
#define HR_CONDITION_COLUMN(type, read, column, unset, help) read column{};
#include "collectors/store/columns.def"
  // Figures about the run by name, of view run_fact: "sample_dedup_ratio".
  std::map<std::string, double> facts;
  // In force, defaults included; analysis/run/settings.h. Empty where they are not recorded.
  std::map<std::string, std::string> settings;

  // Empty: the run has no such fact.
  Real Fact(const std::string& name) const {
    const auto found = facts.find(name);
    return found == facts.end() ? std::nullopt : Real(found->second);
  }
};

// Counters of an operator, over the run or over one interval.
struct OperatorCounters {
#define HR_OPERATOR_COUNTER(type, member, column, help) type column{};
#include "collectors/store/columns.def"
  Count blocked_ns;  // b, lock waits included
  // Bounds of b, also where b itself is not known. Empty: b is known exactly, or nothing is known
  // of it.
  Count blocked_low_ns, blocked_high_ns;
};

struct OperatorRow : OperatorCounters {
  std::string name, kind, stage, source;
  int64_t stage_index = 0, position_index = 0;
  Count residual_ns;  // c by eBPF less c by the thread CPU clock
};

struct StageCounters {
  double parallelism_count = 0;  // time-weighted mean
  int64_t lifetime_ns = 0;       // summed over the stage's threads
  Count on_cpu_ns, runnable_ns;  // from the scheduler's own accounts, for whole threads
  Count unattributed_ns;
};

struct StageRow : StageCounters {
  std::string name;
  int64_t stage_index = 0;
  int64_t last_parallelism_count = 0;
  int64_t max_parallelism_count = 0;  // 0: no limit; 1: sequential
};

struct QueueCounters {
  Real mean_occupancy_ratio, full_ratio, empty_ratio;
  int64_t puts_count = 0, gets_count = 0;
};

struct QueueRow : QueueCounters {
  std::string name, producer_stage, consumer_stage;
  int64_t capacity_count = 0;
};

struct ResourceCounters {
#define HR_RESOURCE_COUNTER(type, member, column, help) type column{};
#include "collectors/store/columns.def"
};

struct ResourceRow : ResourceCounters {
  std::string name, kind;  // kind: "lock" or "device"
  int64_t servers_count = 1;
};

struct StepCounters {
  int64_t steps_count = 0, rows_count = 0, wait_ns = 0, compute_ns = 0;
};

struct StepRow : StepCounters {
  int64_t wall_ns = 0;
  Count step_p50_ns, step_p99_ns;
};

// Steps of the whole run by their length, wait and computing together.
struct StepTimeRow {
  int64_t step_ns = 0, steps_count = 0;
};

// One stored interval, or neighbours added up (read_windows.h); vectors run parallel to
// RunView::operators, stages, queues and resources. An entity without a row in the interval has
// zero counters.
struct WindowRow {
  int64_t start_ns = 0, duration_ns = 0;  // since the start of the run
  std::vector<OperatorCounters> operators;
  std::vector<StageCounters> stages;
  std::vector<QueueCounters> queues;
  std::vector<ResourceCounters> resources;
  StepCounters steps;
};

struct HostRow {
  std::string metric, unit, source;
  Real mean_value, minimum_value, maximum_value, last_value;
  std::string subject = "", cause = "";
};
struct ProbeRow {
  std::string probe, state, reason, fix;
  std::string affects = "";  // what the pages lack without it

  // Whether it was stopped before the run ended, and that because recording took too much: in the
  // words of collectors/probe_runner and recorder.
  bool is_stopped_early() const { return reason.starts_with("stopped while recording: "); }
  bool is_stopped_for_cost() const { return reason.starts_with("stopped while recording: after "); }
};
struct LossRow {
  std::string what;
  int64_t lost_count = 0;
  Count total_count;
};

// A process of the recorded tree.
struct ProcessRow {
#define HR_PROCESS_COLUMN(type, member, column, help) type column{};
#include "collectors/store/columns.def"
  Count cpu_ns, read_bytes, threads_count;
  Real mean_rss_bytes, maximum_rss_bytes;
};

// A probe's metric with its labels, over the whole run. Counters: `value` is the total; gauges: the
// mean.
struct MeasurementRow {
  std::string metric, unit, kind, source;
  std::string operator_name, stage;  // empty: no operator, or all of them
  Count process_id;                  // empty: the machine
  std::string process;
  int64_t pid = 0;
  std::string thread, subject, cause;
  Count bucket;  // lower bound of a histogram bucket
  Real value, minimum_value, maximum_value, last_value;
  Real running_ratio;  // share of the time the counter really counted
};

// Growth of a counter with its labels in one slice of the run (RunView::course_slice_ns long).
struct CourseRow {
  int64_t slice = 0;
  std::string metric;
  int64_t process_id = 0;
  std::string thread, subject, cause;
  double value = 0;
};

// The share of a part of the run in which an accelerator ran a kernel.
struct AcceleratorUseRow {
  int64_t start_ns = 0, duration_ns = 0;  // since the run began
  std::string device;                     // "gpu0"
  double use_ratio = 0;
};

struct StackRow {
  std::string kind;                  // "cpu", "off_cpu", "python"
  std::string operator_name, stage;  // empty: outside every operator
  Count process_id;
  std::string process;
  int64_t pid = 0;
  std::string thread, folded;  // root first, frames separated by ';'
  int64_t samples_count = 0, time_ns = 0;
};

// How fast a folder on the run's machine was read at its latest calibration.
struct StoragePoint {
  std::string folder;
  double size_bytes = 0, depth = 0;  // bytes of a request; requests in flight
  double bytes_per_s = 0;
};

// Where the flight recorder kept full detail.
struct DetailRow {
  int64_t start_ns = 0, end_ns = 0;
  std::string reason;
};

struct PredictionRow {
  double predicted = 0;  // batches per second
  Real low, high;        // 90 %
  Real observed;         // in the steady phase, as predictions are of it
  std::string limited_by, limited_by_kind;
  // The prediction was made from a run with another pipeline or table, so its error is not the
  // model's.
  bool other_pipeline = false;
};

// The cost of a row and the load at that time, in a run of the same pipeline on the same machine.
struct LoadRow {
  double cpu_s_per_row = 0;
  double busy_cores = 0;  // of the whole machine, including this pipeline's
  bool own = false;       // it is this run's
};

// How fast a run of the same work went, with so many threads in one of its stages.
struct StageRateRow {
  std::string stage;
  double threads = 0;
  double blocked_ratio = 0;  // share of those threads' time blocked in operators, locks left out
  double rows_per_s = 0;     // of the run
  bool own = false;          // it is this run's
};

// What a stage got from its store with more threads for a moment, while the run went on (view
// store_probe).
struct StoreProbeRow {
#define HR_STORE_PROBE_COLUMN(type, member, column, help) type column{};
#include "collectors/store/columns.def"
};

// A run of the same work, this one or another, and the numbers of threads and lengths of queues
// that it was started with.
struct TriedRow {
  int64_t run_id = 0;
  double rows_per_s = 0;
  std::map<std::string, std::string> knobs;  // "fetch.parallelism": "8"
};

// A comparison whose runs are among those of TriedRow.
struct MeasuredRow {
  int64_t comparison_id = 0;
  std::string verdict;                      // of B against A, as comparison_summary has it
  std::map<std::string, std::string> a, b;  // as TriedRow::knobs
  int64_t pairs_count = 0;
  double gain = 0;  // of the rate of B over that of A
  Real low, high;   // its interval; empty: without a bound
};

// Another run of the same pipeline file with the same settings, table, host, cores and version,
// which differs in its kind or in what the page cache held.
struct SiblingRow {
  int64_t run_id = 0;
  std::string name, kind;
  Count cold;
  Count device_bytes, fetched_bytes;  // as RunView's
  struct Window {
    int64_t duration_ns = 0, steps_count = 0;
  };
  std::vector<Window> windows;  // by start
};

// Bytes that devices delivered to the run's processes in an interval.
struct DeviceReadRow {
  int64_t start_ns = 0, duration_ns = 0;
  double read_bytes = 0;
};

// The value of a counter of the machine or the process at one instant.
struct HostPointRow {
  int64_t at_ns = 0;  // since the run began
  double value = 0;
};

// How many cores of the machine were busy in an interval, whoever used them.
struct BusyCoresRow {
  int64_t start_ns = 0, duration_ns = 0;  // since the run began
  double cores = 0;
};

struct RunView {
  RunRow run;
  std::vector<StageRow> stages;        // by stage_index
  std::vector<OperatorRow> operators;  // by stage_index, position_index
  std::vector<QueueRow> queues;
  std::vector<ResourceRow> resources;
  StepRow steps;
  std::vector<StepTimeRow> step_times;  // shortest first; empty for a part of a run
  std::vector<WindowRow> windows;       // by start_ns
  std::vector<HostRow> hosts;
  // CPU time in ns, by time; empty where it was not recorded over time
  std::vector<HostPointRow> process_cpu;
  std::vector<BusyCoresRow> busy_cores;  // by start; empty where it was not recorded over time
  std::vector<ProbeRow> probes;
  std::vector<LossRow> losses;
  std::vector<ProcessRow> processes;         // by process_id
  std::vector<MeasurementRow> measurements;  // by metric
  std::vector<StackRow> stacks;              // longest first; at most kMaxStacks
  // InterpreterShareOfStep, of the whole run also in a part of it.
  Real step_interpreter_ratio;
  // InterpreterShareOfPools, the same way.
  Real pools_interpreter_ratio;
  std::vector<DetailRow> details;
  // Threads' times and wake-ups by slice, of a run without operators and of a short one of a
  // program of its own; empty for others.
  std::vector<CourseRow> course;
  int64_t course_slice_ns = 0;
  // By metric of a thread's time on a CPU: how long it was recorded, as probes may stop before the
  // run ends.
  std::map<std::string, int64_t> course_seen_ns;
  // By process_id: how long the intervals are, together, in which sockets brought it bytes.
  std::map<int64_t, int64_t> receiving_ns;
  std::vector<AcceleratorUseRow> accelerator_use;  // by start; empty: none was seen
  // The highest rate at which the run's machine read memory, in its latest calibration in the same
  // database; empty if there was none.
  Real memory_ceiling_bytes_per_s;
  // The rate that a plan predicted for this run before it began.
  std::optional<PredictionRow> prediction;
  // Predicted and observed rates of earlier runs on the same host and CPU that were started with a
  // plan, newest first. One run of each plan, because running it again says nothing new about the
  // model.
  std::vector<PredictionRow> earlier_predictions;
  // Loads and costs of this run and of those that differ from it at most in threads, queues and
  // cores; empty where CPU time was not measured, or without a pipeline file.
  std::vector<LoadRow> loads;
  // The stages of those runs, newest first.
  std::vector<StageRateRow> stage_rates;
  std::vector<StoreProbeRow> store_probes;
  // Those runs with their settings, this one first; empty where settings are not recorded.
  std::vector<TriedRow> tried;
  std::vector<MeasuredRow> measured;  // newest first
  // Runs of the same pipeline under the same known conditions, except for their kind and what the
  // page cache held; newest first. Also empty where this run's own conditions are not known.
  std::vector<SiblingRow> siblings;
  // Options of the command that add work beside the pipeline's settings ("--checksum --row-log");
  // siblings have the same.
  std::string added_work;
  // Bytes that devices delivered, and bytes that the reader asked of files; empty: not counted.
  Count device_bytes, fetched_bytes;
  std::vector<DeviceReadRow> device_reads;   // by start; empty where it was not recorded over time
  std::vector<StoragePoint> storage_points;  // from the latest calibration of each folder
  // Other runs in the database with the same pipeline text that were recorded at the same time;
  // empty where the run has no pipeline file.
  Count same_pipeline_runs;
  std::vector<std::string> metrics;  // names of all metrics the run holds

  // The user's price for one core for one hour; empty where not given.
  Real core_hour_price;
  // What a command about this run needs to find its database: " --db FILE", or empty for the
  // default.
  std::string database_option;
  // How the user calls this program, for commands printed to be pasted.
  std::string program = "headrace";

  // The row with that metric, or null.
  const HostRow* FindHost(const std::string& metric) const;
  // Whether a probe delivered the metric at all.
  bool Has(const std::string& metric) const;
};

}  // namespace headrace::analysis
