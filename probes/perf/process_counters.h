// ProcessCounters: counts processes, thread by thread. Threads that a counted one starts are
// counted by the kernel with it; processes are looked for at every reading. Open files are bounded.
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

// At most half of the open files that this process may still have, and 8192.
size_t AffordableHandles();

class ProcessCounters {
 public:
  using Options = ProcessCountersOptions;
  ProcessCounters(PerfBackend& backend, EventPlan plan, Options options = {});

  // Counts the target's processes from now on; those that ended are read a last time and closed.
  void Follow(const Host& host, const Target& target);
  // Brings the totals up to date and gives the turn to the next group.
  void Read();
  void Close();

  const EventPlan& plan() const { return plan_; }
  // By pid, ended ones too until the next reading.
  struct Process {
    Totals totals;
    std::vector<ThreadCounters> threads;
    std::set<int64_t> tids;  // attached
    bool ended = false;
  };
  const std::map<int64_t, Process>& processes() const { return processes_; }

  size_t num_handles() const { return num_handles_; }
  int64_t threads_attached() const { return threads_attached_; }
  int64_t threads_without_room() const { return without_room_; }  // for the bound of open files
  int64_t threads_refused() const { return refused_; }
  int64_t groups_lost() const { return lost_; }   // pinned ones that the PMU gave to others
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
