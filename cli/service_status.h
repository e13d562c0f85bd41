// What `headrace service status` says of a job or a pool: the JSON that its process answers, and
// the page for a terminal made of it.
#pragma once
#include <optional>
#include <string>

#include "cli/service_options.h"
#include "experiments/service_scaling.h"
#include "reader/service/dispatcher.h"
#include "reader/service/pool.h"

namespace headrace::cli {

// Of the job's workers, where a pool lends them.
struct BorrowedStatus {
  std::string pool;
  std::optional<reader::service::Grant> grant;  // nothing: there is no pool now
};

// Schema headrace.service/1. `scaling` may be null.
std::string DescribeStatus(const ServiceOptions& options,
                           const reader::service::DispatcherStatus& status,
                           const experiments::ServiceScaling* scaling,
                           const std::optional<BorrowedStatus>& borrowed);
// Schema headrace.pool/1.
std::string DescribePool(const std::string& name, const reader::service::PoolStatus& status);

// Asks, and prints. Returns the exit code.
int PrintStatus(const ServiceOptions& options);

}  // namespace headrace::cli
