// The row of a run and what is said of it as a whole.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/store/columns.h"
#include "collectors/store/find_run.h"
#include "collectors/store/store.h"
#include "probes/process.h"

namespace headrace::collectors {
namespace {

template <typename Value>
void BindValue(const Value& value, Statement* statement) {
  statement->Bind(value);
}
void BindValue(const std::string& text, Statement* statement) {
  statement->Bind(std::string_view(text));
}
void BindValue(const std::optional<std::string>& text, Statement* statement) {
  if (text) {
    statement->Bind(std::string_view(*text));
  } else {
    statement->BindNull();
  }
}

}  // namespace

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
  std::string names, parameters;
  for (const RunColumn& column : kRunColumns) {
    names += fmt::format("{}, ", column.name);
    parameters += "?, ";
  }
  Statement insert(database_, fmt::format("INSERT INTO runs ({}headrace_version, collector_pid, "
                                          "collector_start, state) VALUES ({}?, ?, ?, 'recording')",
                                          names, parameters));
#define HR_RUN_COLUMN(type, column, help) BindValue(info.column, &insert);
#include "collectors/store/columns.def"
  insert.Bind(std::string_view(HEADRACE_VERSION)).Bind(int64_t{getpid()});
  insert.Bind(self ? self->start_ticks : int64_t{0});
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
  std::string changes;
  for (const RunColumn& column : kConditionColumns) {
    changes += fmt::format("{}{} = ?", changes.empty() ? "" : ", ", column.name);
  }
  Statement update(database_, fmt::format("UPDATE runs SET {} WHERE run_id = ?", changes));
#define HR_CONDITION_COLUMN(type, read, column, unset, help) BindValue(conditions.column, &update);
#include "collectors/store/columns.def"
  Transaction transaction(database_);
  update.Bind(run_id).Run();
  for (const auto& [key, value] : conditions.settings) {
    Prepared("INSERT OR REPLACE INTO run_settings (run_id, key, value) VALUES (?1, ?2, ?3)")
        .Bind(run_id)
        .Bind(std::string_view(key))
        .Bind(std::string_view(value))
        .Run();
  }
  transaction.Commit();
}

void RunStore::SetFacts(int64_t run_id, const std::vector<RunFact>& facts) {
  Transaction transaction(database_);
  for (const RunFact& fact : facts) {
    Prepared("INSERT OR REPLACE INTO run_facts (run_id, name, value, unit) VALUES (?1, ?2, ?3, ?4)")
        .Bind(run_id)
        .Bind(std::string_view(fact.name))
        .Bind(fact.value)
        .Bind(std::string_view(fact.unit))
        .Run();
  }
  transaction.Commit();
}

int64_t RunStore::AddMark(int64_t run_id, const std::string& text) {
  Statement run(database_,
                "SELECT started_realtime_ns FROM runs WHERE run_id = ?1 AND state = 'recording'");
  if (!run.Bind(run_id).Step())
    throw Error(ExitCode::kUsage, "this run has ended: only a recording can be marked",
                fmt::format("run {}", run_id), "mark while it is recorded");
  const int64_t at_ns = std::max<int64_t>(0, RealtimeNs() - run.integer(0));
  Prepared("INSERT OR REPLACE INTO run_marks (run_id, at_ns, text) VALUES (?1, ?2, ?3)")
      .Bind(run_id)
      .Bind(at_ns)
      .Bind(std::string_view(text))
      .Run();
  return at_ns;
}

void RunStore::AddStoreProbe(int64_t run_id, StoreProbeSample probe) {
  const int64_t began = database_.Integer(
      fmt::format("SELECT started_realtime_ns FROM runs WHERE run_id = {}", run_id));
  probe.start_ns = std::max<int64_t>(0, probe.start_realtime_ns - began);
  static const std::string sql = ReplaceRow(kStoreProbes);
  Prepared(sql.c_str())
      .Bind(run_id)
#define HR_STORE_PROBE_COLUMN(type, member, column, help) .Bind(probe.member)
#include "collectors/store/columns.def"
      .Run();
}

}  // namespace headrace::collectors
