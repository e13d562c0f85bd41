// RunView: one recorded run as typed rows of the store's documented views; the sole input of
// analysis and dashboards. read_run reads it, the only file of analysis that contains SQL. Rows are
// plain data, so tests write them by hand. A std::optional that is empty was not measured; it is
// never 0 in its place.
#pragma once
#include <cstdint>
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
  // What the store was told, with the names of its columns: collectors/store/columns.def. How the
  // run was made is empty where the program that ran the pipeline did not tell it.
#define HR_RUN_COLUMN(type, column, help) type column{};
#define HR_CONDITION_COLUMN(type, read, column, unset, help) read column{};
#include "collectors/store/columns.def"
  Real clustered_dedup_ratio, sample_dedup_ratio;
};

// Counters of an operator, over the run or over one interval.
struct OperatorCounters {
#define HR_OPERATOR_COUNTER(type, member, column, help) type column{};
#include "collectors/store/columns.def"
  Count blocked_ns;  // b, lock waits included
  // What b lies between, also where it is not told apart; empty: as told, or anything.
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
  Count on_cpu_ns, runnable_ns;  // of the scheduler's own accounts, whole threads
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

// One stored interval; vectors run parallel to RunView::operators, stages, queues and resources.
// An entity without a row in the interval has zero counters.
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
};
struct LossRow {
  std::string what;
  int64_t lost_count = 0;
  Count total_count;
};

// A process of the recorded tree.
struct ProcessRow {
  int64_t process_id = 0, pid = 0, parent_pid = 0;
  std::string process, command, role, exit_text;
  bool has_accounts = false;
  int64_t started_ns = 0;  // since the run began; negative: before it
  Count ended_ns;          // empty: alive at the end of the recording
  Count cpu_ns, read_bytes, threads_count;
  Real mean_rss_bytes, maximum_rss_bytes;
};

// A metric of a probe with its labels, over the run. Counters: `value` is the total; gauges: the
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

// Growth of a counter with its labels in a slice of the run (RunView::course_slice_ns long).
struct CourseRow {
  int64_t slice = 0;
  std::string metric;
  int64_t process_id = 0;
  std::string thread, subject, cause;
  double value = 0;
};

struct StackRow {
  std::string kind;                  // "cpu", "off_cpu"
  std::string operator_name, stage;  // empty: outside every operator
  Count process_id;
  std::string process;
  int64_t pid = 0;
  std::string thread, folded;  // root first, frames separated by ';'
  int64_t samples_count = 0, time_ns = 0;
};

// How fast a folder of the run's machine was read, at its latest calibration.
struct StoragePoint {
  std::string folder;
  double size_bytes = 0, depth = 0;  // of a request; requests in flight
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
  // The run that it was made from had another pipeline or another table: its error is not the
  // model's.
  bool other_pipeline = false;
};

// What a row cost at what load, in a run of the same pipeline on the same machine.
struct LoadRow {
  double cpu_s_per_row = 0;
  double busy_cores = 0;  // of the machine, of which this pipeline's own are a part
  bool own = false;       // of this run
};

// Another run of the same pipeline file with the same settings, table, host, cores and version: it
// differs in its kind, or in what the page cache held.
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

// What devices delivered to the run's processes in an interval.
struct DeviceReadRow {
  int64_t start_ns = 0, duration_ns = 0;
  double read_bytes = 0;
};

// A counter of the machine or the process, as it stood at that instant.
struct HostPointRow {
  int64_t at_ns = 0;  // since the run began
  double value = 0;
};

struct RunView {
  RunRow run;
  std::vector<StageRow> stages;        // by stage_index
  std::vector<OperatorRow> operators;  // by stage_index, position_index
  std::vector<QueueRow> queues;
  std::vector<ResourceRow> resources;
  StepRow steps;
  std::vector<WindowRow> windows;  // by start_ns
  std::vector<HostRow> hosts;
  std::vector<HostPointRow> process_cpu;  // ns, by time; empty where its course was not kept
  std::vector<ProbeRow> probes;
  std::vector<LossRow> losses;
  std::vector<ProcessRow> processes;         // by process_id
  std::vector<MeasurementRow> measurements;  // by metric
  std::vector<StackRow> stacks;              // longest first; at most kMaxStacks
  std::vector<DetailRow> details;
  // Threads' times and wake-ups of a run without operators, by slice; empty for other runs.
  std::vector<CourseRow> course;
  int64_t course_slice_ns = 0;
  // The best that the run's machine was measured to read, at its latest calibration in the same
  // database; empty if there was none.
  Real memory_ceiling_bytes_per_s;
  // What a plan said of this run before it began.
  std::optional<PredictionRow> prediction;
  // Of the earlier runs of the run's host and CPU that were started with a plan, the newest first:
  // what was predicted and observed. One of each plan: running it again tells nothing new of the
  // model.
  std::vector<PredictionRow> earlier_predictions;
  // Of this run and the others that differ from it in threads, queues and cores at most; empty
  // where CPU time was not measured, or without a pipeline file.
  std::vector<LoadRow> loads;
  // Runs of the same pipeline under the same conditions, as far as they are known, but for their
  // kind and what the page cache held, the newest first; empty also where the run does not know its
  // own conditions.
  std::vector<SiblingRow> siblings;
  // Options of the command that add work beside the pipeline's settings ("--checksum --row-log");
  // siblings have the same.
  std::string added_work;
  // Bytes that devices delivered, and that the reader asked files for; empty: not counted.
  Count device_bytes, fetched_bytes;
  std::vector<DeviceReadRow> device_reads;   // by start; empty where its course was not kept
  std::vector<StoragePoint> storage_points;  // of the latest calibration of each folder
  // Other runs in the database with the same pipeline text that were recorded at the same time;
  // empty where the run has no pipeline file.
  Count same_pipeline_runs;
  std::vector<std::string> metrics;  // names of all metrics the run holds

  // What the user pays for an hour of a core; empty where not told.
  Real core_hour_price;
  // What a command about this run needs to find its database: " --db FILE", or empty for the
  // default.
  std::string database_option;
  // How the user calls this program, for commands printed to be pasted.
  std::string program = "headrace";

  // The row of that metric, or null.
  const HostRow* FindHost(const std::string& metric) const;
  // Whether a probe delivered the metric at all.
  bool Has(const std::string& metric) const;
};

}  // namespace headrace::analysis
