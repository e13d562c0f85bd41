// Which runs go, and what that gives back to the disk.
#include "base/clock.h"
#include "collectors/store/store.h"

namespace headrace::collectors {

void RunStore::RemoveRun(int64_t run_id) {
  Transaction transaction(database_);
  Prepared("DELETE FROM runs WHERE run_id = ?1").Bind(run_id).Run();  // the rest cascades
  transaction.Commit();
}

int64_t RunStore::used_bytes() {
  return (database_.Integer("PRAGMA page_count") - database_.Integer("PRAGMA freelist_count")) *
         database_.Integer("PRAGMA page_size");
}

std::vector<int64_t> RunStore::Retain(const Retention& retention) {
  struct Finished {
    int64_t id, started_ns;
  };
  std::vector<Finished> finished;  // oldest first
  {
    Statement runs(database_,
                   "SELECT run_id, started_realtime_ns FROM runs WHERE state != 'recording' "
                   "ORDER BY run_id");
    while (runs.Step()) finished.push_back({runs.integer(0), runs.integer(1)});
  }
  std::vector<int64_t> removed;
  const int64_t now = RealtimeNs();
  for (size_t i = 0; i < finished.size(); i++) {
    const bool old =
        retention.older_than_ns && now - finished[i].started_ns > *retention.older_than_ns;
    const bool many = retention.keep && static_cast<int64_t>(finished.size() - i) > *retention.keep;
    const bool large = retention.max_bytes && used_bytes() > *retention.max_bytes;
    if (!old && !many && !large) continue;
    RemoveRun(finished[i].id);
    removed.push_back(finished[i].id);
  }
  if (!removed.empty()) {
    Statement vacuum(database_, "PRAGMA incremental_vacuum");
    while (vacuum.Step()) {
    }
  }
  return removed;
}

}  // namespace headrace::collectors
