#include "cli/service_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "experiments/interrupt.h"
#include "reader/pipeline/delivery/tcp_socket.h"
#include "reader/service/job_folder.h"
#include "reader/service/lender.h"
#include "reader/service/local_workers.h"
#include "reader/service/pool_process.h"
#include "reader/service/process_name.h"

namespace headrace::cli {
namespace {

namespace service = reader::service;

// A job that waits for its ranks for longer than this gives its workers back.
constexpr int64_t kWaitsForRanksNs = 30'000'000'000;
constexpr uint32_t kMostBorrowed = 1024;  // where the user names no number

service::Want AboutJob(const ServiceOptions& options, const service::DispatcherProcess& own) {
  service::Want about;
  about.job = options.job;
  about.weight = options.weight;
  const std::string folder = service::JobFolder(options.job);
  about.origin = service::HostName() + ":" + folder;
  const reader::DeliveryAddress* const address = own.address();
  about.place = address == nullptr ? folder : reader::FormatDeliveryAddress(*address);
  if (address == nullptr || reader::IsLoopback(address->at.host))
    about.machine = service::HostName();
  return about;
}

// In a folder a pool asks for no secrets: those that are given are for its jobs.
std::shared_ptr<service::JobPlace> FindPool(const ServiceOptions& options, const std::string& pool,
                                            bool makes_folder) {
  if (pool.starts_with('@') || service::IsAddressOfJob(pool))
    return FindJobPlace(pool, options.place, makes_folder);
  return std::make_shared<service::JobPlace>(pool, service::SecretFiles{}, makes_folder);
}

// The token of a pool is that of its jobs.
JobPlaceOptions SecretsOfJobs(const ServiceOptions& options) {
  JobPlaceOptions place = options.place;
  if (place.secrets.token.empty() && options.job.starts_with('@'))
    place.secrets.token = service::TokenBeside(options.job.substr(1));
  return place;
}

}  // namespace

int RunPool(const ServiceOptions& options) {
  experiments::InstallInterruptHandler();
  service::PoolProcessOptions given;
  given.folder = service::MakeJobFolder(options.job);
  SetListen(options.place, &given);
  given.note = [&](const std::string& text) { SayService(options, text); };
  given.interrupted = [] { return experiments::Interrupted(); };
  given.parting_ns = ParseDuration(options.drain_time, "--drain-time");
  given.describe = [&](const service::PoolStatus& status) {
    return DescribePool(options.job, status);
  };
  const std::string place = given.address_file.empty() ? options.job : "@" + given.address_file;
  std::optional<service::LocalWorkers> lender;  // one process, for this machine
  given.watch = [&](bool is_parting) {
    if (!lender) return;
    lender->ScaleTo(is_parting ? 0 : 1);
    for (const std::string& line : lender->Turn(MonotonicNs())) SayService(options, line);
  };
  service::PoolProcess pool(std::move(given));
  if (options.lent > 0) {
    std::vector<std::string> command = {
        "/proc/self/exe", "service",
        "lend",           place == options.job ? service::JobFolder(options.job) : place,
        "--workers",      std::to_string(options.lent),
        "--drain-time",   options.drain_time};
    if (options.quiet) command.emplace_back("--quiet");
    AddSecretWords(options.place, &command);
    lender.emplace(std::move(command), "process 'service lend'");
    lender->ScaleTo(1);
  }
  SayService(options, fmt::format("pool {} waits for jobs: headrace service up PIPELINE --job JOB "
                                  "--pool {}",
                                  options.job, place));
  const bool was_told = pool.Run();
  SayService(options, fmt::format("pool {} was ended", options.job));
  return was_told ? 0 : static_cast<int>(ExitCode::kInterrupted);
}

int RunLend(const ServiceOptions& options) {
  experiments::InstallInterruptHandler();
  service::LenderOptions given;
  given.pool = FindPool(options, options.job, true);
  given.workers = options.lent;
  given.interrupted = [] { return experiments::Interrupted(); };
  given.note = [&](const std::string& text) { SayService(options, text); };
  if (!options.wait.empty()) given.wait_ns = ParseDuration(options.wait, "--wait");
  given.drain_ns = ParseDuration(options.drain_time, "--drain-time");
  given.command = [&](const std::string& place) {
    std::vector<std::string> command = {"/proc/self/exe", "service",      "worker",          place,
                                        "--quiet",        "--drain-time", options.drain_time};
    if (service::IsAddressOfJob(place)) AddSecretWords(SecretsOfJobs(options), &command);
    return command;
  };
  return service::RunLender(given) ? 0 : static_cast<int>(ExitCode::kInterrupted);
}

PooledJob::PooledJob(const ServiceOptions& options, const service::DispatcherProcess& own)
    : pool_(options.pool),
      workers_(FindPool(options, options.pool, false), AboutJob(options, own),
               [&options](const std::string& text) { SayService(options, text); }),
      ran_ns_(MonotonicNs()) {}

void PooledJob::Turn(const service::DispatcherStatus& status, uint32_t wanted, int64_t now_ns) {
  workers_.Check();
  const auto& ranks = status.ranks;
  if (status.is_running &&
      std::all_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank.is_connected; })) {
    ran_ns_ = now_ns;
    workers_.ScaleTo(wanted);
  } else if (now_ns - ran_ns_ > kWaitsForRanksNs) {
    workers_.ScaleTo(0);
  }
}

uint32_t LeastOfPool(const ServiceOptions& options) {
  return options.up->Count("--workers") > 0 ? options.workers : 1;
}

uint32_t MostOfPool(const ServiceOptions& options) {
  if (options.most > 0) return options.most;
  return options.up->Count("--workers") > 0 ? options.workers : kMostBorrowed;
}

}  // namespace headrace::cli
