#include "collectors/store/fleet_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "probes/process.h"

namespace headrace::collectors {
namespace {

// So much of a member is kept in full detail (RunStore::Rollup).
constexpr int64_t kRollupEveryNs = 3600'000'000'000;
// What a message says of a member's clock holds so long: a clock may be set, and drifts.
constexpr int64_t kOffsetHoldsNs = 600'000'000'000;
constexpr int64_t kTrimEvents = 1000;  // at a time

}  // namespace

FleetStore::FleetStore(const std::string& path, const JobRow& job, const RunInfo& dispatcher)
    : runs_(path) {
  if (const auto self = probes::ReadProcessStat(getpid())) start_ticks_ = self->start_ticks;
  Transaction transaction(runs_.database());
  job_id_ = FindOrBeginJob(job, dispatcher.started_realtime_ns);
  dispatcher_run_ = FindOrBeginMember(
      fmt::format("dispatcher {} {}", dispatcher.pid, dispatcher.started_realtime_ns), "dispatcher",
      std::nullopt, dispatcher, 0);
  transaction.Commit();
}

int64_t FleetStore::FindOrBeginJob(const JobRow& job, int64_t now_ns) {
  Statement find(runs_.database(),
                 "SELECT job_id, fingerprint, mode, ranks_count, epochs_count, splits_count, "
                 "rows_count, state FROM jobs WHERE job = ?1 ORDER BY job_id DESC LIMIT 1");
  find.Bind(job.job);
  if (find.Step()) {
    const int64_t newest = find.integer(0);
    const bool is_same = find.text(1) == job.fingerprint && find.text(2) == job.mode &&
                         find.integer(3) == job.ranks && find.integer(4) == job.epochs &&
                         find.integer(5) == job.splits && find.integer(6) == job.rows;
    if (is_same && find.text(7) == "running") return newest;
    // Nobody goes on with it: its dispatcher was killed.
    Statement end(runs_.database(),
                  "UPDATE jobs SET state = 'ended' WHERE job_id = ?1 AND state = 'running'");
    end.Bind(newest).Run();
  }
  Statement insert(
      runs_.database(),
      "INSERT INTO jobs (job, fingerprint, mode, ranks_count, epochs_count, splits_count, "
      "rows_count, largest_split_rows_count, unit_rows_count, batch_rows_count, "
      "started_realtime_ns, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'running')");
  insert.Bind(job.job).Bind(job.fingerprint).Bind(job.mode).Bind(job.ranks).Bind(job.epochs);
  insert.Bind(job.splits).Bind(job.rows).Bind(job.largest_split_rows).Bind(job.unit_rows);
  insert.Bind(job.batch_rows).Bind(now_ns).Run();
  return runs_.database().last_id();
}

// Within a transaction.
int64_t FleetStore::FindOrBeginMember(const std::string& instance, const std::string& role,
                                      std::optional<int64_t> number, const RunInfo& info,
                                      int64_t offset_ns) {
  Statement find(runs_.database(),
                 "SELECT run_id FROM members WHERE job_id = ?1 AND instance = ?2");
  if (find.Bind(job_id_).Bind(instance).Step()) return find.integer(0);
  if (!number) {
    Statement count(runs_.database(),
                    "SELECT COUNT(*) + 1 FROM members WHERE job_id = ?1 AND role = ?2");
    count.Bind(job_id_).Bind(role).Step();
    number = count.integer(0);
  }
  RunInfo named = info;
  named.name = fmt::format("{}-{}", role, *number);
  const int64_t run = runs_.BeginRun(named);
  Statement insert(runs_.database(),
                   "INSERT INTO members (run_id, job_id, instance, role, number, clock_offset_ns) "
                   "VALUES (?, ?, ?, ?, ?, ?)");
  insert.Bind(run).Bind(job_id_).Bind(instance).Bind(role).Bind(*number).Bind(offset_ns).Run();
  return run;
}

// Of all messages the quickest knows the clock best.
void FleetStore::AddOffset(int64_t at_ns, int64_t offset_ns, std::deque<Offset>* known) {
  if (!known->empty()) {
    at_ns = std::max(at_ns, known->back().at_ns);  // a shipment may come again
    if (known->back().at_ns == at_ns && known->back().offset_ns <= offset_ns) return;
  }
  while (!known->empty() && known->back().offset_ns >= offset_ns) known->pop_back();
  known->push_back({at_ns, offset_ns});
  while (known->front().at_ns < at_ns - kOffsetHoldsNs) known->pop_front();
}

bool FleetStore::Add(const std::string& instance, const Shipment& shipment, int64_t offset_ns) {
  Transaction transaction(runs_.database());
  const int64_t run =
      FindOrBeginMember(instance, shipment.role, shipment.rank, shipment.info, offset_ns);
  int64_t end_ns = 0;
  std::deque<Offset> offsets;  // which are kept once the shipment is: it may be refused yet
  if (const auto kept = offsets_.find(run); kept != offsets_.end()) offsets = kept->second;
  {
    Statement known(runs_.database(),
                    "SELECT r.duration_ns, m.clock_offset_ns FROM runs AS r JOIN members AS m "
                    "USING (run_id) WHERE run_id = ?1");
    known.Bind(run).Step();
    end_ns = known.integer(0);
    const int64_t at_ns = shipment.interval.start_ns + shipment.interval.duration_ns;
    if (offsets.empty()) AddOffset(at_ns, known.integer(1), &offsets);  // an earlier dispatcher's
    AddOffset(at_ns, offset_ns, &offsets);
  }  // a rollup drops tables, which no statement may be looking at
  const bool is_new = shipment.interval.start_ns >= end_ns;
  Statement update(runs_.database(),
                   "UPDATE members SET clock_offset_ns = ?2, has_ended = MAX(has_ended, ?3) "
                   "WHERE run_id = ?1");
  update.Bind(run).Bind(offsets.front().offset_ns).Bind(shipment.is_last).Run();
  if (is_new) Append(run, shipment);
  // Also when it comes again: an earlier dispatcher may have died before it was said here.
  if (shipment.is_last) runs_.FinishRun(run, RunState::kComplete);
  transaction.Commit();
  if (shipment.is_last) {
    offsets_.erase(run);
  } else {
    offsets_[run] = std::move(offsets);
  }
  const int64_t now_ns = shipment.interval.start_ns + shipment.interval.duration_ns;
  if (is_new && now_ns / kRollupEveryNs > end_ns / kRollupEveryNs) runs_.Rollup(run, now_ns);
  return is_new;
}

// Within a transaction.
void FleetStore::Append(int64_t run, const Shipment& shipment) {
  // Also of one that an earlier dispatcher began: this process writes it now.
  Statement recording(runs_.database(),
                      "UPDATE runs SET state = 'recording', collector_pid = ?2, collector_start "
                      "= ?3 WHERE run_id = ?1");
  recording.Bind(run).Bind(int64_t{getpid()}).Bind(start_ticks_).Run();
  MeasurementBatch measured = shipment.measured;
  std::erase_if(measured.definitions, [&](const MeasurementRow& row) {
    Statement find(runs_.database(),
                   "SELECT 1 FROM measurements WHERE run_id = ?1 AND measurement_id = ?2");
    return find.Bind(run).Bind(row.id).Step();
  });
  runs_.Append(run, {shipment.interval}, measured);
}

void FleetStore::AddInterval(const JobInterval& i) {
  Transaction transaction(runs_.database());
  Statement insert(runs_.database(),
                   "INSERT OR REPLACE INTO job_intervals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                   "?, ?)");
  insert.Bind(dispatcher_run_).Bind(i.start_ns).Bind(i.duration_ns).Bind(i.running_ns);
  insert.Bind(i.leases).Bind(i.again).Bind(i.again_rows).Bind(i.lost);
  insert.Bind(i.serving_ns).Bind(i.no_split_ns).Bind(i.wanted).Bind(i.late_ns).Bind(i.left_rows);
  insert.Run();
  Statement run(runs_.database(),
                "UPDATE runs SET duration_ns = MAX(duration_ns, ?2) WHERE run_id = ?1");
  run.Bind(dispatcher_run_).Bind(i.start_ns + i.duration_ns).Run();
  Statement job(runs_.database(),
                "UPDATE jobs SET left_rows_count = COALESCE(?2, left_rows_count), duration_ns = "
                "MAX(duration_ns, ?3 - started_realtime_ns) WHERE job_id = ?1");
  job.Bind(job_id_).Bind(i.left_rows).Bind(RealtimeNs()).Run();
  transaction.Commit();
}

void FleetStore::AddEvent(const JobEvent& event) {
  Statement insert(runs_.database(), "INSERT INTO job_events VALUES (?, ?, ?, ?, ?, ?, ?)");
  insert.Bind(dispatcher_run_).Bind(num_events_++).Bind(event.at_ns).Bind(event.kind);
  insert.Bind(event.instance).Bind(event.splits).Bind(event.text).Run();
  if (num_events_ <= kMostJobEvents || num_events_ % kTrimEvents != 0) return;
  Statement trim(runs_.database(), "DELETE FROM job_events WHERE run_id = ?1 AND event_index < ?2");
  trim.Bind(dispatcher_run_).Bind(num_events_ - kMostJobEvents).Run();
}

void FleetStore::Finish(End end) {
  Transaction transaction(runs_.database());
  Statement job(runs_.database(),
                "UPDATE jobs SET state = ?2, left_rows_count = CASE WHEN ?2 = 'complete' THEN 0 "
                "ELSE left_rows_count END WHERE job_id = ?1");
  job.Bind(job_id_).Bind(std::string_view(end == End::kComplete ? "complete" : "ended")).Run();
  Statement members(runs_.database(),
                    "UPDATE runs SET state = 'interrupted' WHERE state = 'recording' AND run_id IN "
                    "(SELECT run_id FROM members WHERE job_id = ?1 AND role <> 'dispatcher')");
  members.Bind(job_id_).Run();
  transaction.Commit();
  runs_.FinishRun(dispatcher_run_, RunState::kComplete);
}

}  // namespace headrace::collectors
