// Where the processes of a job on one machine meet: a folder of the user's own that has their
// sockets; and what a job's pipeline may be.
#pragma once
#include <string>

#include "reader/pipeline/spec.h"

namespace headrace::reader::service {

// The folder of a job: `job` itself if it has a '/', else headrace-UID/JOB below $XDG_RUNTIME_DIR,
// or /tmp. Throws Error kUsage for a name that is none.
std::string JobFolder(const std::string& job);
// The same, made if it is not there, mode 0700. Throws Error kPrivilege when it is another user's.
std::string MakeJobFolder(const std::string& job);

std::string DispatcherSocket(const std::string& folder);

// What workers run of a pipeline: its rows in batches of one unit each. Throws Error kUsage for
// what a service does not offer.
PipelineSpec WorkerSpec(PipelineSpec spec);

}  // namespace headrace::reader::service
