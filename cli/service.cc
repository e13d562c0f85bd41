// headrace service: the preprocessing service on one machine: its dispatcher, its workers, and the
// commands to them.
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

using reader::service::DispatcherStatus;

struct ServiceOptions {
  std::string pipeline, job = "train", mode = "lockstep", fleet = experiments::kFleetFile;
  uint32_t ranks = 1, workers = 2, most = 0;
  uint64_t worker = 0;
  std::vector<std::string> set;
  JobPlaceOptions place;
  std::string drain_time = "30s", wait;
  bool hand_over = false;
  bool json = false, quiet = false, no_fleet = false;
  CommandLine *up = nullptr, *dispatcher = nullptr, *run_worker = nullptr, *status = nullptr,
              *submit = nullptr, *drain = nullptr, *end = nullptr;
};

void SayService(const ServiceOptions& options, const std::string& text) {
  if (!options.quiet) std::fputs(fmt::format("headrace service: {}\n", text).c_str(), stderr);
}

// Null before there is a second of it. A worker that connected again may have more than the time.
nlohmann::json PartOf(uint64_t part_ns, int64_t whole_ns) {
  if (whole_ns < 1'000'000'000) return nullptr;
  return std::min(1.0, static_cast<double>(part_ns) / static_cast<double>(whole_ns));
}

// What the autoscaler wants, and why; null without one.
nlohmann::json ScalingJson(const experiments::ServiceScaling* scaling) {
  if (scaling == nullptr) return nullptr;
  const auto& latest = scaling->latest();
  return {{"wanted_count", scaling->wanted()},
          {"limit", latest ? nlohmann::json(latest->limit) : nlohmann::json()},
          {"reason", latest ? nlohmann::json(latest->reason) : nlohmann::json()}};
}

// schema headrace.service/1
std::string DescribeStatus(const ServiceOptions& options, const DispatcherStatus& status,
                           const experiments::ServiceScaling* scaling) {
  nlohmann::json ranks = nlohmann::json::array(), workers = nlohmann::json::array();
  for (const auto& rank : status.ranks) {
    const double spent = static_cast<double>(rank.wait_ns + rank.compute_ns);
    nlohmann::json one = {{"rank", rank.rank},
                          {"joined", rank.is_joined},
                          {"connected", rank.is_connected},
                          {"delivered_rows_count", nullptr},
                          {"stall_ratio", nullptr},
                          {"host", nullptr}};
    if (rank.is_joined) one["host"] = rank.host;
    if (rank.has_reported) one["delivered_rows_count"] = rank.delivered_rows;
    if (spent > 0) one["stall_ratio"] = static_cast<double>(rank.wait_ns) / spent;
    ranks.push_back(std::move(one));
  }
  for (const auto& worker : status.workers) {
    workers.push_back({{"worker", worker.peer},
                       {"pid", worker.pid},
                       {"host", worker.host},
                       {"leases_count", worker.open_leases},
                       {"sent_units_count", worker.sent_units},
                       {"idle_ratio", PartOf(worker.idle_ns, worker.connected_ns)},
                       {"no_room_ratio", PartOf(worker.no_room_ns, worker.connected_ns)},
                       {"silent", worker.is_silent},
                       {"draining", worker.is_draining}});
  }
  const nlohmann::json out = {
      {"schema", "headrace.service/1"},
      {"job", options.job},
      {"pipeline", options.pipeline},
      {"fleet", options.no_fleet
                    ? nlohmann::json()
                    : nlohmann::json(std::filesystem::absolute(options.fleet).string())},
      {"mode", options.mode},
      {"generation", status.generation},
      {"term", status.is_running ? nlohmann::json(status.term) : nlohmann::json()},
      {"state", status.is_complete  ? "complete"
                : status.is_running ? "running"
                                    : "waiting"},
      {"rows_count", status.is_endless ? nlohmann::json() : nlohmann::json(status.rows)},
      {"left_rows_count", status.is_running && !status.is_endless ? nlohmann::json(status.left_rows)
                                                                  : nlohmann::json()},
      {"admitted_rows_count",
       status.is_running ? nlohmann::json(status.rows - status.left_rows) : nlohmann::json()},
      {"leased_again_count", status.leased_again},
      {"workers_lost_count", status.workers_lost},
      {"rows_per_second",
       status.rows_per_second > 0 ? nlohmann::json(status.rows_per_second) : nlohmann::json()},
      {"autoscaler", ScalingJson(scaling)},
      {"ranks", std::move(ranks)},
      {"workers", std::move(workers)}};
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Once every five seconds: more workers at once, fewer by draining those that sent least.
std::vector<reader::service::Addressed> Scale(const ServiceOptions& options,
                                              experiments::ServiceScaling* scaling,
                                              reader::service::LocalWorkers* local,
                                              reader::service::Dispatcher* dispatcher,
                                              experiments::ServiceFleet* fleet) {
  std::vector<reader::service::Addressed> say;
  const DispatcherStatus status = dispatcher->status();
  scaling->Bound(local->most());
  const auto decision = scaling->Watch(status, MonotonicNs());
  // Those that drain are still there, and wanted no longer when they end.
  local->ScaleTo(scaling->wanted() + experiments::DrainingWorkers(status));
  if (!decision) return say;
  fleet->Decide(decision->limit, decision->reason, decision->from, decision->to,
                decision->batches_per_second);
  if (decision->to == decision->from) return say;
  SayService(options, fmt::format("{} workers instead of {}: {}", decision->to, decision->from,
                                  decision->reason));
  for (const uint64_t peer : experiments::WorkersToDrain(status, *decision))
    dispatcher->Drain(peer, &say);
  return say;
}

// A file that nobody asked for is no reason to end.
void OpenFleet(const ServiceOptions& options, const reader::service::DispatcherOptions& job,
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
reader::service::DispatcherProcessOptions DispatcherOptionsOf(const ServiceOptions& options) {
  reader::service::DispatcherProcessOptions given;
  given.folder = reader::service::MakeJobFolder(options.job);
  SetListen(options.place, &given);
  given.note = [&options](const std::string& text) { SayService(options, text); };
  given.interrupted = [] { return experiments::Interrupted(); };
  given.hands_over = options.hand_over;
  return given;
}

int RunDispatcher(const ServiceOptions& options, uint32_t workers) {
  namespace service = reader::service;
  experiments::InstallInterruptHandler();
  service::DispatcherProcessOptions given = DispatcherOptionsOf(options);
  given.pipeline = options.pipeline;
  for (const std::string& text : options.set) given.settings.push_back(reader::ParseSetting(text));
  const std::string place = given.address_file.empty() ? options.job : "@" + given.address_file;
  given.ranks = options.ranks;
  given.mode = options.mode == "lockstep" ? service::Mode::kLockstep : service::Mode::kIndependent;
  std::optional<experiments::ServiceScaling> scaling;
  given.describe = [&](const DispatcherStatus& status) {
    return DescribeStatus(options, status, scaling ? &*scaling : nullptr);
  };
  std::optional<service::LocalWorkers> local;
  experiments::ServiceFleet fleet(options.job, options.mode);
  given.measured = [&](service::Measured&& measured) { fleet.Take(std::move(measured)); };
  given.kept = [&] { return fleet.TakeKept(); };
  given.watch = [&](service::Dispatcher* watched) {
    fleet.Watch(watched, scaling ? std::optional(scaling->wanted()) : std::nullopt);
    if (local)
      for (const std::string& failure : local->Turn(MonotonicNs())) SayService(options, failure);
    return scaling ? Scale(options, &*scaling, &*local, watched, &fleet)
                   : std::vector<service::Addressed>();
  };
  service::DispatcherProcess dispatcher(std::move(given));
  OpenFleet(options, dispatcher.job(), &fleet);
  SayService(options, fmt::format("job {} waits for {} rank{}: headrace consume service:{} --rank "
                                  "{}/{}",
                                  options.job, options.ranks, options.ranks == 1 ? "" : "s", place,
                                  options.ranks == 1 ? "0" : "R", options.ranks));
  if (workers > 0) {
    std::vector<std::string> command = {
        "/proc/self/exe", "service", "worker",
        !options.place.listen.empty() ? place : service::JobFolder(options.job), "--quiet"};
    const std::vector<std::string> secrets = SecretWords(options.place);
    command.insert(command.end(), secrets.begin(), secrets.end());
    local.emplace(std::move(command));
    local->ScaleTo(workers);
    if (options.most > workers)
      scaling.emplace(workers, options.most, options.mode == "lockstep",
                      dispatcher.job().batch_rows);
  }
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
    const auto submit = reader::service::AwaitSubmission(waiting);
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
  reader::service::WorkerProcessOptions given;
  given.place = FindJobPlace(options.job, options.place, true);
  given.interrupted = [] { return experiments::Interrupted(); };
  given.note = [&](const std::string& text) { SayService(options, text); };
  given.warn = [](const std::string& text) {
    std::fputs(fmt::format("headrace service: {}\n", text).c_str(), stderr);
  };
  given.measured = experiments::MeasureMember("worker", std::nullopt);
  if (!options.wait.empty()) given.wait_ns = ParseDuration(options.wait, "--wait");
  given.drain_ns = ParseDuration(options.drain_time, "--drain-time");
  return reader::service::RunWorker(given) ? 0 : static_cast<int>(ExitCode::kInterrupted);
}

// What the dispatcher of the job answers. `about` is named when it refuses.
std::string AskDispatcher(const ServiceOptions& options, const reader::service::Message& question,
                          const std::string& about = "", const std::string& fix = "") {
  namespace service = reader::service;
  constexpr int64_t kAnswerNs = 10'000'000'000;
  std::string why;
  const auto place = FindJobPlace(options.job, options.place, false);
  const auto connection = place->Connect([] { return experiments::Interrupted(); }, &why).control;
  if (!connection)
    throw Error(ExitCode::kFailure, "has no dispatcher " + (why.empty() ? "here" : "now: " + why),
                options.job,
                place->folder().empty()
                    ? ""
                    : "start one: headrace service up PIPELINE --job " + options.job);
  connection->Send(question);
  for (const int64_t until = MonotonicNs() + kAnswerNs; MonotonicNs() < until;) {
    for (const service::Message& message : connection->Receive(100)) {
      if (const auto* refused = std::get_if<service::Refused>(&message))
        throw Error(static_cast<ExitCode>(refused->code), refused->reason, options.job,
                    refused->fix);
      const auto* answer = std::get_if<service::Answer>(&message);
      if (answer == nullptr) continue;
      if (answer->code == 0) return answer->text;
      throw Error(static_cast<ExitCode>(answer->code), answer->text, about, fix);
    }
    if (connection->is_closed()) break;
  }
  throw Error(ExitCode::kFailure, "its dispatcher does not answer", options.job);
}

void PrintRanks(const nlohmann::json& status) {
  for (const auto& rank : status["ranks"]) {
    if (!rank["joined"].get<bool>()) {
      fmt::print("  rank {}    has not joined\n", rank["rank"].get<uint32_t>());
      continue;
    }
    fmt::print("  rank {}    {}{}", rank["rank"].get<uint32_t>(),
               Printable(rank["host"].get<std::string>(), 80),
               rank["connected"].get<bool>() ? "" : ", not connected");
    if (!rank["delivered_rows_count"].is_null())
      fmt::print(": {} rows delivered by this process",
                 rank["delivered_rows_count"].get<uint64_t>());
    if (!rank["stall_ratio"].is_null())
      fmt::print(", waits {} of its time", FormatPercent(rank["stall_ratio"].get<double>()));
    fmt::print("\n");
  }
}

// ", 12 % without a lease, 3 % without room"; nothing where it is not known yet.
std::string WasteWords(const nlohmann::json& worker) {
  if (!worker.contains("idle_ratio") || worker["idle_ratio"].is_null()) return "";
  return fmt::format(", {} without a lease, {} without room",
                     FormatPercent(worker["idle_ratio"].get<double>()),
                     FormatPercent(worker["no_room_ratio"].get<double>()));
}

// How fast it is, how long it may take, and what the autoscaler says.
void PrintPace(const nlohmann::json& status) {
  if (const auto rate = status.find("rows_per_second"); rate != status.end() && rate->is_number()) {
    const double left = status["left_rows_count"].is_null()
                            ? 0
                            : status["left_rows_count"].get<double>() / rate->get<double>();
    fmt::print("  rate      {}{}\n", FormatRate(rate->get<double>(), "rows"),
               left > 0 ? fmt::format(", about {} left", FormatDuration(left * 1e9)) : "");
  }
  const auto scaling = status.find("autoscaler");
  if (scaling == status.end() || !scaling->is_object()) return;
  fmt::print("  wanted    {} workers{}\n", (*scaling)["wanted_count"].get<uint64_t>(),
             (*scaling)["reason"].is_null()
                 ? ""
                 : ": " + Printable((*scaling)["reason"].get<std::string>(), 400));
}

// What to do about it: start the first rank that is missing, or look at what limits it.
void PrintNext(const ServiceOptions& options, const nlohmann::json& status) {
  for (const auto& rank : status["ranks"]) {
    if (rank["joined"].get<bool>()) continue;
    return fmt::print("next: headrace consume {} --rank {}/{}\n",
                      ShellWord("service:" + options.job), rank["rank"].get<uint32_t>(),
                      status["ranks"].size());
  }
  const auto is_draining = [](const nlohmann::json& worker) {
    return worker["draining"].get<bool>();
  };
  const auto& workers = status["workers"];
  if (status["state"] == "running" && std::all_of(workers.begin(), workers.end(), is_draining))
    return fmt::print("next: headrace service worker {}\n", ShellWord(options.job));
  if (status.contains("fleet") && status["fleet"].is_string())
    fmt::print("next: headrace report --fleet {} --db {}\n",
               ShellWord(Printable(status["job"].get<std::string>())),
               ShellWord(Printable(status["fleet"].get<std::string>(), 400)));
}

int PrintStatus(const ServiceOptions& options) {
  const std::string text = AskDispatcher(options, reader::service::Command{"status", ""});
  if (options.json) {
    fmt::print("{}\n", text);
    return 0;
  }
  nlohmann::json status;
  try {
    status = nlohmann::json::parse(text);
    fmt::print("job {}  {}", options.job, status["state"].get<std::string>());
    if (!status["term"].is_null()) {
      const auto have = status["admitted_rows_count"].get<uint64_t>();
      fmt::print(", generation {}: ", status["generation"].get<uint64_t>());
      if (status["rows_count"].is_null()) {
        fmt::print("{} rows admitted, without end", have);
      } else {
        const auto rows = status["rows_count"].get<uint64_t>();
        fmt::print(
            "{} ({} of {} rows admitted)",
            FormatPercent(rows == 0 ? 1 : static_cast<double>(have) / static_cast<double>(rows)),
            have, rows);
      }
    }
    fmt::print("\n");
    PrintPace(status);
    PrintRanks(status);
    for (const auto& worker : status["workers"]) {
      fmt::print("  worker {}  process {} on {}: {} splits leased, {} units sent{}{}{}\n",
                 worker["worker"].get<uint64_t>(), worker["pid"].get<int64_t>(),
                 Printable(worker["host"].get<std::string>(), 80),
                 worker["leases_count"].get<uint64_t>(), worker["sent_units_count"].get<uint64_t>(),
                 WasteWords(worker), worker["silent"].get<bool>() ? ", silent" : "",
                 worker["draining"].get<bool>() ? ", draining" : "");
    }
    const auto lost = status["workers_lost_count"].get<uint64_t>();
    const auto again = status["leased_again_count"].get<uint64_t>();
    fmt::print("  lost      {} worker{} with splits; {} lease{} given again\n", lost,
               lost == 1 ? "" : "s", again, again == 1 ? " was" : "s were");
    PrintNext(options, status);
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::kBadData, "its dispatcher answers with something else than a status",
                options.job, "use the same headrace for all processes of a job");
  }
  return 0;
}

int SubmitJob(const ServiceOptions& options) {
  reader::service::Submit submit;
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
  const auto subcommands = {options.up,     options.dispatcher, options.submit, options.run_worker,
                            options.status, options.drain,      options.end};
  if (std::count_if(subcommands.begin(), subcommands.end(), parsed) > 1)
    throw Error(ExitCode::kUsage,
                "does one of up, dispatcher, submit, worker, status, drain and end", "service",
                "give the others each for itself");
  if (options.up->Parsed() && options.up->Count("--most") > 0 && options.most <= options.workers)
    throw Error(ExitCode::kUsage, "is not more than --workers",
                fmt::format("--most {}", options.most),
                fmt::format("give {} or more, or leave it out", options.workers + 1));
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
    AskDispatcher(options, reader::service::Command{"drain", worker}, worker,
                  "headrace service status " + options.job);
    SayService(options, "worker " + worker + " ends once its splits are done");
    return 0;
  }
  if (options.end->Parsed()) {
    AskDispatcher(options, reader::service::Command{"end", ""});
    return 0;
  }
  throw Error(ExitCode::kUsage, "say which: up, dispatcher, submit, worker, status, drain or end",
              "", "e.g. headrace service up rm1/pipeline.toml --ranks 2");
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
         "  headrace service worker ctr                          # as many as wanted\n",
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
       options->dispatcher = subcommand("dispatcher", "hands the splits of a job to workers");
       AddJobOptions(options->dispatcher, options.get(), false);
       options->dispatcher->AddFlag("--hand-over", options->hand_over,
                                    "Interrupted, leave the job to another dispatcher, which ranks "
                                    "and workers wait for");
       options->submit = subcommand("submit", "gives a job to a dispatcher that waits for one");
       AddPipelineOptions(options->submit, options.get(), true);
       options->run_worker = subcommand("worker", "makes batches of the splits it is given");
       job(options->run_worker);
       options->run_worker
           ->AddOption("--wait", options->wait,
                       "Wait at most this long for a dispatcher; without it, wait without limit")
           ->TypeName("TIME");
       options->run_worker
           ->AddOption("--drain-time", options->drain_time,
                       "Interrupted, finish the splits at hand within this time")
           ->TypeName("TIME")
           ->ShowDefault();
       options->status = subcommand("status", "says how far a job is, and who works on it");
       job(options->status);
       options->status->AddFlag("--json", options->json,
                                "Print one JSON object (schema headrace.service/1)");
       options->drain = subcommand("drain", "lets a worker finish its splits and end");
       job(options->drain);
       options->drain->AddOption("WORKER", options->worker, "Its number, as status says it")
           ->TypeName("WORKER")
           ->Required();
       options->end = subcommand("end", "ends a job: its dispatcher, workers and ranks");
       job(options->end);
       return [options] { return Service(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
