// What probes measured, of a run and of a machine.
#include "collectors/store/columns.h"
#include "collectors/store/store.h"

namespace headrace::collectors {

void RunStore::AppendMeasurements(int64_t run_id, const MeasurementBatch& batch) {
  AppendDefinitions(run_id, batch);
  AppendFigures(run_id, batch);
}

// What the numbers of measurements stand for: metrics, processes, labels.
void RunStore::AppendDefinitions(int64_t run_id, const MeasurementBatch& batch) {
  for (const MetricRow& m : batch.metrics) {
    Prepared("INSERT OR IGNORE INTO metrics VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
        .Bind(run_id)
        .Bind(std::string_view(m.metric))
        .Bind(std::string_view(m.unit))
        .Bind(std::string_view(m.kind))
        .Bind(std::string_view(m.source))
        .Bind(std::string_view(m.privilege))
        .Bind(std::string_view(m.help))
        .Run();
  }
  for (const ProcessRow& p : batch.processes) {
    static const std::string sql = ReplaceRow(kProcesses);
    Prepared(sql.c_str())
        .Bind(run_id)
#define HR_PROCESS_COLUMN(type, member, column, help) .Bind(p.member)
#include "collectors/store/columns.def"
        .Run();
  }
  for (const MeasurementRow& m : batch.definitions) {
    Prepared(
        "INSERT INTO measurements (run_id, measurement_id, metric, source, operator_id, "
        "process_id, thread, subject, cause, bucket) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
        "?10)")
        .Bind(run_id)
        .Bind(m.id)
        .Bind(std::string_view(m.metric))
        .Bind(std::string_view(m.source))
        .Bind(m.operator_id)
        .Bind(m.process_id)
        .Bind(std::string_view(m.thread))
        .Bind(std::string_view(m.subject))
        .Bind(std::string_view(m.cause))
        .Bind(m.bucket)
        .Run();
  }
}

void RunStore::AppendFigures(int64_t run_id, const MeasurementBatch& batch) {
  for (const MeasurementTotal& t : batch.totals) {
    Prepared(
        "UPDATE measurements SET weight_ns = ?3, weighted_sum = ?4, minimum_value = ?5, "
        "maximum_value = ?6, last_value = ?7, running_ratio = ?8 "
        "WHERE run_id = ?1 AND measurement_id = ?2")
        .Bind(run_id)
        .Bind(t.id)
        .Bind(t.weight_ns)
        .Bind(t.weighted_sum)
        .Bind(t.minimum)
        .Bind(t.maximum)
        .Bind(t.last)
        .Bind(t.running_ratio)
        .Run();
  }
  for (const MeasurementInterval& i : batch.intervals) {
    Prepared("INSERT OR REPLACE INTO measurement_intervals VALUES (?1, ?2, ?3, ?4, ?5)")
        .Bind(run_id)
        .Bind(i.start_ns)
        .Bind(i.id)
        .Bind(i.duration_ns)
        .Bind(i.value)
        .Run();
  }
  for (const StackRow& s : batch.stacks) {
    Prepared(
        "INSERT INTO stacks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
        "ON CONFLICT DO UPDATE SET samples_count = ?8, time_ns = ?9")
        .Bind(run_id)
        .Bind(s.id)
        .Bind(std::string_view(s.kind))
        .Bind(s.operator_id)
        .Bind(s.process_id)
        .Bind(std::string_view(s.thread))
        .Bind(std::string_view(s.folded))
        .Bind(s.samples)
        .Bind(s.time_ns)
        .Run();
  }
}

int64_t RunStore::AddCalibration(const CalibrationInfo& info,
                                 const std::vector<CeilingRow>& ceilings) {
  Transaction transaction(database_);
  Prepared(
      "INSERT INTO calibrations (measured_realtime_ns, hostname, kernel, cpu_model, folder, "
      "headrace_version) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .Bind(info.measured_realtime_ns)
      .Bind(std::string_view(info.hostname))
      .Bind(std::string_view(info.kernel))
      .Bind(std::string_view(info.cpu_model))
      .Bind(std::string_view(info.folder))
      .Bind(std::string_view(HEADRACE_VERSION))
      .Run();
  const int64_t id = database_.last_id();
  int64_t number = 0;
  for (const CeilingRow& row : ceilings) {
    Prepared(
        "INSERT INTO ceilings (calibration_id, ceiling_id, metric, unit, subject, threads_count, "
        "size_bytes, depth_count, value, minimum_value, maximum_value, repetitions_count, note) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")
        .Bind(id)
        .Bind(number++)
        .Bind(std::string_view(row.metric))
        .Bind(std::string_view(row.unit))
        .Bind(std::string_view(row.subject))
        .Bind(row.threads_count)
        .Bind(row.size_bytes)
        .Bind(row.depth_count)
        .Bind(row.value)
        .Bind(row.minimum)
        .Bind(row.maximum)
        .Bind(row.repetitions_count)
        .Bind(std::string_view(row.note))
        .Run();
  }
  transaction.Commit();
  return id;
}

}  // namespace headrace::collectors
