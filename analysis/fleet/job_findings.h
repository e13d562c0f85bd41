// JobFindings: what limits a job of the preprocessing service, from what its members measured. The
// time of its workers is divided exclusively:
//
//   idle (no lease: the dispatcher is late, or no split is left) | no room (a lane is full: one
//   slow rank, or the way to all) | absent (stopped, or without a core) | at work (storage, cores,
//   quota)
//
// The largest part that is not work is to blame where it is worth its name; else what workers work
// on. Windows of the job, drawn again and again, give the probability of that answer.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/read_job.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

enum class JobLimit : uint8_t {
  kTrainers,    // they take what they can: nothing to gain
  kSlowRank,    // one rank that the others, or the workers, wait for
  kDelivery,    // workers have units and no room, ranks wait
  kDispatcher,  // workers wait for leases that are there
  kSplits,      // no split is left to lease while ranks wait: few or unlike ones
  kFailures,    // workers lost, and what they had made again
  kStraggler,   // workers that stand still or are much slower than the others
  kStorage,     // workers wait for reads
  kQuota,       // the CPU quota of workers
  kMachine,     // all cores of the workers' machines are busy
  kWorkers,     // workers do what they can: more of them give more
};
const char* JobLimitKey(JobLimit limit);   // "slow_rank"
const char* JobLimitName(JobLimit limit);  // "a slow rank"

struct WorkerFigures {
  size_t member = 0;  // index into JobView::members
  double serving_s = 0, rows = 0, rows_per_s = 0;
  // Shares of its time; together at most 1.
  double idle = 0, no_room = 0, absent = 0, working = 0;
  std::string busiest_stage;
  double utilisation = 0;          // of that stage's threads
  std::optional<double> blocked;   // share of its work; absent: its CPU time was not read
  std::optional<double> runnable;  // of its need of CPU: waiting for a core
  std::optional<double> cpu_cores, throttled;
  bool reads_limit = false;  // its busiest stage reads, and is blocked
  bool is_straggler = false;
};
struct RankFigures {
  size_t member = 0;
  int64_t rank = 0;
  double rows = 0, rows_per_s = 0, wait_s = 0, compute_s = 0;
  std::optional<double> stall;  // wait / (wait + compute); absent: no step yet
  double absent = 0;
  bool is_slow = false;
};

// A part of the workers' time that is lost, or the limit of what is not.
struct JobShare {
  JobLimit limit = JobLimit::kWorkers;
  double share = 0;  // of the workers' time
};

struct JobFindings {
  // Why there is no verdict, and what to do for one; empty: there is one. Figures of members are
  // there as far as they were measured.
  std::string undecided, undecided_fix;
  double seconds = 0;  // from the first batch to the last
  double rows = 0, rows_per_s = 0;
  double workers = 0;  // serving, mean
  std::optional<double> worst_stall, mean_stall;
  int64_t worst_rank = 0;
  Interval stall_interval;  // 90 %, of the worst
  JobLimit limit = JobLimit::kWorkers;
  std::optional<size_t> member;  // to blame, if it is one
  double share = 0;              // of the workers' time that the limit costs; 0: none is lost
  double probability = 0;        // draws in which it limits
  // With the limit gone: at most so many times the rate, and what limits next.
  std::optional<double> gain;    // absent: ranks compute too little to show what they could take
  std::optional<JobLimit> next;  // absent: nothing shows it
  // Rows per second that ranks would take if they never waited; absent: they compute next to
  // nothing, and take what comes.
  std::optional<double> demand_rows_per_s;
  std::optional<int64_t> workers_needed;  // for that
  std::vector<JobShare> shares;           // lost parts, greatest first; then work
  std::vector<WorkerFigures> worker_figures;
  std::vector<RankFigures> rank_figures;
  std::optional<double> redone_rows, lost_workers;  // absent: no dispatcher has kept the course
  std::optional<double> dispatcher_late;  // of the time, that it was stopped; absent: below 10 %
  double worker_seconds_per_million_rows = 0;
  std::optional<double> cpu_seconds_per_million_rows;
  double largest_split_ratio = 1;  // rows of the largest split over the mean
};

JobFindings JudgeJob(const JobView& job);

}  // namespace headrace::analysis
