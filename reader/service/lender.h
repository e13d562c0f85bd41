// Lender: a machine's part in a pool: it runs workers for the jobs that the pool says, never more
// than it lends. Workers are processes of their own. While there is no pool they go on with the
// jobs that they have.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reader/service/job_place.h"

namespace headrace::reader::service {

struct LenderOptions {
  std::shared_ptr<JobPlace> pool;
  uint32_t workers = 1;
  // argv of a worker for the job that is met at `place`; argv[0] is a path.
  std::function<std::vector<std::string>(const std::string& place)> command = {};
  std::function<bool()> interrupted = {};
  int64_t wait_ns = INT64_MAX;        // the longest wait for a pool, each time
  int64_t drain_ns = 30'000'000'000;  // the longest that workers may take to finish
  std::function<void(const std::string&)> note = {};
};

// Returns once the pool has ended (true), or it was interrupted (false), and its workers have
// finished or had the time to. Until a pool has taken this machine, throws Error kFailure where
// none comes, as JobPlace::Connect, and as the pool says where it refuses it; then it waits.
bool RunLender(const LenderOptions& options);

}  // namespace headrace::reader::service
