// WorkerProcess: a worker of the service as a process: it takes leases from the dispatcher, runs
// the job's pipeline on the leased splits, and sends units to the clients.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "reader/service/job_place.h"
#include "reader/service/measured.h"

namespace headrace::reader::service {

struct WorkerProcessOptions {
  std::shared_ptr<JobPlace> place;  // of the job
  std::function<bool()> interrupted = {};
  int64_t wait_ns = INT64_MAX;        // the longest wait for a dispatcher, each time
  int64_t drain_ns = 30'000'000'000;  // the longest that it takes to go once it is interrupted
  std::function<void(const std::string&)> note = {};  // lines about what it waits for
  std::function<void(const std::string&)> warn = {};  // lines about what is wrong
  std::shared_ptr<MeasuredSource> measured = {};      // told to the dispatcher; may be null
};

// Returns true when the dispatcher says that the work is done, or that it may go. Interrupted, it
// asks to be drained: it finishes what it holds, and no row is made twice. False when that cannot
// be, or takes too long: what it holds is then leased to others. A dispatcher that is not there is
// waited for, for a while: then it throws Error kFailure. Throws Error where it cannot go on; the
// dispatcher is told.
bool RunWorker(const WorkerProcessOptions& options);

}  // namespace headrace::reader::service
