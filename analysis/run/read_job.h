// JobView: a job of the preprocessing service as its dispatcher kept it: who took part, and the
// course of each member and of the job. Times are ns since the job's first dispatcher began, by the
// dispatcher's clock. Absent: not measured.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/read_run.h"
#include "collectors/store/job_course.h"

namespace headrace::analysis {

struct JobStage {
  std::string name;
  bool reads = false;  // it has the operator that reads the table
  int64_t busy_ns = 0, lifetime_ns = 0, wait_in_ns = 0, wait_out_ns = 0;
  std::optional<int64_t> on_cpu_ns, runnable_ns;
  double threads = 0;
};

// Of one member; what it does not have is 0 or empty.
struct MemberInterval {
  int64_t start_ns = 0, duration_ns = 0;
  // A rank: its steps. A worker: the rows that it sent.
  int64_t steps = 0, rows = 0, wait_ns = 0, compute_ns = 0;
  std::vector<JobStage> stages;         // parallel to Member::stages
  int64_t no_room_ns = 0;               // a unit waited for room in a lane
  int64_t absent_ns = 0;                // stopped, or without a core
  std::optional<int64_t> throttled_ns;  // its control group used up its quota
  std::optional<int64_t> cpu_ns;
  std::optional<double> host_busy_cores;
};

struct Member {
  int64_t run_id = 0, number = 0, pid = 0;
  std::string role, host, state, instance;  // role: dispatcher, worker, rank
  std::optional<double> cores, host_cores;
  std::string cores_bound_by;
  int64_t began_ns = 0, duration_ns = 0;
  bool has_ended = false;  // said that it measures no more
  std::optional<int64_t> step_p99_ns, rss_bytes, received_bytes, read_bytes, read_requests;
  std::vector<std::string> stages;  // by their order
  std::vector<MemberInterval> intervals;
};

using collectors::JobEvent;
using collectors::JobInterval;

struct JobView {
  int64_t job_id = 0;
  std::string name, state, mode;  // running, complete, ended; lockstep, independent
  int64_t ranks = 1, epochs = 1, splits = 0, rows = 0, largest_split_rows = 0;
  int64_t unit_rows = 0, batch_rows = 0;
  int64_t started_realtime_ns = 0, duration_ns = 0;
  std::optional<int64_t> left_rows;
  std::vector<Member> members;  // dispatchers, ranks, workers, each by number
  std::vector<JobInterval> intervals;
  std::vector<JobEvent> events;        // the newest
  int64_t events_left_out = 0;         // older ones
  std::vector<DecisionRow> decisions;  // the newest, about the number of workers
  int64_t decisions_left_out = 0;      // older ones
};

// The newest job of that name in the file; "latest": the newest of all. Throws Error kBadData: no
// headrace database, no such job.
JobView LoadJob(const std::string& path, const std::string& job);
JobView LoadJob(const std::string& path, int64_t job_id);

// The jobs of a file, the newest first: name and state. Empty where it holds none.
struct JobName {
  int64_t job_id = 0;
  std::string name, state;
  int64_t started_realtime_ns = 0, duration_ns = 0, members = 0;
};
std::vector<JobName> ListJobs(const std::string& path);
// The job that a run is a member of; nothing when it is none's.
std::optional<int64_t> JobOfRun(const std::string& path, int64_t run_id);

}  // namespace headrace::analysis
