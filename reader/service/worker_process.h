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
  std::function<void(const std::string&)> note = {};  // lines about what it waits for
  std::shared_ptr<MeasuredSource> measured = {};      // told to the dispatcher; may be null
};

// Returns when the dispatcher says that the work is done, or when interrupted: what it holds is
// then leased to others. A dispatcher that is not there is waited for. Throws Error where it cannot
// go on; the dispatcher is told.
void RunWorker(const WorkerProcessOptions& options);

}  // namespace headrace::reader::service
