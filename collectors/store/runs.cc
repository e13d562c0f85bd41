// The row of a run and what is said of it as a whole.
#include <unistd.h>

#include "collectors/store/find_run.h"
#include "collectors/store/store.h"
#include "probes/process.h"

namespace headrace::collectors {

const char* RunStateName(RunState state) {
  switch (state) {
    case RunState::kRecording:
      return "recording";
    case RunState::kComplete:
      return "complete";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kTruncated:
      return "truncated";
  }
  return "interrupted";
}

int64_t RunStore::BeginRun(const RunInfo& info) {
  const auto self = probes::ReadProcessStat(getpid());
  Statement insert(database_,
                   "INSERT INTO runs (name, tags, state, program, pid, command, pipeline_path, "
                   "pipeline_text, started_realtime_ns, accounting_level, accounting_note, "
                   "cores_count, cores_bound_by, memory_bytes, memory_bound_by, hostname, kernel, "
                   "cpu_model, headrace_version, collector_pid, collector_start, level_asked, "
                   "deep, ring_ns, trigger_text) VALUES "
                   "(?1, ?2, 'recording', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
                   "?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)");
  insert.Bind(std::string_view(info.name)).Bind(std::string_view(info.tags));
  insert.Bind(std::string_view(info.program)).Bind(info.pid).Bind(std::string_view(info.command));
  insert.Bind(std::string_view(info.pipeline_path)).Bind(std::string_view(info.pipeline_text));
  insert.Bind(info.started_realtime_ns).Bind(info.accounting_level);
  insert.Bind(std::string_view(info.accounting_note)).Bind(info.cores_count);
  insert.Bind(std::string_view(info.cores_bound_by)).Bind(info.memory_bytes);
  insert.Bind(std::string_view(info.memory_bound_by)).Bind(std::string_view(info.hostname));
  insert.Bind(std::string_view(info.kernel)).Bind(std::string_view(info.cpu_model));
  insert.Bind(std::string_view(HEADRACE_VERSION)).Bind(int64_t{getpid()});
  insert.Bind(self ? self->start_ticks : int64_t{0});
  insert.Bind(info.level_asked).Bind(int64_t{info.deep}).Bind(info.ring_ns);
  insert.Bind(std::string_view(info.trigger_text));
  insert.Run();
  return database_.last_id();
}

void RunStore::SetAccounting(int64_t run_id, const std::string& program, int64_t level,
                             const std::string& note) {
  Prepared(
      "UPDATE runs SET program = ?2, accounting_level = ?3, accounting_note = ?4 "
      "WHERE run_id = ?1")
      .Bind(run_id)
      .Bind(std::string_view(program))
      .Bind(level)
      .Bind(std::string_view(note))
      .Run();
}

void RunStore::SetProbe(int64_t run_id, const std::string& probe, const std::string& state,
                        const std::string& reason, const std::string& fix,
                        const std::string& affects) {
  Prepared(
      "INSERT OR REPLACE INTO probes (run_id, probe, state, reason, fix, affects) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .Bind(run_id)
      .Bind(std::string_view(probe))
      .Bind(std::string_view(state))
      .Bind(std::string_view(reason))
      .Bind(std::string_view(fix))
      .Bind(std::string_view(affects))
      .Run();
}

void RunStore::SetLoss(int64_t run_id, const std::string& what, int64_t lost_count,
                       std::optional<int64_t> total_count) {
  Prepared(
      "INSERT OR REPLACE INTO losses (run_id, what, lost_count, total_count) "
      "VALUES (?1, ?2, ?3, ?4)")
      .Bind(run_id)
      .Bind(std::string_view(what))
      .Bind(lost_count)
      .Bind(total_count)
      .Run();
}

void RunStore::FinishRun(int64_t run_id, RunState state) {
  Prepared("UPDATE runs SET state = ?2 WHERE run_id = ?1 AND state = 'recording'")
      .Bind(run_id)
      .Bind(std::string_view(RunStateName(state)))
      .Run();
}

int64_t RunStore::FindRun(const std::string& run) { return FindRunOrThrow(database_, run); }

void RunStore::SetTags(int64_t run_id, const std::string& tags) {
  Prepared("UPDATE runs SET tags = ?2 WHERE run_id = ?1")
      .Bind(run_id)
      .Bind(std::string_view(tags))
      .Run();
}

void RunStore::SetPrediction(int64_t run_id, const PredictionRow& prediction) {
  Prepared("INSERT OR REPLACE INTO predictions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
      .Bind(run_id)
      .Bind(prediction.from_run_id)
      .Bind(prediction.batches_per_second)
      .Bind(prediction.low)
      .Bind(prediction.high)
      .Bind(std::string_view(prediction.limited_by))
      .Bind(std::string_view(prediction.limited_by_kind))
      .Run();
}

void RunStore::SetConditions(int64_t run_id, const RunConditions& conditions) {
  Prepared(
      "UPDATE runs SET kind = ?2, settings_text = ?3, table_text = ?4, cold = ?5, "
      "resident_ratio = ?6, resident_before_ratio = ?7, resident_note = NULLIF(?8, ''), "
      "epoch_splits_count = ?9, element_order = ?10, order_window_count = ?11 WHERE run_id = ?1")
      .Bind(run_id)
      .Bind(std::string_view(conditions.kind))
      .Bind(std::string_view(conditions.settings_text))
      .Bind(std::string_view(conditions.table_text))
      .Bind(int64_t{conditions.cold})
      .Bind(conditions.resident_ratio)
      .Bind(conditions.resident_before_ratio)
      .Bind(std::string_view(conditions.resident_note))
      .Bind(conditions.epoch_splits_count)
      .Bind(std::string_view(conditions.file_order ? "file" : "any"))
      .Bind(conditions.order_window_count)
      .Run();
}

void RunStore::SetDedupSample(int64_t run_id, double now, double clustered) {
  Prepared("UPDATE runs SET sample_dedup_ratio = ?2, clustered_dedup_ratio = ?3 WHERE run_id = ?1")
      .Bind(run_id)
      .Bind(now)
      .Bind(clustered)
      .Run();
}

}  // namespace headrace::collectors
