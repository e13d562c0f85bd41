// The run store: one SQLite file holding many runs (docs/store.md). RunStore writes, ReadStore
// reads; the views are the interface to what is stored, and only this folder and
// analysis/run/read_run contain SQL.
//
// Several processes may record into one file at once: each transaction is short and waits for the
// others. What Append was given is durable after Commit against the death of any process.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/store/read_store.h"
#include "collectors/store/samples.h"
#include "collectors/store/statement.h"

namespace headrace::collectors {

// What a run's row says about the program and the machine (columns of view run_summary).
struct RunInfo {
#define HR_RUN_COLUMN(type, column, help) type column{};
#include "collectors/store/columns.def"
};

enum class RunState { kRecording, kComplete, kInterrupted, kTruncated };
const char* RunStateName(RunState state);

// What probes measured. The recorder gives ids to measurements, stacks and processes; totals
// replace what was stored under the same id before.
struct MetricRow {
  std::string metric, unit, kind, source, privilege, help;
};
struct ProcessRow {
#define HR_PROCESS_COLUMN(type, member, column, help) type member{};
#include "collectors/store/columns.def"
};
struct MeasurementRow {
  int64_t id = 0;
  std::string metric, source;
  std::optional<int64_t> operator_id, process_id;
  std::string thread, subject, cause;
  std::optional<int64_t> bucket;
};
struct MeasurementTotal {
  int64_t id = 0;
  int64_t weight_ns = 0;
  double weighted_sum = 0, minimum = 0, maximum = 0, last = 0;
  std::optional<double> running_ratio;
};
struct MeasurementInterval {
  int64_t id = 0;
  int64_t start_ns = 0, duration_ns = 0;
  double value = 0;  // counter: growth; gauge: mean
};
struct StackRow {
  int64_t id = 0;
  std::string kind;
  std::optional<int64_t> operator_id, process_id;
  std::string thread, folded;
  int64_t samples = 0, time_ns = 0;
};
struct MeasurementBatch {
  std::vector<MetricRow> metrics;
  std::vector<ProcessRow> processes;
  std::vector<MeasurementRow> definitions;  // of ids not stored before
  std::vector<MeasurementTotal> totals;
  std::vector<MeasurementInterval> intervals;
  std::vector<StackRow> stacks;
};

// Where the flight recorder kept full detail, and why.
struct DetailRange {
  int64_t start_ns = 0, end_ns = 0;
  std::string reason;
};

// Which finished runs may be removed. Empty: no such limit.
struct Retention {
  std::optional<int64_t> older_than_ns;  // begun longer ago than this
  std::optional<int64_t> keep;           // this many runs stay, the newest
  std::optional<int64_t> max_bytes;      // the oldest are removed until the database is no larger
};

// Which part of an interval Append writes: its totals, its course over time, or both. A flight
// recorder writes totals at once, and the course later, when it is known in how much detail it is
// kept.
enum class AppendPart {
  kAll,
  kTotals,
  kCourse,
  kDetail  // the course, exempt from rollup
};

// A ceiling of a machine (columns of view calibration_summary).
struct CeilingRow {
  std::string metric, unit, subject;
  std::optional<int64_t> threads_count, size_bytes, depth_count;
  double value = 0, minimum = 0, maximum = 0;
  int64_t repetitions_count = 0;
  std::string note;
};
struct CalibrationInfo {
  int64_t measured_realtime_ns = 0;
  std::string hostname, kernel, cpu_model, folder;
};

// The rate that a plan predicted for the run that was started with it (columns of view
// prediction_summary).
struct PredictionRow {
  std::optional<int64_t> from_run_id;
  double batches_per_second = 0;
  std::optional<double> low, high;
  std::string limited_by, limited_by_kind;
};

// A comparison of two sides and the runs it made or used (columns of views comparison_summary and
// comparison_run).
struct ComparisonRow {
  std::string name, a_label, b_label, seed;
  int64_t started_realtime_ns = 0;
};
enum class ComparisonState { kRunning, kComplete, kInterrupted, kFailed };
const char* ComparisonStateName(ComparisonState state);
struct ComparisonRunRow {
  int64_t order_index = 0, pair_index = 0;
  char side = 'a';                // or 'b'
  std::optional<int64_t> run_id;  // absent: there is no such run
  std::string left_out;           // why it does not count; empty: it does
};

// A decision about a running pipeline (columns of views decision_summary and decision_change).
// Rates in batches per second; absent: not known, or not yet.
struct DecisionChangeRow {
  std::string knob, from, to;
};
struct DecisionRow {
#define HR_DECISION_COLUMN(type, member, column, help) type member{};
#include "collectors/store/columns.def"
  std::vector<DecisionChangeRow> changes;
};

// The conditions of a run, as the program that runs the pipeline knows them (columns of view
// run_summary of the same names). Absent: not known.
struct RunConditions {
#define HR_CONDITION_COLUMN(type, read, column, unset, help) type column = unset;
#include "collectors/store/columns.def"
  // The settings in force, defaults included: "source.io" -> "pread" (view run_setting).
  std::map<std::string, std::string> settings;
};

// A figure about a run (columns of view run_fact). Its name ends in its unit.
struct RunFact {
  std::string name;
  double value = 0;
  std::string unit;
};

// What a stage got from its store with more threads for a moment (columns of view store_probe).
struct StoreProbeSample {
#define HR_STORE_PROBE_COLUMN(type, member, column, help) type member{};
#include "collectors/store/columns.def"
  int64_t start_realtime_ns = 0;  // taken for start_ns
};

// Where everything is in the table that a run read (columns of views layout_summary, layout_stripe,
// layout_stream and layout_read). Stripes are numbered over all files.
struct LayoutStripeRow {
  int64_t stripe_index = 0;
  std::string file;
  int64_t offset_bytes = 0, stored_bytes = 0, rows_count = 0;
  int64_t streams_count = 0, wanted_streams_count = 0;
  int64_t wanted_bytes = 0, over_read_bytes = 0, reads_count = 0;
};
struct LayoutStreamRow {
  int64_t stripe_index = 0, offset_bytes = 0, stored_bytes = 0;
  std::string area;  // index, data, none
  std::string column_name, feature_key;
  int64_t streams_count = 0, wanted_bytes = 0, over_read_bytes = 0;
};
struct LayoutReadRow {
  int64_t stripe_index = 0, offset_bytes = 0, read_bytes = 0, wanted_bytes = 0;
};
struct LayoutRows {
  std::string reason;  // why nothing of what follows is known; empty: it is
  int64_t gap_bytes = 0, most_read_bytes = 0;
  bool whole_stripes = false;
  int64_t files_count = 0, file_bytes = 0, stripes_count = 0;
  int64_t features_count = 0, columns_count = 0;
  // Keys of flattened maps, over the stripes that `streams` is of.
  int64_t detailed_stripes_count = 0;
  int64_t stored_features_count = 0, used_features_count = 0;
  int64_t stored_features_bytes = 0, used_features_bytes = 0;
  std::vector<LayoutStripeRow> stripes;
  std::vector<LayoutStreamRow> streams;
  std::vector<LayoutReadRow> reads;
};

class RunStore {
 public:
  // Opens or creates the database, migrates it to this version, recreates the views, and marks as
  // interrupted the runs whose collector died and the comparisons whose program died. Throws Error:
  // kBadData when the file is something else, damaged, or of a newer version.
  explicit RunStore(const std::string& path);

  // Adds a run in state recording, written by the calling process. Returns its id.
  int64_t BeginRun(const RunInfo& info);
  // Sets what becomes known only after BeginRun: program, accounting level and note.
  void SetAccounting(int64_t run_id, const std::string& program, int64_t level,
                     const std::string& note);
  void SetProbe(int64_t run_id, const std::string& probe, const std::string& state,
                const std::string& reason, const std::string& fix, const std::string& affects = "");
  void SetLoss(int64_t run_id, const std::string& what, int64_t lost_count,
               std::optional<int64_t> total_count);
  // Stores intervals and measurements in one transaction: deltas, totals, duration. Throws Error
  // kResources when the disk is full; then nothing of this call is stored.
  void Append(int64_t run_id, const std::vector<IntervalSample>& intervals,
              const MeasurementBatch& measurements = {}, AppendPart part = AppendPart::kAll);
  // Adds a range of full detail, or moves the end of the range that begins at the same time.
  void SetDetailRange(int64_t run_id, const DetailRange& range);
  // Lets a range take part in the rollup like everything else.
  void ReleaseDetailRange(int64_t run_id, const DetailRange& range);
  // Merges intervals older than the ages below into longer ones, so that a run stays bounded:
  // as recorded for 10 minutes, 2 s for an hour, 16 s for a day, 128 s beyond. Measurements: 16 s
  // after 10 minutes, 128 s after an hour, 1024 s after a day. Beyond 100 operators the ages of
  // intervals are shorter in proportion: a tenth with 1000.
  void Rollup(int64_t run_id, int64_t now_ns);
  void FinishRun(int64_t run_id, RunState state);

  // Adds the ceilings measured on a machine, in one transaction. Returns the calibration's id.
  int64_t AddCalibration(const CalibrationInfo& info, const std::vector<CeilingRow>& ceilings);

  // Throw Error kBadData when there is no such run. `run`: id, name or "latest".
  int64_t FindRun(const std::string& run);
  void RemoveRun(int64_t run_id);
  // Removes the finished runs that `retention` lets go, the oldest first, and gives their room back
  // to the disk. Returns their ids.
  std::vector<int64_t> Retain(const Retention& retention);
  // Bytes of the file that runs use, without room that is free again.
  int64_t used_bytes();
  void SetTags(int64_t run_id, const std::string& tags);
  void SetPrediction(int64_t run_id, const PredictionRow& prediction);
  void SetConditions(int64_t run_id, const RunConditions& conditions);

  // Adds a comparison in state running, made by the calling process. Returns its id.
  int64_t BeginComparison(const ComparisonRow& comparison);
  // Adds a run of it, or replaces the one of the same order_index.
  void SetComparisonRun(int64_t comparison_id, const ComparisonRunRow& run);
  // How it ended: its verdict and the JSON of its page, both empty where there is none.
  void FinishComparison(int64_t comparison_id, ComparisonState state, int64_t duration_ns,
                        const std::string& verdict, const std::string& result_json);
  void RemoveComparison(int64_t comparison_id);  // its runs stay
  // Adds a decision with its changes, or replaces the one of the same index, in one transaction.
  void SetDecision(int64_t run_id, const DecisionRow& decision);

  // Adds figures that single recommendations ask for, or replaces those of the same names, in one
  // transaction.
  void SetFacts(int64_t run_id, const std::vector<RunFact>& facts);
  void AddStoreProbe(int64_t run_id, StoreProbeSample probe);
  // Marks this moment of a run that is being recorded. Returns the time since the run began. Throws
  // Error kUsage where it is no longer recorded.
  int64_t AddMark(int64_t run_id, const std::string& text);
  // Sets the layout of the run's table, in place of what was set before, in one transaction.
  void SetLayout(int64_t run_id, const LayoutRows& layout);
  // Copies one run into a new database at `path`, which must not exist.
  void CopyRun(int64_t run_id, const std::string& path);

  // Whether the store's path now names another file than the one open here, or none, because the
  // file was deleted, renamed or replaced. What this store writes then no longer reaches the file
  // at the path. In that case closing the store does not touch the file that is there now, and
  // removes this store's own log, which SQLite would replay into that file.
  bool IsDisplaced();
  // Saves a run as a database of its own beside the store's path, "PATH.recovered-RANDOM", and
  // continues in that one. `*path` is set to its path once the run is saved, even if the store
  // cannot continue in it. Throws Error.
  void MoveBeside(int64_t run_id, std::string* path);

  Database& database() { return database_; }

 private:
  void Prepare();
  void RollupInto(int64_t run_id, int64_t before_ns, int64_t finer_ns, int64_t resolution_ns);
  void RollupMeasurements(int64_t run_id, int64_t before_ns, int64_t resolution_ns);
  void AppendMeasurements(int64_t run_id, const MeasurementBatch& batch);
  void AppendDefinitions(int64_t run_id, const MeasurementBatch& batch);
  void AppendFigures(int64_t run_id, const MeasurementBatch& batch);
  Statement& Prepared(const char* sql);
  void AppendOne(int64_t run_id, const IntervalSample& t, AppendPart part);
  // These write and merge samples of the entities in `table` (columns.h).
  template <const auto& table, typename Sample>
  void AppendTotals(int64_t run_id, const Sample& sample);
  template <const auto& table, typename Sample>
  void AppendCourse(int64_t run_id, int64_t start_ns, const Sample& sample);
  template <const auto& table>
  void RollupTable(int64_t run_id);
  void MergeRows(const std::string& table, const std::string& key, const std::string& columns,
                 const std::string& sums, int64_t run_id);
  void AppendOperatorTotals(int64_t run_id, const std::vector<IntervalSample>& intervals);
  void AppendStepRecords(int64_t run_id, const IntervalSample& t);
  void AppendSteps(int64_t run_id, const IntervalSample& t, AppendPart part);

  Database database_;
  uint32_t mode_ = 0600;                  // permissions of the file
  std::pair<uint64_t, uint64_t> log_id_;  // device and inode of its -wal file
  // By the address of the SQL text, which must stay valid.
  std::map<const char*, Statement> prepared_;
  // Time up to which measurements were merged, by run and resolution.
  std::map<std::pair<int64_t, int64_t>, int64_t> rolled_up_;
};

}  // namespace headrace::collectors
