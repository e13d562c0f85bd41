// ProcessCounters: counts processes, thread by thread. The kernel also counts threads that a
// counted thread starts; new processes are looked for at every reading. The number of open files is
// bounded.
//
// Not thread safe. The backend outlives it.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "probes/host.h"
#include "probes/perf/counting.h"
#include "probes/probe.h"

namespace headrace::probes::perf {

struct ProcessCountersOptions {
  CountingOptions counting;
  size_t most_handles = 4096;
  bool exclude_kernel = true;
};

// Half of the files that this process may still open, at most 8192.
size_t AffordableHandles();

class ProcessCounters {
 public:
  using Options = ProcessCountersOptions;
  ProcessCounters(PerfBackend& backend, EventPlan plan, Options options = {});

  // Counts the target's processes from now on; those that ended are read a last time and closed.
  void Follow(const Host& host, const Target& target);
  // Updates the totals and starts the turn of the next group.
  void Read();
  void Close();

  const EventPlan& plan() const { return plan_; }
  // Processes by pid; ended ones stay until the next reading.
  struct Process {
    Totals totals;
    std::vector<ThreadCounters> threads;
    std::set<int64_t> tids;  // attached
    bool ended = false;
  };
  const std::map<int64_t, Process>& processes() const { return processes_; }

  size_t num_handles() const { return num_handles_; }
  int64_t threads_attached() const { return threads_attached_; }
  // Left out because of the bound on open files.
  int64_t threads_without_room() const { return without_room_; }
  int64_t threads_refused() const { return refused_; }
  // Pinned groups whose counters the PMU gave to others.
  int64_t groups_lost() const { return lost_; }
  int last_error() const { return last_error_; }  // errno of the last refusal

 private:
  void Attach(int64_t tid, Process* process);

  PerfBackend& backend_;
  EventPlan plan_;
  Options options_;
  std::map<int64_t, Process> processes_;
  size_t num_handles_ = 0, active_ = 0;
  int64_t threads_attached_ = 0, without_room_ = 0, refused_ = 0, lost_ = 0;
  int last_error_ = 0;
};

}  // namespace headrace::probes::perf
