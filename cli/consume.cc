// headrace consume: the consumer of pipelines that run in other processes.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
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
#include "experiments/interrupt.h"
#include "reader/pipeline/delivery/receive_pipeline.h"
#include "workloads/trainer.h"

namespace headrace::cli {
namespace {

using reader::PipelineProgress;
using reader::ReceivePipeline;

struct ConsumeOptions {
  std::string address, step_time = "0";
  uint32_t producers = 1, queue = 2;
  bool spin = false, checksum = false, json = false, quiet = false;
};

void Say(const ConsumeOptions& options, const std::string& text) {
  if (!options.quiet) std::fputs(fmt::format("headrace consume: {}\n", text).c_str(), stderr);
}

void PrintSummary(const ConsumeOptions& options, const ReceivePipeline& pipeline, double seconds,
                  const workloads::RowChecksums& checksums) {
  const PipelineProgress done = pipeline.progress();
  const auto bytes = static_cast<double>(pipeline.bytes());
  const double spent = static_cast<double>(done.wait_ns + done.compute_ns);
  const double stall = spent == 0 ? 0 : static_cast<double>(done.wait_ns) / spent;
  if (options.json) {
    nlohmann::json out = {
        {"schema", "headrace.consume/1"},
        {"address", options.address},
        {"rows_count", done.rows},
        {"batches_count", done.batches},
        {"received_bytes", pipeline.bytes()},
        {"duration_s", seconds},
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
  fmt::print("consumed {} rows in {} batches ({}) in {:.1f} s: {}", done.rows, done.batches,
             FormatBytes(bytes), seconds,
             FormatRate(static_cast<double>(done.rows) / seconds, "rows"));
  if (done.batches > 0) fmt::print("; waited {} of the time", FormatPercent(stall));
  fmt::print("\n");
  if (options.checksum)
    fmt::print("checksum: rows {} multiset {:016x} ordered {:016x}\n", checksums.rows,
               checksums.multiset, checksums.ordered);
}

int Consume(const ConsumeOptions& options) {
  reader::ReceiveOptions receive;
  receive.from =
      reader::ParseDeliveryAddress(options.address, std::filesystem::current_path().string());
  if (receive.from.kind == reader::DeliveryKind::kInline)
    throw Error(ExitCode::kUsage, "'inline' names no other process", "", "try unix:PATH");
  receive.producers = options.producers;
  receive.queue = options.queue;
  receive.interrupted = [] { return experiments::Interrupted(); };
  receive.note = [&options](const std::string& text) { Say(options, text); };
  reader::ConsumerSpec spec;
  spec.step.mean = static_cast<double>(ParseDuration(options.step_time, "--step-time"));
  spec.spin = options.spin;
  experiments::InstallInterruptHandler();
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // a profiler reads this process
  workloads::RowChecksums checksums;
  ReceivePipeline pipeline(std::move(receive), std::make_unique<workloads::Trainer>(
                                                   spec, options.checksum ? &checksums : nullptr));
  Say(options, fmt::format("listens at {}", options.address));
  const int64_t start = MonotonicNs();
  std::optional<Error> failure;
  try {
    pipeline.Run();
  } catch (const Error& error) {
    failure = error;
  }
  PrintSummary(options, pipeline, static_cast<double>(MonotonicNs() - start) / 1e9, checksums);
  if (failure) throw *failure;
  return experiments::Interrupted() ? static_cast<int>(ExitCode::kInterrupted) : 0;
}

HR_COMMAND(
    "consume",
    {.summary = "takes the batches of pipelines that run in other processes, as a trainer would",
     .examples =
         "  headrace consume unix:/tmp/batches.sock              # then, in another terminal:\n"
         "  headrace run rm1/pipeline.toml --set delivery.to=unix:/tmp/batches.sock\n"
         "  headrace consume shm:/tmp/batches.sock --step-time 5ms --checksum\n"
         "  headrace consume unix:/tmp/batches.sock --producers 4  # four readers, one trainer\n"
         "  headrace profile -- headrace consume shm:/tmp/batches.sock # recorded\n",
     .exit_codes = "0 all producers came to their end, 1 a producer went away before, 2 usage or "
                   "address taken, 5 bytes that are not a batch, 130 interrupted",
     .next = "headrace run PIPELINE --set delivery.to=ADDRESS",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<ConsumeOptions>();
       command_line
           .AddOption("ADDRESS", options->address,
                      "Listen there: unix:PATH, or shm:PATH for a ring in shared memory")
           ->Required();
       command_line
           .AddOption("--step-time", options->step_time,
                      "Compute this long for each batch: 5ms (0: as fast as they come)")
           ->ShowDefault();
       command_line.AddFlag("--spin", options->spin, "Burn CPU for the step instead of sleeping");
       command_line
           .AddOption("--producers", options->producers,
                      "Wait for this many, and end when all came to their end")
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
