// RunView: one recorded run as typed rows of the store's documented views; the sole input of
// analysis and dashboards. This is the only file of analysis that contains SQL. Rows are plain
// data, so tests write them by hand. A std::optional that is empty was not measured; it is never 0
// in its place.
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
  std::string name, tags, state, program, command, pipeline_path, pipeline_text;
  std::string accounting_note, hostname, kernel, cpu_model, headrace_version;
  std::string cores_bound_by, memory_bound_by;
  int64_t pid = 0, started_realtime_ns = 0, duration_ns = 0;
  int64_t accounting_level = 0;  // 0: no accounts, seen from outside only
  Real cores_count;
  Count memory_bytes;
};

// Counters of an operator, over the run or over one interval.
struct OperatorCounters {
  int64_t completions_count = 0, rows_count = 0, bytes_in_bytes = 0, bytes_out_bytes = 0;
  int64_t busy_ns = 0;  // c + b + q
  Count on_cpu_ns;      // c
  Count blocked_ns;     // b, lock waits included
  Count runnable_ns;    // q
  int64_t lock_wait_ns = 0;
  int64_t wait_in_ns = 0, wait_out_ns = 0;
};

struct OperatorRow : OperatorCounters {
  std::string name, kind, stage, source;
  int64_t stage_index = 0, position_index = 0;
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
  int64_t acquisitions_count = 0, wait_ns = 0, hold_ns = 0, moved_bytes = 0;
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
};
struct ProbeRow {
  std::string probe, state, reason, fix;
};
struct LossRow {
  std::string what;
  int64_t lost_count = 0;
  Count total_count;
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
  std::vector<ProbeRow> probes;
  std::vector<LossRow> losses;

  // What a command about this run needs to find its database: " --db FILE", or empty for the
  // default.
  std::string database_option;
  // How the user calls this program, for commands printed to be pasted.
  std::string program = "headrace";

  // The row of that metric, or null.
  const HostRow* FindHost(const std::string& metric) const;
};

// Reads run `run` ("latest", an id, or a name) of the database `path`, read-only.
// Throws Error kBadData: not a headrace database, no such run.
RunView LoadRun(const std::string& path, const std::string& run);

}  // namespace headrace::analysis
