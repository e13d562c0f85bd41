// headrace service: the preprocessing service: its dispatcher, its workers, and the commands to
// them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/job_place_options.h"
#include "cli/service_options.h"
#include "cli/service_pool.h"
#include "cli/service_status.h"
#include "experiments/interrupt.h"
#include "experiments/service_fleet.h"
#include "experiments/service_scaling.h"
#include "reader/service/control.h"
#include "reader/service/dispatcher_process.h"
#include "reader/service/job_folder.h"
#include "reader/service/local_workers.h"
#include "reader/service/worker_process.h"

namespace headrace::cli {
namespace {

namespace service = reader::service;
using reader::service::DispatcherStatus;

// The workers of a job: this machine's or a pool's, and how many there are to be.
class JobWorkers {
 public:
  JobWorkers(const ServiceOptions& options, experiments::ServiceFleet* fleet)
      : options_(options), fleet_(fleet) {}

  // `place`: where others meet the dispatcher.
  void Begin(const service::DispatcherProcess& dispatcher, const std::string& place,
             uint32_t workers) {
    if (!options_.pool.empty()) {
      Scale(LeastOfPool(options_), MostOfPool(options_), dispatcher);
      pooled_.emplace(options_, dispatcher);
    } else if (workers > 0) {
      std::vector<std::string> command = {
          "/proc/self/exe", "service", "worker",
          !options_.place.listen.empty() ? place : service::JobFolder(options_.job), "--quiet"};
      AddSecretWords(options_.place, &command);
      local_.emplace(std::move(command));
      local_->ScaleTo(workers);
      Scale(workers, options_.most, dispatcher);
    }
  }

  // Ten times a second. Returns what the dispatcher is to say.
  std::vector<service::Addressed> Watch(service::Dispatcher* watched) {
    fleet_->Watch(watched, scaling_ ? std::optional(scaling_->wanted()) : std::nullopt);
    if (local_)
      for (const std::string& failure : local_->Turn(MonotonicNs())) SayService(options_, failure);
    std::vector<service::Addressed> say;
    if (watched->is_ending()) {
      pooled_.reset();
    } else if (pooled_) {
      const DispatcherStatus status = watched->status();
      if (scaling_) {
        if (const auto& grant = pooled_->status().grant) scaling_->SetAvailable(grant->workers);
        Decide(status);
      }
      pooled_->Turn(status, scaling_ ? scaling_->wanted() : MostOfPool(options_), MonotonicNs());
    } else if (scaling_) {
      ScaleLocal(watched, &say);
    }
    return say;
  }

  std::string Describe(const DispatcherStatus& status) const {
    return DescribeStatus(options_, status, scaling_ ? &*scaling_ : nullptr,
                          pooled_ ? std::optional(pooled_->status()) : std::nullopt);
  }

 private:
  void Scale(uint32_t least, uint32_t most, const service::DispatcherProcess& dispatcher) {
    if (most > least)
      scaling_.emplace(least, most, options_.mode == "lockstep", dispatcher.job().batch_rows);
  }

  // Once every five seconds: how many there are to be.
  std::optional<experiments::ScalingDecision> Decide(const DispatcherStatus& status) {
    const auto decision = scaling_->Watch(status, MonotonicNs());
    if (!decision) return decision;
    fleet_->Decide(decision->limit, decision->reason, decision->from, decision->to,
                   decision->batches_per_second);
    if (decision->to != decision->from)
      SayService(options_, fmt::format("{} workers instead of {}: {}", decision->to, decision->from,
                                       decision->reason));
    return decision;
  }

  // More at once, fewer by draining those that sent least.
  void ScaleLocal(service::Dispatcher* dispatcher, std::vector<service::Addressed>* say) {
    const DispatcherStatus status = dispatcher->status();
    scaling_->Bound(local_->most());
    const auto decision = Decide(status);
    // Those that drain are still there, and wanted no longer when they end.
    local_->ScaleTo(scaling_->wanted() + experiments::DrainingWorkers(status));
    if (!decision) return;
    for (const uint64_t peer : experiments::WorkersToDrain(status, *decision))
      dispatcher->Drain(peer, say);
  }

  const ServiceOptions& options_;
  experiments::ServiceFleet* const fleet_;
  std::optional<experiments::ServiceScaling> scaling_;
  std::optional<service::LocalWorkers> local_;
  std::optional<PooledJob> pooled_;
};

// A file that nobody asked for is no reason to end.
void OpenFleet(const ServiceOptions& options, const service::DispatcherOptions& job,
               experiments::ServiceFleet* fleet) {
  if (options.no_fleet) return;
  const auto say = [&](const std::string& text) { SayService(options, text); };
  try {
    fleet->Open(options.fleet, job, say);
  } catch (const Error& error) {
    if (options.fleet != experiments::kFleetFile) {
      if (error.code() != ExitCode::kResources) throw;
      throw Error(error.code(), error.fact(), error.where(),
                  "free space, name another file with --fleet, or keep none with --no-fleet");
    }
    say(fmt::format("nothing is kept of what the job's processes measure: {}", error.what()));
  }
}

// What a dispatcher is told by its options, but for the job.
service::DispatcherProcessOptions DispatcherOptionsOf(const ServiceOptions& options) {
  service::DispatcherProcessOptions given;
  given.folder = service::MakeJobFolder(options.job);
  SetListen(options.place, &given);
  given.note = [&options](const std::string& text) { SayService(options, text); };
  given.interrupted = [] { return experiments::Interrupted(); };
  given.hands_over = options.hand_over;
  return given;
}

int RunDispatcher(const ServiceOptions& options, uint32_t workers) {
  experiments::InstallInterruptHandler();
  service::DispatcherProcessOptions given = DispatcherOptionsOf(options);
  given.pipeline = options.pipeline;
  for (const std::string& text : options.set) given.settings.push_back(reader::ParseSetting(text));
  const std::string place = given.address_file.empty() ? options.job : "@" + given.address_file;
  given.ranks = options.ranks;
  given.mode = options.mode == "lockstep" ? service::Mode::kLockstep : service::Mode::kIndependent;
  experiments::ServiceFleet fleet(options.job, options.mode);
  JobWorkers of_job(options, &fleet);
  given.describe = [&](const DispatcherStatus& status) { return of_job.Describe(status); };
  given.measured = [&](service::Measured&& measured) { fleet.Take(std::move(measured)); };
  given.kept = [&] { return fleet.TakeKept(); };
  given.watch = [&](service::Dispatcher* watched) { return of_job.Watch(watched); };
  service::DispatcherProcess dispatcher(std::move(given));
  OpenFleet(options, dispatcher.job(), &fleet);
  SayService(options, fmt::format("job {} waits for {} rank{}: headrace consume service:{} --rank "
                                  "{}/{}",
                                  options.job, options.ranks, options.ranks == 1 ? "" : "s", place,
                                  options.ranks == 1 ? "0" : "R", options.ranks));
  of_job.Begin(dispatcher, place, workers);
  const bool is_over = dispatcher.Run();
  fleet.Finish(is_over);
  SayService(options, fmt::format("job {} {}", options.job,
                                  is_over ? "is complete"
                                  : options.hand_over && experiments::Interrupted()
                                      ? "is left to the next dispatcher"
                                      : "was ended; ranks go on from their checkpoints when it is "
                                        "started again"));
  if (experiments::Interrupted()) return static_cast<int>(ExitCode::kInterrupted);
  return is_over ? 0 : static_cast<int>(ExitCode::kFailure);
}

// One job after the other, as they are submitted. What is wrong with one ends that one alone.
int RunSubmitted(ServiceOptions options) {
  experiments::InstallInterruptHandler();
  const auto waiting = DispatcherOptionsOf(options);
  while (!experiments::Interrupted()) {
    SayService(options, fmt::format("waits for a job: headrace service submit PIPELINE --job {}",
                                    waiting.address_file.empty() ? options.job
                                                                 : "@" + waiting.address_file));
    const auto submit = service::AwaitSubmission(waiting);
    if (!submit) break;
    options.pipeline = submit->pipeline;
    options.ranks = submit->ranks;
    options.mode = submit->mode == 0 ? "lockstep" : "independent";
    options.set.clear();
    for (const auto& [key, value] : submit->settings) options.set.push_back(key + "=" + value);
    try {
      RunDispatcher(options, 0);
    } catch (const Error& error) {
      std::fputs(fmt::format("headrace service: {}\n", error.what()).c_str(), stderr);
    }
  }
  return static_cast<int>(ExitCode::kInterrupted);
}

int RunWorkerCommand(const ServiceOptions& options) {
  experiments::InstallInterruptHandler();
  service::WorkerProcessOptions given;
  given.place = FindJobPlace(options.job, options.place, true);
  given.interrupted = [] { return experiments::Interrupted(); };
  given.note = [&](const std::string& text) { SayService(options, text); };
  given.warn = [](const std::string& text) {
    std::fputs(fmt::format("headrace service: {}\n", text).c_str(), stderr);
  };
  given.measured = experiments::MeasureMember("worker", std::nullopt);
  if (!options.wait.empty()) given.wait_ns = ParseDuration(options.wait, "--wait");
  given.drain_ns = ParseDuration(options.drain_time, "--drain-time");
  return service::RunWorker(given) ? 0 : static_cast<int>(ExitCode::kInterrupted);
}

int SubmitJob(const ServiceOptions& options) {
  service::Submit submit;
  submit.pipeline = std::filesystem::absolute(options.pipeline).string();
  for (const std::string& text : options.set) submit.settings.push_back(reader::ParseSetting(text));
  submit.ranks = options.ranks;
  submit.mode = options.mode == "lockstep" ? 0 : 1;
  AskDispatcher(options, submit);
  SayService(options, fmt::format("submitted; now its ranks: headrace consume service:{} --rank "
                                  "{}/{}",
                                  options.job, options.ranks == 1 ? "0" : "R", options.ranks));
  return 0;
}

// Options that would do nothing are refused.
void CheckHaveEffect(const ServiceOptions& options) {
  const auto parsed = [](const CommandLine* one) { return one->Parsed(); };
  const auto subcommands = {options.up,     options.dispatcher, options.submit,
                            options.status, options.drain,      options.run_worker,
                            options.end,    options.run_pool,   options.lend};
  if (std::count_if(subcommands.begin(), subcommands.end(), parsed) > 1)
    throw Error(ExitCode::kUsage,
                "does one of up, dispatcher, submit, worker, pool, lend, status, drain and end",
                "service", "give the others each for itself");
  const uint32_t least = options.pool.empty() ? options.workers : LeastOfPool(options);
  if (options.up->Parsed() && options.up->Count("--most") > 0 && options.most <= least &&
      (options.pool.empty() || options.up->Count("--workers") > 0))
    throw Error(ExitCode::kUsage, "is not more than --workers",
                fmt::format("--most {}", options.most),
                fmt::format("give {} or more, or leave it out", least + 1));
  if (options.up->Parsed() && options.up->Count("--weight") > 0 && options.pool.empty())
    throw Error(ExitCode::kUsage, "is the job's weight in a pool", "--weight",
                "add --pool POOL, or leave it out");
  if (!options.dispatcher->Parsed() || !options.pipeline.empty()) return;
  for (const char* name : {"--ranks", "--mode", "--set"})
    if (options.dispatcher->Count(name) > 0)
      throw Error(ExitCode::kUsage, "is said by whoever submits a job", name,
                  "give it to headrace service submit, or name a PIPELINE here");
}

int Service(const ServiceOptions& options) {
  CheckHaveEffect(options);
  if (options.up->Parsed()) return RunDispatcher(options, options.workers);
  if (options.dispatcher->Parsed())
    return options.pipeline.empty() ? RunSubmitted(options) : RunDispatcher(options, 0);
  if (options.submit->Parsed()) return SubmitJob(options);
  if (options.run_worker->Parsed()) return RunWorkerCommand(options);
  if (options.status->Parsed()) return PrintStatus(options);
  if (options.drain->Parsed()) {
    const std::string worker = std::to_string(options.worker);
    AskDispatcher(options, service::Command{"drain", worker}, worker,
                  "headrace service status " + options.job);
    SayService(options, "worker " + worker + " ends once its splits are done");
    return 0;
  }
  if (options.end->Parsed()) {
    AskDispatcher(options, service::Command{"end", ""});
    SayService(options, options.job + " was told to end");
    return 0;
  }
  if (options.run_pool->Parsed()) return RunPool(options);
  if (options.lend->Parsed()) return RunLend(options);
  throw Error(ExitCode::kUsage,
              "say which: up, dispatcher, submit, worker, pool, lend, status, drain or end", "",
              "e.g. headrace service up rm1/pipeline.toml --ranks 2");
}

// What a job is.
void AddPipelineOptions(CommandLine* command_line, ServiceOptions* options, bool is_required) {
  CommandOption* const pipeline =
      command_line
          ->AddOption("PIPELINE", options->pipeline,
                      is_required ? "Read what this pipeline file says"
                                  : "Read what this pipeline file says; without one, wait for jobs "
                                    "that are submitted, one after the other")
          ->TypeName("PIPELINE");
  if (is_required) pipeline->Required();
  command_line
      ->AddOption("--job", options->job,
                  "Name the job, or give a folder for its sockets: a path with a '/'")
      ->ShowDefault();
  command_line->AddOption("--ranks", options->ranks, "Divide the rows among this many ranks")
      ->Check(InRange(1, 65536))
      ->ShowDefault();
  command_line
      ->AddOption("--mode", options->mode,
                  "Give every rank as many rows as the others, or more to those that take more; "
                  "either way a rank that takes nothing stops the others after a while")
      ->Check(OneOf({"lockstep", "independent"}))
      ->ShowDefault();
  command_line->AddOption("--set", options->set, "Change a setting: decode.parallelism=2")
      ->TypeName("KEY=VALUE")
      ->OneValueEach();
}

void AddJobOptions(CommandLine* command_line, ServiceOptions* options, bool is_required) {
  AddPipelineOptions(command_line, options, is_required);
  command_line
      ->AddOption("--fleet", options->fleet,
                  "Keep in this file what the job's processes measure, for report --fleet")
      ->TypeName("FILE")
      ->ShowDefault();
  command_line->AddFlag("--no-fleet", options->no_fleet, "Keep nothing of what they measure")
      ->Excludes({"--fleet"});
  AddListenOptions(command_line, &options->place);
}

HR_COMMAND(
    "service",
    {.summary = "reads a table with workers that may die, for ranks that train",
     .examples =
         "  headrace service up rm1/pipeline.toml --ranks 2 --workers 3 # then, for each rank:\n"
         "  headrace consume service:train --rank 0/2\n"
         "  headrace service status train\n"
         "  headrace service drain train 2                       # worker 2 ends, no row is lost\n"
         "  headrace service end train\n"
         "  headrace service dispatcher rm1/pipeline.toml --job ctr # without workers; then:\n"
         "  headrace service worker ctr                          # as many as wanted\n"
         "  headrace service pool farm --workers 8               # workers that jobs share:\n"
         "  headrace service up rm1/pipeline.toml --pool farm --weight 3\n",
     .exit_codes = "0 all rows delivered, 1 ended before or no dispatcher, 2 usage, 5 a table that "
                   "cannot be read, 6 a folder that others can write, "
                   "another token or none, or plain TCP on a network, 7 a dispatcher or rank that "
                   "takes no more, 130 interrupted",
     .next = "headrace consume service:JOB --rank R/N",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<ServiceOptions>();
       command_line.AddFlag("-q,--quiet", options->quiet,
                            "Print nothing but errors, and what was asked for");
       AddSecretOptions(&command_line, &options->place);
       command_line.Fallthrough();
       const auto subcommand = [&](const char* name, const char* purpose) {
         CommandLine* const one = command_line.AddSubcommand(name, purpose);
         one->Fallthrough();
         return one;
       };
       const auto job = [&](CommandLine* one) {
         one->AddOption("JOB", options->job,
                        "The job's name or the folder of its sockets; tls:HOST:PORT, or @FILE with "
                        "the address of a dispatcher elsewhere")
             ->TypeName("JOB")
             ->Required();
       };
       options->up = subcommand("up", "runs a dispatcher and workers on this machine");
       AddJobOptions(options->up, options.get(), true);
       options->up->AddOption("--workers", options->workers, "Keep this many workers running")
           ->Check(InRange(1, 1024))
           ->ShowDefault();
       options->up
           ->AddOption(
               "--most", options->most,
               "Run up to this many workers while ranks wait for them, and fewer again; more than "
               "--workers")
           ->Check(InRange(1, 1024));
       options->up
           ->AddOption("--pool", options->pool,
                       "Have workers of this pool instead of this machine's: as many as are of "
                       "use, or --workers, as far as it has them")
           ->TypeName("POOL");
       options->up->AddOption("--weight", options->weight, "Weigh so much among the pool's jobs")
           ->Check(InRange(1, 1'000'000))
           ->ShowDefault();
       options->dispatcher = subcommand("dispatcher", "hands the splits of a job to workers");
       AddJobOptions(options->dispatcher, options.get(), false);
       options->dispatcher->AddFlag("--hand-over", options->hand_over,
                                    "Interrupted, leave the job to another dispatcher, which ranks "
                                    "and workers wait for");
       options->submit = subcommand("submit", "gives a job to a dispatcher that waits for one");
       AddPipelineOptions(options->submit, options.get(), true);
       options->run_worker = subcommand("worker", "makes batches of the splits it is given");
       job(options->run_worker);
       options->run_pool = subcommand("pool", "lends workers to the jobs that ask for them");
       options->run_pool
           ->AddOption("POOL", options->job, "Name the pool, or give a folder: a path with a '/'")
           ->TypeName("POOL")
           ->Required();
       options->run_pool
           ->AddOption("--workers", options->lent,
                       "Lend this many workers of this machine; 0: those of other machines alone")
           ->Check(InRange(0, 65536))
           ->ShowDefault();
       AddListenOptions(options->run_pool, &options->place, "machines and jobs");
       options->lend = subcommand("lend", "lends workers of this machine to a pool");
       options->lend
           ->AddOption("POOL", options->job,
                       "The pool's name or folder; tls:HOST:PORT, or @FILE with its address")
           ->TypeName("POOL")
           ->Required();
       options->lend->AddOption("--workers", options->lent, "Lend this many")
           ->Check(InRange(1, 65536))
           ->Required();
       for (CommandLine* one : {options->run_worker, options->run_pool, options->lend})
         one->AddOption("--drain-time", options->drain_time,
                        "Once interrupted, take this long at most for splits that were begun")
             ->TypeName("TIME")
             ->ShowDefault();
       for (CommandLine* one : {options->run_worker, options->lend})
         one->AddOption("--wait", options->wait,
                        "Wait at most this long for a dispatcher or pool; without it, wait without "
                        "limit")
             ->TypeName("TIME");
       options->status = subcommand(
           "status", "says how far a job is, and who works on it; or who has a pool's workers");
       job(options->status);
       options->status->AddFlag(
           "--json", options->json,
           "Print one JSON object (schema headrace.service/1, of a pool headrace.pool/1)");
       options->drain =
           subcommand("drain", "lets a worker finish the splits that it has begun, and end");
       job(options->drain);
       options->drain->AddOption("WORKER", options->worker, "Its number, as status says it")
           ->TypeName("WORKER")
           ->Required();
       options->end = subcommand("end", "ends a job, with its workers and ranks, or a pool");
       job(options->end);
       return [options] { return Service(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
