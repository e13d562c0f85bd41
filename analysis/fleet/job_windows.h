// JobWindows: the course of a job's members on one time axis, so that windows can be drawn again.
#pragma once
#include <cstdint>
#include <vector>

#include "analysis/run/read_job.h"

namespace headrace::analysis {

// Seconds, rows and counts of one member in one window, or in many together.
struct WorkerSums {
  double serving = 0, idle = 0, no_room = 0, absent = 0, rows = 0;
  double cpu = 0, cpu_known = 0;  // the latter: seconds for which it was measured
  double throttled = 0, throttled_known = 0;
  double host_busy = 0, host_known = 0;
  struct Stage {
    double busy = 0, on_cpu = 0, runnable = 0, threads = 0;  // the last: seconds of its threads
    bool reads = false, split_known = true;
  };
  std::vector<Stage> stages;
};
struct RankSums {
  double wait = 0, compute = 0, rows = 0, absent = 0, seconds = 0;
};
struct JobSums {
  double running = 0, serving = 0, no_split = 0, late = 0, leases = 0, again_rows = 0, lost = 0;
};

struct JobWindow {
  std::vector<WorkerSums> workers;  // parallel to JobWindows::workers
  std::vector<RankSums> ranks;
  JobSums job;
};

struct JobWindows {
  std::vector<size_t> workers, ranks;  // indices into JobView::members
  double begin_s = 0, end_s = 0;       // from the first step of a rank to the last
  std::vector<JobWindow> windows;
  size_t measured = 0;  // intervals with steps, of the rank with most: windows may be parts of them
};

JobWindows MakeWindows(const JobView& job);
// Of these windows together.
JobWindow SumOf(const JobWindows& windows, const std::vector<size_t>& which);

}  // namespace headrace::analysis
