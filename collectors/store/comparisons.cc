// Comparisons of runs, and what a tuner decided about one.
#include <sqlite3.h>
#include <unistd.h>

#include "base/check.h"
#include "collectors/store/columns.h"
#include "collectors/store/store.h"
#include "collectors/store/store_file.h"
#include "probes/process.h"

namespace headrace::collectors {

const char* ComparisonStateName(ComparisonState state) {
  switch (state) {
    case ComparisonState::kRunning:
      return "running";
    case ComparisonState::kComplete:
      return "complete";
    case ComparisonState::kInterrupted:
      return "interrupted";
    case ComparisonState::kFailed:
      return "failed";
  }
  HR_CHECK(false, "a state of comparisons");
}

int64_t RunStore::BeginComparison(const ComparisonRow& comparison) {
  const auto self = probes::ReadProcessStat(getpid());
  Prepared(
      "INSERT INTO comparisons (name, started_realtime_ns, state, a_label, b_label, seed, "
      "hostname, writer_pid, writer_start) VALUES (?1, ?2, 'running', ?3, ?4, ?5, ?6, ?7, ?8)")
      .Bind(std::string_view(comparison.name))
      .Bind(comparison.started_realtime_ns)
      .Bind(std::string_view(comparison.a_label))
      .Bind(std::string_view(comparison.b_label))
      .Bind(std::string_view(comparison.seed))
      .Bind(HostName())
      .Bind(int64_t{getpid()})
      .Bind(self ? self->start_ticks : int64_t{0})
      .Run();
  return sqlite3_last_insert_rowid(database_.handle());
}

void RunStore::SetComparisonRun(int64_t comparison_id, const ComparisonRunRow& run) {
  Prepared("INSERT OR REPLACE INTO comparison_runs VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .Bind(comparison_id)
      .Bind(run.order_index)
      .Bind(run.pair_index)
      .Bind(std::string_view(&run.side, 1))
      .Bind(run.run_id)
      .Bind(std::string_view(run.left_out))
      .Run();
}

void RunStore::FinishComparison(int64_t comparison_id, ComparisonState state, int64_t duration_ns,
                                const std::string& verdict, const std::string& result_json) {
  Prepared(
      "UPDATE comparisons SET state = ?2, duration_ns = ?3, verdict = ?4, result_json = ?5 "
      "WHERE comparison_id = ?1")
      .Bind(comparison_id)
      .Bind(std::string_view(ComparisonStateName(state)))
      .Bind(duration_ns)
      .Bind(std::string_view(verdict))
      .Bind(std::string_view(result_json))
      .Run();
}

void RunStore::RemoveComparison(int64_t comparison_id) {
  Prepared("DELETE FROM comparisons WHERE comparison_id = ?1").Bind(comparison_id).Run();
}

void RunStore::SetDecision(int64_t run_id, const DecisionRow& decision) {
  Transaction transaction(database_);
  Prepared("DELETE FROM decision_changes WHERE run_id = ?1 AND decision_index = ?2")
      .Bind(run_id)
      .Bind(decision.index)
      .Run();
  static const std::string sql = ReplaceRow(kDecisions);
  Prepared(sql.c_str())
      .Bind(run_id)
#define HR_DECISION_COLUMN(type, member, column, help) .Bind(decision.member)
#include "collectors/store/columns.def"
      .Run();
  for (const DecisionChangeRow& change : decision.changes) {
    Prepared("INSERT INTO decision_changes VALUES (?1, ?2, ?3, ?4, ?5)")
        .Bind(run_id)
        .Bind(decision.index)
        .Bind(std::string_view(change.knob))
        .Bind(std::string_view(change.from))
        .Bind(std::string_view(change.to))
        .Run();
  }
  transaction.Commit();
}

}  // namespace headrace::collectors
