// headrace service pool, and lend: workers that several jobs share.
#pragma once
#include <optional>

#include "cli/service_options.h"
#include "cli/service_status.h"
#include "reader/service/borrowed_workers.h"
#include "reader/service/dispatcher_process.h"

namespace headrace::cli {

// Both return the exit code.
int RunPool(const ServiceOptions& options);
int RunLend(const ServiceOptions& options);

// The workers that a job of `service up --pool` has.
class PooledJob {
 public:
  // `own` is its dispatcher. Throws Error as FindJobPlace.
  PooledJob(const ServiceOptions& options, const reader::service::DispatcherProcess& own);

  // Call ten times a second. `wanted`: workers that would be of use while the job runs. Throws
  // Error where the pool refuses the job.
  void Turn(const reader::service::DispatcherStatus& status, uint32_t wanted, int64_t now_ns);
  BorrowedStatus status() const { return {pool_, workers_.grant()}; }

 private:
  const std::string pool_;
  reader::service::BorrowedWorkers workers_;
  int64_t ran_ns_;  // when the job ran last, or began
};

// In a job's options: what is read of --workers and --most where a pool lends.
uint32_t LeastOfPool(const ServiceOptions& options);
uint32_t MostOfPool(const ServiceOptions& options);

}  // namespace headrace::cli
