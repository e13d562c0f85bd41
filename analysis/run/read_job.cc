#include "analysis/run/read_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/run/run_database.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

JobView ReadJobRow(const ViewRow& row) {
  JobView job;
  job.job_id = row.Number("job_id");
  job.name = row.Text("job");
  job.state = row.Text("state");
  job.mode = row.Text("mode");
  job.ranks = row.Number("ranks_count");
  job.epochs = row.Number("epochs_count");
  job.splits = row.Number("splits_count");
  job.rows = row.Number("rows_count");
  job.left_rows = row.Integer("left_rows_count");
  job.largest_split_rows = row.Number("largest_split_rows_count");
  job.unit_rows = row.Number("unit_rows_count");
  job.batch_rows = row.Number("batch_rows_count");
  job.started_realtime_ns = row.Number("started_realtime_ns");
  job.duration_ns = row.Number("duration_ns");
  return job;
}

// Intervals of a member by their start, so that each view adds what it knows.
class MemberReader {
 public:
  MemberReader(RunDatabase* database, Member* member) : database_(*database), member_(*member) {}

  void Read() {
    ReadSteps();
    ReadStages();
    ReadOperators();
    ReadMeasurements();
    ReadTotals();
  }

 private:
  MemberInterval* At(int64_t start_ns) {
    const auto it = by_start_.find(start_ns);
    return it == by_start_.end() ? nullptr : &member_.intervals[it->second];
  }
  // Measurements have a course of their own: the interval in which one ends.
  MemberInterval* Until(int64_t end_ns) {
    auto it = by_start_.lower_bound(end_ns);
    return it == by_start_.begin() ? nullptr : &member_.intervals[std::prev(it)->second];
  }
  void ReadSteps();
  void ReadStages();
  void ReadOperators();
  void ReadMeasurements();
  void ReadTotals();

  RunDatabase& database_;
  Member& member_;
  std::map<int64_t, size_t> by_start_;  // index into intervals
};

void MemberReader::ReadSteps() {
  database_.EachOf("step_interval", member_.run_id, "start_ns", [&](const ViewRow& row) {
    by_start_[row.Number("start_ns")] = member_.intervals.size();
    MemberInterval& one = member_.intervals.emplace_back();
    one.start_ns = row.Number("start_ns");
    one.duration_ns = row.Number("duration_ns");
    one.steps = row.Number("steps_count");
    one.wait_ns = row.Number("wait_ns");
    one.compute_ns = row.Number("compute_ns");
    if (member_.role == "rank") one.rows = row.Number("rows_count");
  });
}

void MemberReader::ReadStages() {
  std::map<std::string, size_t> index;
  database_.EachOf("stage_summary", member_.run_id, "stage_index", [&](const ViewRow& row) {
    index[row.Text("stage")] = member_.stages.size();
    member_.stages.push_back(row.Text("stage"));
  });
  for (MemberInterval& one : member_.intervals) {
    one.stages.resize(member_.stages.size());
    for (size_t s = 0; s < one.stages.size(); ++s) one.stages[s].name = member_.stages[s];
  }
  database_.EachOf("stage_interval", member_.run_id, "start_ns", [&](const ViewRow& row) {
    MemberInterval* const one = At(row.Number("start_ns"));
    const auto stage = index.find(row.Text("stage"));
    if (one == nullptr || stage == index.end()) return;
    JobStage& s = one->stages[stage->second];
    s.busy_ns = row.Number("busy_ns");
    s.lifetime_ns = row.Number("lifetime_ns");
    s.wait_in_ns = row.Number("wait_in_ns");
    s.wait_out_ns = row.Number("wait_out_ns");
    s.on_cpu_ns = row.Integer("on_cpu_ns");
    s.runnable_ns = row.Integer("runnable_ns");
    s.threads = row.Real("parallelism_count").value_or(0);
  });
}

void MemberReader::ReadOperators() {
  std::map<std::string, bool> reads;
  database_.Each(
      "SELECT stage, kind FROM operator_summary WHERE run_id = ?1 AND kind IN ('fetch', 'io')",
      member_.run_id, [&](const ViewRow& row) { reads[row.Text("stage")] = true; });
  for (MemberInterval& one : member_.intervals)
    for (JobStage& stage : one.stages) stage.reads = reads.contains(stage.name);
  if (member_.role != "worker") return;
  database_.Each(
      "SELECT start_ns, operator, rows_count, wait_out_ns FROM operator_interval "
      "WHERE run_id = ?1 AND operator IN ('send', 'deal')",
      member_.run_id, [&](const ViewRow& row) {
        MemberInterval* const one = At(row.Number("start_ns"));
        if (one == nullptr) return;
        if (row.View("operator") == "send") one->rows = row.Number("rows_count");
        if (row.View("operator") == "deal") one->no_room_ns = row.Number("wait_out_ns");
      });
}

void MemberReader::ReadMeasurements() {
  // A counter that did not grow has no row, so where it was read at all that is 0.
  database_.Each(
      "SELECT DISTINCT metric FROM measurement_summary WHERE run_id = ?1 AND metric IN "
      "('process_cpu_ns', 'cgroup_throttled_ns')",
      member_.run_id, [&](const ViewRow& row) {
        auto MemberInterval::*const figure = row.View("metric") == "process_cpu_ns"
                                                 ? &MemberInterval::cpu_ns
                                                 : &MemberInterval::throttled_ns;
        for (MemberInterval& one : member_.intervals) one.*figure = 0;
      });
  // Unlabelled: of the process as a whole.
  database_.Each(
      "SELECT start_ns + duration_ns AS end_ns, metric, value FROM measurement_interval WHERE "
      "run_id = ?1 AND process_id IS NULL AND cause = '' AND metric IN ('process_cpu_ns', "
      "'process_absent_ns', 'cgroup_throttled_ns', 'host_busy_cores')",
      member_.run_id, [&](const ViewRow& row) {
        MemberInterval* const one = Until(row.Number("end_ns"));
        const Real value = row.Real("value");
        if (one == nullptr || !value) return;
        const auto metric = row.View("metric");
        const auto ns = static_cast<int64_t>(*value);
        if (metric == "process_cpu_ns") one->cpu_ns = one->cpu_ns.value_or(0) + ns;
        if (metric == "process_absent_ns") one->absent_ns += ns;
        // Groups above it are throttled at the same time: the longest counts.
        if (metric == "cgroup_throttled_ns")
          one->throttled_ns = std::max(one->throttled_ns.value_or(0), ns);
        if (metric == "host_busy_cores") one->host_busy_cores = *value;
      });
}

void MemberReader::ReadTotals() {
  database_.EachOf("step_summary", member_.run_id, "", [&](const ViewRow& row) {
    if (row.Number("steps_count") > 0) member_.step_p99_ns = row.Integer("step_p99_ns");
  });
  database_.EachOf("process_summary", member_.run_id, "", [&](const ViewRow& row) {
    if (const Real rss = row.Real("maximum_rss_bytes"))
      member_.rss_bytes = static_cast<int64_t>(*rss);
  });
  database_.Each(
      "SELECT kind, SUM(bytes_out_bytes) AS bytes, SUM(completions_count) AS requests FROM "
      "operator_summary WHERE run_id = ?1 AND kind IN ('io', 'receive') GROUP BY kind",
      member_.run_id, [&](const ViewRow& row) {
        if (row.View("kind") == "receive") {
          member_.received_bytes = row.Integer("bytes");
        } else {
          member_.read_bytes = row.Integer("bytes");
          member_.read_requests = row.Integer("requests");
        }
      });
  database_.Each("SELECT last_value FROM host_summary WHERE run_id = ?1 AND metric = 'host_cores'",
                 member_.run_id, [&](const ViewRow& row) {
                   if (const Real cores = row.Real("last_value")) member_.host_cores = *cores;
                 });
}

void ReadMembers(RunDatabase* database, JobView* job) {
  database->Each("SELECT * FROM member_summary WHERE job_id = ?1 ORDER BY role, number, run_id",
                 job->job_id, [&](const ViewRow& row) {
                   Member& member = job->members.emplace_back();
                   member.run_id = row.Number("run_id");
                   member.role = row.Text("role");
                   member.number = row.Number("number");
                   member.instance = row.Text("instance");
                   member.host = row.Text("hostname");
                   member.pid = row.Number("pid");
                   member.state = row.Text("state");
                   member.cores = row.Real("cores_count");
                   member.cores_bound_by = row.Text("cores_bound_by");
                   member.began_ns = row.Number("started_realtime_ns") - job->started_realtime_ns;
                   member.duration_ns = row.Number("duration_ns");
                   member.has_ended = row.Number("has_ended") != 0;
                 });
  for (Member& member : job->members)
    if (member.role != "dispatcher") MemberReader(database, &member).Read();
}

void ReadCourse(RunDatabase* database, JobView* job) {
  std::map<int64_t, int64_t> began;  // by dispatcher's run
  for (const Member& member : job->members) began[member.run_id] = member.began_ns;
  // Rows of a view with the time, by the job's clock, at which the run of their dispatcher began.
  const auto each = [&](const char* rows, const auto& take) {
    database->Each(rows, job->job_id,
                   [&](const ViewRow& row) { take(row, began[row.Number("run_id")]); });
  };
  each("SELECT * FROM job_interval WHERE job_id = ?1 ORDER BY run_id, start_ns",
       [&](const ViewRow& row, int64_t begin_ns) {
         JobInterval& one = job->intervals.emplace_back();
         one.start_ns = begin_ns + row.Number("start_ns");
         one.duration_ns = row.Number("duration_ns");
         one.running_ns = row.Number("running_ns");
         one.leases = row.Number("leases_count");
         one.again = row.Number("leased_again_count");
         one.again_rows = row.Number("leased_again_rows_count");
         one.lost = row.Number("workers_lost_count");
         one.serving_ns = row.Number("serving_ns");
         one.no_split_ns = row.Number("no_split_ns");
         one.late_ns = row.Number("late_ns");
         one.wanted = row.Integer("wanted_count");
         one.left_rows = row.Integer("left_rows_count");
       });
  each(
      "SELECT * FROM (SELECT * FROM job_event WHERE job_id = ?1 ORDER BY run_id DESC, event_index "
      "DESC LIMIT 1000) ORDER BY run_id, event_index",
      [&](const ViewRow& row, int64_t begin_ns) {
        JobEvent& one = job->events.emplace_back();
        one.at_ns = begin_ns + row.Number("at_ns");
        one.kind = row.Text("kind");
        one.instance = row.Text("instance");
        one.text = row.Text("text");
        one.role = row.Text("role");
        one.number = row.Number("number");
        one.splits = row.Integer("splits_count");
      });
  // They are counted from 0, also those that are kept no longer.
  database->Each(
      "SELECT run_id, MAX(event_index) + 1 AS events FROM job_event WHERE job_id = ?1 "
      "GROUP BY run_id",
      job->job_id, [&](const ViewRow& row) { job->events_left_out += row.Number("events"); });
  job->events_left_out -= static_cast<int64_t>(job->events.size());
}

constexpr size_t kMostDecisions = 1000;  // the newest; of events as many

}  // namespace

JobView LoadJob(const std::string& path, int64_t job_id) {
  RunDatabase database(path);
  std::optional<JobView> found;
  database.Each("SELECT * FROM job_summary", 0, [&](const ViewRow& row) {
    if (row.Number("job_id") == job_id) found = ReadJobRow(row);
  });
  if (!found)
    throw Error(ExitCode::kBadData, fmt::format("holds no job with the number {}", job_id), path);
  ReadMembers(&database, &*found);
  ReadCourse(&database, &*found);
  for (const Member& member : found->members) {
    if (member.role != "dispatcher") continue;
    for (DecisionRow& decision : LoadDecisions(path, std::to_string(member.run_id))) {
      decision.at_ns += member.began_ns;
      found->decisions.push_back(std::move(decision));
    }
  }
  std::vector<DecisionRow>& all = found->decisions;
  const size_t left_out = all.size() - std::min(all.size(), kMostDecisions);
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(left_out));
  found->decisions_left_out = static_cast<int64_t>(left_out);
  return std::move(*found);
}

JobView LoadJob(const std::string& path, const std::string& name) {
  const std::vector<JobName> jobs = ListJobs(path);
  for (const JobName& job : jobs)
    if (name == "latest" || job.name == name) return LoadJob(path, job.job_id);
  throw Error(ExitCode::kBadData,
              jobs.empty() ? "holds no job of the preprocessing service"
                           : fmt::format("holds no job '{}'; its newest is '{}'", Printable(name),
                                         Printable(jobs.front().name)),
              path, "name the file that 'headrace service up --fleet FILE' wrote with --db");
}

std::vector<JobName> ListJobs(const std::string& path) {
  RunDatabase database(path);
  std::vector<JobName> jobs;
  if (!database.Has("job_summary")) return jobs;
  database.Each(
      "SELECT job_id, job, state, started_realtime_ns, duration_ns, (SELECT COUNT(*) FROM "
      "member_summary AS m WHERE m.job_id = j.job_id) AS members FROM job_summary AS j ORDER BY "
      "job_id DESC",
      0, [&](const ViewRow& row) {
        jobs.push_back({row.Number("job_id"), row.Text("job"), row.Text("state"),
                        row.Number("started_realtime_ns"), row.Number("duration_ns"),
                        row.Number("members")});
      });
  return jobs;
}

std::optional<int64_t> JobOfRun(const std::string& path, int64_t run_id) {
  RunDatabase database(path);
  std::optional<int64_t> job;
  if (!database.Has("member_summary")) return job;
  database.Each("SELECT job_id FROM member_summary WHERE run_id = ?1", run_id,
                [&](const ViewRow& row) { job = row.Number("job_id"); });
  return job;
}

}  // namespace headrace::analysis
