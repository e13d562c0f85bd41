// Discovery: always-on recording. Looks for processes that keep operator accounts and has each
// pipeline recorded by a collector process of its own, so that a failing recording ends no other.
// Keeps the database within its limits. A file starts a recording only if the process that it names
// made it (segment_claims.h). Other files are counted and reported in the log and in probe_status
// of the runs that begin meanwhile.
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
  // Recorded at the same time; half as many of one user other than root.
  size_t most_pipelines = 32;
  int64_t poll_ns = 2'000'000'000;
  int64_t retain_ns = 60'000'000'000;
  std::function<bool()> stop;
  std::function<void(const std::string&)> log;  // one line each, for the journal
};

// Runs until `stop` says so; then recordings end in order. Throws Error when the database cannot be
// used.
void Discover(const DiscoveryOptions& options);

// The root of the pipeline that process `pid` belongs to: its furthest ancestor, as long as each
// executes the same program for the same user in the same session (as worker processes of one
// loader do).
int64_t PipelineRoot(int64_t pid);

}  // namespace headrace::collectors
