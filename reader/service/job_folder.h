// Where the processes of a job on one machine meet: a folder of the user's own that has their
// sockets; and what a job's pipeline may be.
#pragma once
#include <string>

#include "reader/pipeline/spec.h"

namespace headrace::reader::service {

// The folder of a job: `job` itself if it has a '/', else headrace-UID/JOB below $XDG_RUNTIME_DIR,
// or /tmp. Throws Error kUsage for a name that is none.
std::string JobFolder(const std::string& job);
// The same, made if it is not there, mode 0700. Throws Error kPrivilege when another user can write
// there, and kUsage when its path leaves no room for the names of sockets.
std::string MakeJobFolder(const std::string& job);
// The same; it is not made, and may not be there. Throws Error as MakeJobFolder.
std::string FindJobFolder(const std::string& job);
// Removes the sockets of ranks whose processes are dead.
void RemoveDeadSockets(const std::string& folder);

std::string DispatcherSocket(const std::string& folder);

// What workers run of a pipeline: its rows in batches of one unit each. Throws Error kUsage for
// what a service does not offer.
PipelineSpec WorkerSpec(PipelineSpec spec);

}  // namespace headrace::reader::service
