// headrace consume: the consumer of pipelines that run in other processes.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/registry.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/job_place_options.h"
#include "dashboards/json_number.h"
#include "experiments/interrupt.h"
#include "experiments/service_fleet.h"
#include "reader/pipeline/delivery/receive_pipeline.h"
#include "reader/service/job_folder.h"
#include "reader/service/receive_job.h"
#include "workloads/trainer.h"

namespace headrace::cli {
namespace {

using reader::PipelineProgress;
using reader::ReceivePipeline;

struct ConsumeOptions {
  std::string address, step_time = "0", rank = "0/1", row_log, join_timeout = "10min";
  uint32_t producers = 1, queue = 2, most_workers = 1024;
  reader::CheckpointOptions checkpoint;
  JobPlaceOptions place;
  const CommandLine* command_line = nullptr;
  bool spin = false, checksum = false, json = false, quiet = false, shared_memory = false;
};

constexpr std::string_view kServicePrefix = "service:";

void Say(const ConsumeOptions& options, const std::string& text) {
  if (!options.quiet) std::fputs(fmt::format("headrace consume: {}\n", text).c_str(), stderr);
}

void PrintSummary(const ConsumeOptions& options, const PipelineProgress& done,
                  uint64_t received_bytes, int64_t start_ns,
                  const workloads::RowChecksums& checksums) {
  const int64_t end_ns = MonotonicNs();
  const double seconds = static_cast<double>(end_ns - start_ns) / 1e9;
  const std::optional<double> first_s =
      done.batches == 0 ? std::nullopt
                        : std::optional(static_cast<double>(done.first_ns - start_ns) / 1e9);
  const std::optional<double> steady = done.SteadyRowsPerSecond(end_ns);
  const auto bytes = static_cast<double>(received_bytes);
  const double spent = static_cast<double>(done.wait_ns + done.compute_ns);
  const double stall = spent == 0 ? 0 : static_cast<double>(done.wait_ns) / spent;
  if (options.json) {
    nlohmann::json out = {
        {"schema", "headrace.consume/1"},
        {"address", options.address},
        {"rows_count", done.rows},
        {"batches_count", done.batches},
        {"received_bytes", received_bytes},
        {"duration_s", seconds},
        {"first_batch_s", dashboards::NumberOrNull(first_s)},
        {"steady_rows_per_second", dashboards::NumberOrNull(steady)},
        {"stall_ratio", done.batches == 0 ? nlohmann::json() : nlohmann::json(stall)},
        {"interrupted", experiments::Interrupted()}};
    if (options.checksum) {
      out["checksum"] = {{"rows_count", checksums.rows},
                         {"multiset", fmt::format("{:016x}", checksums.multiset)},
                         {"ordered", fmt::format("{:016x}", checksums.ordered)}};
    }
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  if (options.quiet) return;
  fmt::print("consumed {} rows in {} batches ({}) in {:.1f} s", done.rows, done.batches,
             FormatBytes(bytes), seconds);
  if (first_s) fmt::print(", the first after {:.1f} s", *first_s);
  if (steady) fmt::print(", then {}", FormatRate(*steady, "rows"));
  if (done.batches > 0) fmt::print("; waited {} of the time", FormatPercent(stall));
  fmt::print("\n");
  if (options.checksum)
    fmt::print("checksum: rows {} multiset {:016x} ordered {:016x}\n", checksums.rows,
               checksums.multiset, checksums.ordered);
}

// "1/8" -> rank 1 of 8.
std::pair<uint32_t, uint32_t> ParseRank(const std::string& text) {
  uint32_t rank = 0, ranks = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, rank);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, ranks);
    if (second.ec == std::errc() && second.ptr == end && rank < ranks) return {rank, ranks};
  }
  throw Error(ExitCode::kUsage, "a rank is R/N, with R from 0 to N - 1", "--rank " + text,
              "e.g. --rank 0/2");
}

int RunConsumer(const ConsumeOptions& options, const workloads::RowChecksums& checksums,
                const std::function<void()>& run, const std::function<PipelineProgress()>& progress,
                const std::function<uint64_t()>& bytes) {
  const int64_t start = MonotonicNs();
  std::optional<Error> failure;
  try {
    run();
  } catch (const Error& error) {
    failure = error;
  }
  // Of one that failed before its first batch there is nothing to say but why.
  const PipelineProgress done = progress();
  if (options.json || !failure || done.batches > 0)
    PrintSummary(options, done, bytes(), start, checksums);
  if (failure) throw *failure;
  return experiments::Interrupted() ? static_cast<int>(ExitCode::kInterrupted) : 0;
}

// The consumer, which a profiler may read.
std::unique_ptr<workloads::Trainer> MakeTrainer(const ConsumeOptions& options,
                                                workloads::RowChecksums* checksums) {
  reader::ConsumerSpec spec;
  spec.step.mean = static_cast<double>(ParseDuration(options.step_time, "--step-time"));
  spec.spin = options.spin;
  experiments::InstallInterruptHandler();
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  return std::make_unique<workloads::Trainer>(
      spec, options.checksum ? checksums : nullptr,
      options.row_log.empty() ? nullptr : std::make_unique<workloads::RowLog>(options.row_log));
}

// Options that would do nothing are refused.
void RefuseGiven(const ConsumeOptions& options, std::initializer_list<const char*> names,
                 const char* what, const char* fix) {
  for (const char* name : names)
    if (options.command_line->Count(name) > 0) throw Error(ExitCode::kUsage, what, name, fix);
}

// A rank of a job of the preprocessing service.
int ConsumeJob(const ConsumeOptions& options) {
  reader::service::ReceiveJobOptions given;
  given.place = FindJobPlace(options.address.substr(kServicePrefix.size()), options.place, true);
  if (!given.place->folder().empty())
    RefuseGiven(options, {"--listen"}, "does nothing for a job that is met in its folder",
                "leave it out, or give @FILE or tls:HOST:PORT");
  given.listen = options.place.listen;
  std::tie(given.rank, given.ranks) = ParseRank(options.rank);
  given.through_shared_memory = options.shared_memory;
  given.queue = options.queue;
  given.most_workers = options.most_workers;
  given.checkpoint = options.checkpoint;
  given.join_timeout_ns = ParseDuration(options.join_timeout, "--join-timeout");
  given.interrupted = [] { return experiments::Interrupted(); };
  given.note = [&options](const std::string& text) { Say(options, text); };
  given.measured = experiments::MeasureMember("rank", given.rank);
  workloads::RowChecksums checksums;
  reader::service::ReceiveJob job(std::move(given), MakeTrainer(options, &checksums));
  return RunConsumer(
      options, checksums, [&] { job.Run(); }, [&] { return job.progress(); },
      [&] { return job.bytes(); });
}

bool IsJobHere(const std::string& text) {
  std::error_code ignored;
  try {
    return std::filesystem::exists(
        reader::service::DispatcherSocket(reader::service::JobFolder(text)), ignored);
  } catch (const Error&) {
    return false;
  }
}

// Where it listens. What is no address is often the name of a job.
reader::DeliveryAddress ListeningAddress(const std::string& text) {
  if (text == "inline")
    throw Error(ExitCode::kUsage, "'inline' names no other process", "", "try unix:PATH");
  const std::string kind = text.substr(0, text.find(':'));
  const std::vector<std::string> kinds = {"unix", "shm", "tcp", "tls", "service"};
  const bool has_kind = kind != text && kind.find('/') == std::string::npos;
  if (has_kind && std::find(kinds.begin(), kinds.end(), kind) != kinds.end())
    return reader::ParseDeliveryAddress(text, std::filesystem::current_path().string());
  const std::string nearest = has_kind ? NearestName(kind, kinds) : "";
  std::string meant = nearest.empty() ? "" : nearest + text.substr(kind.size());
  if (meant.empty() && (IsJobHere(text) || text.starts_with('@')))
    meant = std::string(kServicePrefix) + text;
  throw Error(ExitCode::kUsage,
              fmt::format("is not an address for taking batches{}",
                          meant.empty() ? "" : fmt::format(". Did you mean '{}'?", meant)),
              text,
              "write service:JOB for a rank of a job, or unix:PATH, shm:PATH or tls:HOST:PORT to "
              "listen there");
}

int Consume(const ConsumeOptions& options) {
  if (options.address.starts_with(kServicePrefix)) {
    RefuseGiven(options, {"--producers"}, "is not for a rank of a job",
                "leave it out: the dispatcher knows the workers");
    return ConsumeJob(options);
  }
  RefuseGiven(
      options,
      {"--rank", "--shared-memory", "--most-workers", "--join-timeout", "--checkpoint", "--listen",
       "--token-file", "--tls-certificate", "--tls-key", "--tls-ca", "--insecure"},
      "is for a rank of a job", "give service:JOB as the address");
  reader::ReceiveOptions receive;
  receive.from = ListeningAddress(options.address);
  receive.producers = options.producers;
  receive.queue = options.queue;
  receive.interrupted = [] { return experiments::Interrupted(); };
  receive.note = [&options](const std::string& text) { Say(options, text); };
  workloads::RowChecksums checksums;
  ReceivePipeline pipeline(std::move(receive), MakeTrainer(options, &checksums));
  Say(options, fmt::format("listens at {}", options.address));
  return RunConsumer(
      options, checksums, [&] { pipeline.Run(); }, [&] { return pipeline.progress(); },
      [&] { return pipeline.bytes(); });
}

HR_COMMAND(
    "consume",
    {.summary = "takes the batches of pipelines that run in other processes, as a trainer would",
     .examples =
         "  headrace consume unix:/tmp/batches.sock              # then, in another terminal:\n"
         "  headrace run rm1/pipeline.toml --set delivery.to=unix:/tmp/batches.sock\n"
         "  headrace consume shm:/tmp/batches.sock --step-time 5ms --checksum\n"
         "  headrace consume unix:/tmp/batches.sock --producers 4  # four readers, one trainer\n"
         "  headrace profile -- headrace consume shm:/tmp/batches.sock # recorded\n"
         "  headrace consume service:train --rank 0/2 --checkpoint 0.ckpt --resume # a job's "
         "rank\n",
     .exit_codes =
         "0 all producers finished, 1 a producer ended early, another process took the rank, a "
         "dispatcher or rank did not come in time or the job was ended, 2 usage or address taken, "
         "5 bytes that are not a batch, 7 a dispatcher that takes no more, 130 interrupted",
     .next = "headrace run PIPELINE --set delivery.to=ADDRESS",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<ConsumeOptions>();
       options->command_line = &command_line;
       command_line
           .AddOption("ADDRESS", options->address,
                      "Listen there: unix:PATH, or shm:PATH for a ring in shared memory; or be a "
                      "rank of a job: service:JOB, with the job's name, tls:HOST:PORT or @FILE")
           ->Required();
       command_line.AddOption("--rank", options->rank, "Be this rank of the job")
           ->TypeName("R/N")
           ->ShowDefault();
       command_line.AddFlag("--shared-memory", options->shared_memory,
                            "Take a job's batches through shared memory");
       command_line
           .AddOption("--most-workers", options->most_workers,
                      "Take a job's batches from at most this many workers at a time; each takes a "
                      "thread, and over a network the memory of a batch")
           ->Check(InRange(1, 65536))
           ->ShowDefault();
       command_line
           .AddOption("--listen", options->place.listen,
                      "Over a network, take batches at this address; by default at a free port of "
                      "the address that reaches the dispatcher")
           ->TypeName("HOST:PORT");
       AddSecretOptions(&command_line, &options->place);
       command_line
           .AddOption("--join-timeout", options->join_timeout,
                      "Wait at most this long for a job's dispatcher and its other ranks")
           ->TypeName("TIME")
           ->ShowDefault();
       CommandOption* const checkpoint =
           command_line
               .AddOption("--checkpoint", options->checkpoint.path,
                          "Write here which rows of the job were delivered")
               ->TypeName("FILE");
       command_line
           .AddOption("--checkpoint-every", options->checkpoint.every,
                      "Batches between two checkpoints")
           ->Needs(checkpoint)
           ->Check(InRange(1, 1 << 30))
           ->ShowDefault();
       command_line
           .AddFlag("--resume", options->checkpoint.resume,
                    "Go on from the checkpoint, if there is one")
           ->Needs(checkpoint);
       command_line
           .AddOption("--row-log", options->row_log, "Append a line for each row: EPOCH ROW HASH")
           ->TypeName("FILE");
       command_line
           .AddOption("--step-time", options->step_time,
                      "Compute this long for each batch: 5ms (0: as fast as they come)")
           ->ShowDefault();
       command_line.AddFlag("--spin", options->spin, "Burn CPU for the step instead of sleeping");
       command_line
           .AddOption("--producers", options->producers,
                      "Wait for this many producers, and end when all have finished")
           ->Check(InRange(1, 1024))
           ->ShowDefault();
       command_line
           .AddOption("--queue", options->queue,
                      "Keep up to this many received batches before the consumer")
           ->Check(InRange(1, 65536))
           ->ShowDefault();
       command_line.AddFlag("--checksum", options->checksum,
                            "Hash every row consumed and print the sums");
       command_line.AddFlag("-q,--quiet", options->quiet, "Print nothing but errors");
       command_line.AddFlag("--json", options->json,
                            "Print one JSON object (schema headrace.consume/1)");
       return [options] { return Consume(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
