// What the files of `headrace service` share: its options, what it says, and questions to whoever
// answers in a job's folder or at its address.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/job_place_options.h"
#include "experiments/service_fleet.h"
#include "reader/service/message.h"

namespace headrace::cli {

struct ServiceOptions {
  std::string pipeline, job = "train", mode = "lockstep", fleet = experiments::kFleetFile;
  uint32_t ranks = 1, workers = 2, most = 0;
  uint64_t worker = 0;
  std::vector<std::string> set;
  JobPlaceOptions place;
  std::string drain_time = "30s", wait;
  bool hand_over = false;
  bool json = false, quiet = false, no_fleet = false;
  // Workers of a pool instead of this machine's: its place, and the job's weight there.
  std::string pool;
  uint32_t weight = 1;
  uint32_t lent = 0;  // workers of this machine, for a pool
  CommandLine *up = nullptr, *dispatcher = nullptr, *run_worker = nullptr, *status = nullptr,
              *submit = nullptr, *drain = nullptr, *end = nullptr, *run_pool = nullptr,
              *lend = nullptr;
};

// A line on stderr, unless it is to be quiet.
void SayService(const ServiceOptions& options, const std::string& text);

// What the dispatcher of the job, or the pool, answers. `about` is named when it refuses. Throws
// Error kFailure where there is none.
std::string AskDispatcher(const ServiceOptions& options, const reader::service::Message& question,
                          const std::string& about = "", const std::string& fix = "");

}  // namespace headrace::cli
