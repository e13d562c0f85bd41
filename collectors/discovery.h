// Discovery: always-on recording. Looks for processes that keep operator accounts and has each
// pipeline recorded by a collector process of its own, so that one that fails takes no other with
// it. Keeps the database within its limits. A file starts a recording only if the process it names
// stands behind it (segment_claims.h); others are counted, said in the log, and in probe_status of
// the runs that begin meanwhile.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectors/store/store.h"

namespace headrace::collectors {

struct DiscoveryOptions {
  std::string executable;  // of headrace; "" is /proc/self/exe
  std::string database;
  std::vector<std::string> arguments;  // further options of the collectors
  Retention retention;
  size_t most_pipelines = 32;  // at the same time, and of one user other than root half as many
  int64_t poll_ns = 2'000'000'000;
  int64_t retain_ns = 60'000'000'000;
  std::function<bool()> stop;
  std::function<void(const std::string&)> log;  // one line each, for the journal
};

// Until `stop`. Recordings then end in order. Throws Error when the database cannot be used.
void Discover(const DiscoveryOptions& options);

// The process that a process with accounts belongs to: its ancestor, as long as that executes the
// same program for the same user in the same session (worker processes of one loader).
int64_t PipelineRoot(int64_t pid);

}  // namespace headrace::collectors
