// headrace run: runs the reference pipeline and has it recorded by a collector process.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/layout_dedup.h"
#include "cli/verdict.h"
#include "collectors/agent.h"
#include "collectors/store/store.h"
#include "dashboards/json_number.h"
#include "dashboards/terminal/progress.h"
#include "experiments/device_cost.h"
#include "experiments/interrupt.h"
#include "experiments/layout_record.h"
#include "experiments/plan_file.h"
#include "experiments/recorded_pipeline.h"
#include "experiments/run_conditions.h"
#include "experiments/run_sample.h"
#include "experiments/store_probe.h"
#include "reader/pipeline/delivery/send_consumer.h"
#include "reader/pipeline/pipeline.h"
#include "reader/pipeline/split.h"
#include "reader/source/open.h"
#include "workloads/coread_log.h"
#include "workloads/tensor_dump.h"
#include "workloads/trainer/consumer.h"

namespace headrace::cli {
namespace {

using reader::Pipeline;
using reader::PipelineProgress;
using reader::PipelineSpec;
using reader::Settings;

struct RunOptions {
  std::string pipeline, database, name, duration, plan, log_reads, row_log, dump_tensors;
  reader::CheckpointOptions checkpoint;
  std::vector<std::string> set;
  std::optional<uint64_t> epochs;
  bool no_record = false, quiet = false, json = false, checksum = false;
  bool ceiling = false, cold = false, no_probe = false;
  MeasureOptions measure;
};

Settings AllSettings(const RunOptions& options, const experiments::PlanFile& plan) {
  Settings settings = plan.settings;
  for (const std::string& text : options.set) settings.push_back(reader::ParseSetting(text));
  if (options.epochs) settings.emplace_back("source.epochs", std::to_string(*options.epochs));
  if (options.cold) settings.emplace_back("source.cold", "true");
  return settings;
}

// With the settings of the plan and of the options; a mistake in the plan's names its file.
PipelineSpec LoadSpec(const RunOptions& options, const experiments::PlanFile& plan,
                      const Settings& settings) {
  try {
    return reader::LoadPipeline(options.pipeline, settings);
  } catch (const Error& error) {
    for (const auto& [knob, value] : plan.settings) {
      const std::string name = "setting '" + Printable(knob, 80);
      if (error.where() == name + "'" || error.where() == name + "=" + Printable(value, 80) + "'")
        throw error.Within(options.plan);
    }
    throw;
  }
}

struct TimeUsed {
  int64_t start_ns;
  double seconds, cpu_seconds;  // cpu_seconds: of this process, without the collector
};

// What a run came to, by this process's own clock.
struct RunTotals {
  PipelineProgress done;
  bool repeats;
  double seconds, cpu_seconds, stall;
  std::optional<double> first_s = {}, steady_rows_per_second = {};

  double PerSecond(uint64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

RunTotals TotalsOf(const Pipeline& pipeline, const TimeUsed& used) {
  RunTotals totals{pipeline.progress(), pipeline.spec().repeat_first_batch, used.seconds,
                   used.cpu_seconds, 0};
  const PipelineProgress& done = totals.done;
  // Its steps follow one another, once there is a batch.
  if (totals.repeats) totals.seconds = static_cast<double>(done.compute_ns) / 1e9;
  if (!totals.repeats && done.batches > 0) {
    totals.first_s = static_cast<double>(done.first_ns - used.start_ns) / 1e9;
    totals.steady_rows_per_second =
        done.SteadyRowsPerSecond(used.start_ns + std::llround(used.seconds * 1e9));
  }
  if (done.wait_ns + done.compute_ns != 0) {
    totals.stall =
        static_cast<double>(done.wait_ns) / static_cast<double>(done.wait_ns + done.compute_ns);
  }
  return totals;
}

void PrintRunJson(const RunOptions& options, const Pipeline& pipeline, const RunTotals& totals,
                  int64_t run_id, const workloads::RowChecksums& checksums,
                  const workloads::TrainingFigures& training) {
  const PipelineProgress& done = totals.done;
  nlohmann::json out = {
      {"schema", "headrace.run/1"},
      {"pipeline", pipeline.spec().name},
      {"kind", totals.repeats               ? "ceiling"
               : pipeline.spec().cold_reads ? "cold"
                                            : "usual"},
      {"rows_count", done.rows},
      {"batches_count", done.batches},
      {"duration_s", totals.seconds},
      {"first_batch_s", dashboards::NumberOrNull(totals.first_s)},
      {"steady_rows_per_second", dashboards::NumberOrNull(totals.steady_rows_per_second)},
      {"cpu_s", totals.cpu_seconds},
      {"rows_per_second", totals.PerSecond(done.rows)},
      {"batches_per_second", totals.PerSecond(done.batches)},
      {"stall_ratio",
       done.batches == 0 || totals.repeats ? nlohmann::json() : nlohmann::json(totals.stall)},
      {"interrupted", experiments::Interrupted()}};
  if (done.skipped_stripes > 0) {
    out["skipped_stripes_count"] = done.skipped_stripes;
    out["skipped_rows_count"] = done.skipped_rows;
  }
  if (!done.locked_columns.empty()) out["locked_columns"] = done.locked_columns;
  if (done.resumed) out["resumed_rows_count"] = done.resumed_rows;
  out["run_id"] = run_id > 0 ? nlohmann::json(run_id) : nlohmann::json();
  if (options.checksum) {
    out["checksum"] = {{"rows_count", checksums.rows},
                       {"multiset", fmt::format("{:016x}", checksums.multiset)},
                       {"ordered", fmt::format("{:016x}", checksums.ordered)}};
  }
  if (training.steps > 0) {
    out["training"] = {{"steps_count", training.steps},
                       {"parameters_count", training.parameters},
                       {"first_loss", training.first_loss},
                       {"last_loss", training.last_loss}};
  }
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void PrintSummary(const RunOptions& options, const Pipeline& pipeline, const TimeUsed& used,
                  int64_t run_id, const workloads::RowChecksums& checksums,
                  const workloads::TrainingFigures& training) {
  const RunTotals totals = TotalsOf(pipeline, used);
  if (options.json) return PrintRunJson(options, pipeline, totals, run_id, checksums, training);
  const PipelineProgress& done = totals.done;
  if (options.quiet) return;
  const std::string rates =
      // The report's rate is of the steady phase.
      fmt::format("{:.1f} s: {}, {:.1f} batches/s from start to end", totals.seconds,
                  FormatRate(totals.PerSecond(done.rows), "rows"), totals.PerSecond(done.batches));
  if (totals.repeats && done.batches > 0) {
    fmt::print(
        "{}: one batch of {} rows repeated, {} steps in {}: what the trainer takes of input that "
        "costs nothing",
        pipeline.spec().name, done.rows / done.batches, done.batches, rates);
  } else {
    fmt::print("{}: {} rows in {} batches, {}", pipeline.spec().name, done.rows, done.batches,
               rates);
  }
  // For a recorded run the first page says how long the trainer waited in the steady phase.
  if (done.batches > 0 && !totals.repeats && run_id == 0)
    fmt::print("; the trainer waited {} of the time", FormatPercent(totals.stall));
  fmt::print("\n");
  if (training.steps > 0)
    fmt::print("trained {} steps of {} parameters: loss {:.4f} at first, {:.4f} at the end\n",
               training.steps, training.parameters, training.first_loss, training.last_loss);
  if (options.checksum)
    fmt::print("checksum: rows {} multiset {:016x} ordered {:016x}\n", checksums.rows,
               checksums.multiset, checksums.ordered);
  if (run_id > 0) fmt::print("recorded as run {} in {}\n", run_id, options.database);
}

// Whether a run with --resume goes on or begins: a mistyped name must not pass for a checkpoint.
void SayResumed(const RunOptions& options, const Pipeline& pipeline) {
  if (!options.checkpoint.resume || options.quiet) return;
  const PipelineProgress progress = pipeline.progress();
  std::fputs((progress.resumed
                  ? fmt::format("headrace run: goes on from {}: {} rows are done\n",
                                options.checkpoint.path, progress.resumed_rows)
                  : fmt::format("headrace run: there is no {} yet: begins with the first row\n",
                                options.checkpoint.path))
                 .c_str(),
             stderr);
}

// A cold run that is none must not pass for one.
void SayConditions(const RunOptions& options, const collectors::RunConditions& conditions) {
  constexpr double kStays = 0.05;
  if (!conditions.cold || options.quiet) return;
  const std::string now =
      conditions.resident_ratio ? FormatPercent(*conditions.resident_ratio) : "an unknown share";
  if (!conditions.resident_ratio || *conditions.resident_ratio > kStays) {
    std::fputs(fmt::format("headrace run: --cold: {} of the table stays in the page cache{}\n", now,
                           conditions.resident_note
                               ? ": " + *conditions.resident_note
                               : "; its file system may keep it nowhere else, or another "
                                 "program holds it")
                   .c_str(),
               stderr);
  } else if (!options.json) {
    std::fputs(fmt::format("headrace run: the page cache held {} of the table and holds {} now\n",
                           conditions.resident_before_ratio
                               ? FormatPercent(*conditions.resident_before_ratio)
                               : "an unknown share",
                           now)
                   .c_str(),
               stderr);
  }
}

// What a sample of the table says, for the report of the run.
void StoreSamples(const RunOptions& options, const Pipeline& pipeline, int64_t run_id) {
  const auto stop = [] { return experiments::Interrupted(); };
  std::optional<size_t> stripes;
  if (!pipeline.spec().synthetic) stripes = pipeline.splits().size();
  collectors::RunStore(options.database)
      .SetLayout(run_id, experiments::ReadLayout(pipeline.spec(), stop, {}, stripes));
  if (pipeline.spec().synthetic || !pipeline.progress().locked_columns.empty()) return;
  const std::vector<collectors::RunFact> facts =
      experiments::TakeRunSamples(pipeline.spec(), pipeline.table(), stop);
  if (!facts.empty()) collectors::RunStore(options.database).SetFacts(run_id, facts);
}

// What --ceiling has no use for, however it is asked for. A pipeline file may say so all the same.
void CheckCeiling(const RunOptions& options, PipelineSpec* spec) {
  if (!options.ceiling) return;
  if (spec->delivery.to.kind != reader::DeliveryKind::kInline)
    throw Error(ExitCode::kUsage, "the batches are consumed in another process", "--ceiling",
                "leave out delivery.to: --set delivery.to=inline");
  for (const std::string& text : options.set) {
    const std::string key = reader::ParseSetting(text).first;
    if (key == "source.epochs" || key == "source.cold")
      throw Error(ExitCode::kUsage,
                  fmt::format("one batch is repeated, which {} says nothing of", key), "--ceiling",
                  "leave out --set " + ShellWord(text));
  }
  spec->cold_reads = false;
  spec->repeat_first_batch = true;
}

// How long the run lasts by the clock; 0: to the end of its table.
int64_t DurationOf(const RunOptions& options) {
  constexpr int64_t kCeilingNs = 5'000'000'000;  // a batch repeated has no end of its own
  if (options.duration.empty()) return options.ceiling ? kCeilingNs : 0;
  const int64_t duration_ns = ParseDuration(options.duration, "--duration");
  if (duration_ns <= 0) throw Error(ExitCode::kUsage, "must be longer than 0", "--duration");
  return duration_ns;
}

// What the options make of the pipeline file's specification.
void Prepare(const RunOptions& options, int64_t duration_ns, PipelineSpec* spec) {
  // A run by the clock goes round its table until the time is up. That is of the measurement: the
  // settings in force keep how often the job reads it.
  if (!options.duration.empty() && !options.epochs) spec->epochs = 0;
  CheckCeiling(options, spec);
  if (options.cold && spec->synthetic)
    throw Error(ExitCode::kUsage, "the elements are synthetic: there is no table to read", "--cold",
                "give a pipeline that reads a table");
  if (spec->epochs == 0 && duration_ns == 0 && !options.quiet) {
    std::fputs("source.epochs = 0: runs until Ctrl-C; --duration or --epochs end it earlier\n",
               stderr);
  }
  experiments::ChooseGap(options.database, spec);
}

std::unique_ptr<reader::Consumer> ConsumerOf(const RunOptions& options, const PipelineSpec& spec,
                                             workloads::RowChecksums* checksums,
                                             workloads::TrainingFigures* training) {
  std::unique_ptr<reader::Consumer> consumer;
  if (spec.delivery.to.kind == reader::DeliveryKind::kInline) {
    consumer = workloads::MakeConsumer(
        spec, options.checksum ? checksums : nullptr, training,
        options.row_log.empty() ? nullptr : std::make_unique<workloads::RowLog>(options.row_log));
  } else {
    if (options.checksum)
      throw Error(ExitCode::kUsage, "the rows are consumed in another process", "--checksum",
                  "give --checksum to 'headrace consume'");
    if (!options.row_log.empty())
      throw Error(ExitCode::kUsage, "the rows are consumed in another process", "--row-log",
                  "leave out delivery.to, or the log");
    consumer = std::make_unique<reader::SendConsumer>(spec.delivery,
                                                      [] { return experiments::Interrupted(); });
  }
  if (options.dump_tensors.empty()) return consumer;
  return workloads::DumpTensors(options.dump_tensors, std::move(consumer));
}

collectors::Agent Record(const RunOptions& options, const std::vector<std::string>& measure,
                         const Pipeline& pipeline, const collectors::RunConditions& conditions) {
  experiments::RecordingOptions recording;
  recording.database = options.database;
  recording.name = options.name;
  recording.pipeline_path = options.pipeline;
  recording.arguments = measure;
  std::optional<dashboards::TransientNote> note;
  if (!options.quiet && !options.json) note.emplace("starting the recorder ...");
  return experiments::StartRecording(recording, pipeline, conditions);
}

// Stores what the recorder does not know of a run.
void StoreAbout(const RunOptions& options, const experiments::PlanFile& plan,
                const std::optional<collectors::StoreProbeSample>& probe, int64_t run_id) {
  if (run_id <= 0) return;
  if (probe) collectors::RunStore(options.database).AddStoreProbe(run_id, *probe);
  // With other settings on top, or of another pipeline, it is no run of that plan.
  if (plan.prediction && options.set.empty() &&
      plan.pipeline == std::filesystem::absolute(options.pipeline).string()) {
    collectors::RunStore(options.database).SetPrediction(run_id, *plan.prediction);
  }
}

void PrintFirstPage(const RunOptions& options, int64_t run_id) {
  std::fflush(stdout);
  std::string page;
  {
    const dashboards::TransientNote note("looking for what limits it ...");
    page = FirstPageOf(options.database, run_id, STDOUT_FILENO);
  }
  std::fputs(page.c_str(), stdout);
}

int SayInterrupted(const RunOptions& options, int64_t run_id, double seconds) {
  if (run_id > 0) {
    std::fputs(
        fmt::format("stopped; saved {:.1f} s as run {} in {}\n", seconds, run_id, options.database)
            .c_str(),
        stderr);
    if (!options.quiet) {
      std::fputs(FirstPageOf(options.database, run_id, STDERR_FILENO).c_str(), stderr);
    }
  }
  return static_cast<int>(ExitCode::kInterrupted);
}

int Run(const RunOptions& options) {
  const std::vector<std::string> measure = options.measure.Arguments();
  const int64_t duration_ns = DurationOf(options);
  experiments::PlanFile plan;
  if (!options.plan.empty()) plan = experiments::ReadPlan(options.plan);
  const Settings settings = AllSettings(options, plan);
  PipelineSpec spec = LoadSpec(options, plan, settings);
  Prepare(options, duration_ns, &spec);
  if (options.no_record) setenv("HEADRACE_ACCOUNTS", "off", 0);
  options.measure.SetEnvironment();
  experiments::InstallInterruptHandler();
  workloads::RowChecksums checksums;
  workloads::TrainingFigures training;
  std::unique_ptr<reader::Consumer> consumer = ConsumerOf(options, spec, &checksums, &training);
  collectors::RunConditions conditions;
  if (!options.no_record || spec.cold_reads)
    conditions = experiments::ReadConditions(spec, settings);
  Pipeline pipeline(
      std::move(spec), std::move(consumer), [] { return experiments::Interrupted(); },
      options.checkpoint);
  SayResumed(options, pipeline);

  std::optional<collectors::Agent> agent;
  if (!options.no_record) agent.emplace(Record(options, measure, pipeline, conditions));
  SayConditions(options, conditions);
  const int64_t start = MonotonicNs(), start_cpu = ProcessCpuNs();
  std::optional<Error> failure;
  std::optional<collectors::StoreProbeSample> probe;
  {
    experiments::PipelineWatcher watcher(&pipeline, duration_ns, options.quiet || options.json);
    std::optional<experiments::StoreProbe> prober;
    if (agent && !options.no_probe && !options.ceiling) prober.emplace(&pipeline, duration_ns);
    try {
      pipeline.Run();
    } catch (const Error& error) {
      failure = error;
    }
    if (prober) probe = prober->Finish();
  }
  const double seconds = static_cast<double>(MonotonicNs() - start) / 1e9;
  const TimeUsed used{start, seconds, static_cast<double>(ProcessCpuNs() - start_cpu) / 1e9};
  int64_t run_id = 0;
  try {
    if (agent) run_id = agent->Stop();
    StoreAbout(options, plan, probe, run_id);
  } catch (const Error& error) {
    // The pipeline's own result stands; what became of the recording is said after it, once.
    if (failure) {
      std::fputs(fmt::format("headrace run: the recording failed: {}\n", error.what()).c_str(),
                 stderr);
    } else {
      failure = error;
    }
  }
  const bool is_whole = run_id > 0 && !failure && !experiments::Interrupted();
  if (is_whole) StoreSamples(options, pipeline, run_id);
  if (!options.quiet) {
    for (const std::string& note : pipeline.notes())
      std::fputs(fmt::format("headrace run: {}\n", note).c_str(), stderr);
  }
  PrintSummary(options, pipeline, used, run_id, checksums, training);
  if (is_whole && !options.quiet && !options.json) PrintFirstPage(options, run_id);
  if (!options.log_reads.empty() && !failure)
    workloads::AppendCoread(options.log_reads, pipeline.spec());
  if (failure) throw *failure;
  return experiments::Interrupted() ? SayInterrupted(options, run_id, seconds) : 0;
}

HR_COMMAND(
    "run",
    {.summary = "runs a pipeline file and records it",
     .examples =
         "  headrace run rm1/pipeline.toml                              # to the end of the table\n"
         "  headrace run rm1/pipeline.toml --duration 10s --name before # again and again for 10 "
         "s\n"
         "  headrace run rm1/pipeline.toml --set decode.parallelism=2   # with one knob changed\n"
         "  headrace run rm1/pipeline.toml --plan plan.json             # with a plan applied\n"
         "  headrace run rm1/pipeline.toml --ceiling                    # the trainer without "
         "input\n"
         "  headrace run rm1/pipeline.toml --cold --duration 10s        # read from the device\n"
         "  headrace run rm1/pipeline.toml --checkpoint at.ckpt --resume # goes on where the last "
         "one "
         "stopped\n",
     .exit_codes = "0 ok, 1 the storage or the trainer failed, 2 a mistake in the pipeline file or "
                   "an option, 5 damaged table, 6 a column without its key or access denied, 7 out "
                   "of disk or memory, or the database was deleted or replaced, 130 interrupted",
     .next = "headrace report latest",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<RunOptions>();
       options->database = DefaultDatabase();
       command_line.AddOption("PIPELINE", options->pipeline, "Run this pipeline file (TOML)")
           ->TypeName("FILE")
           ->Required();
       command_line.Group("What is run");
       command_line.AddOption("--db", options->database, "Record into this database");
       command_line.AddOption("--name", options->name, "Name the run")
           ->Default("the pipeline's name");
       auto* duration =
           command_line.AddOption("-d,--duration", options->duration,
                                  "Run this long: 10s, 2m; a table is read again and again");
       command_line.AddOption("--epochs", options->epochs, "Read the table this many times")
           ->Excludes(duration)
           ->Default("the file's");
       command_line
           .AddOption("--set", options->set,
                      "Change one knob: decode.parallelism=2, consumer.step=5ms")
           ->OneValueEach();
       command_line.AddOption("--plan", options->plan, "Apply the settings of a plan file");
       command_line.Group("Rows and batches");
       command_line
           .AddOption("--log-reads", options->log_reads,
                      "Append the features read to this log, for rewrite --order popularity")
           ->TypeName("FILE");
       auto* checkpoint = command_line
                              .AddOption("--checkpoint", options->checkpoint.path,
                                         "Keep in this file which rows were delivered")
                              ->TypeName("FILE");
       command_line
           .AddOption("--checkpoint-every", options->checkpoint.every,
                      "Write it after every this many batches, and at the end")
           ->Check(InRange(uint64_t{1}, uint64_t{1} << 40))
           ->Needs(checkpoint)
           ->TypeName("N")
           ->ShowDefault();
       command_line
           .AddFlag("--resume", options->checkpoint.resume,
                    "Go on from the checkpoint, if there is one, with the rows not yet delivered")
           ->Needs(checkpoint);
       command_line
           .AddOption("--row-log", options->row_log,
                      "Write a line EPOCH ROW HASH for each row delivered")
           ->TypeName("FILE");
       command_line
           .AddOption("--dump-tensors", options->dump_tensors,
                      "Write every batch as .npy arrays below this new folder (docs/dedup.md)")
           ->TypeName("FOLDER");
       command_line.Group("Experiments");
       auto* ceiling = command_line.AddFlag("--ceiling", options->ceiling,
                                            "Repeat the first batch: what the trainer takes if "
                                            "input costs nothing (5 s, or --duration)");
       command_line
           .AddFlag("--cold", options->cold,
                    "Drop the table from the page cache first, and in every epoch (source.cold)")
           ->Excludes(ceiling);
       for (const char* other :
            {"--epochs", "--checkpoint", "--row-log", "--dump-tensors", "--log-reads"}) {
         ceiling->Excludes(command_line.Find(other));
       }
       command_line.AddFlag("--no-probe", options->no_probe,
                            "Never test for a moment whether more fetching threads get more from "
                            "the storage");
       command_line.AddFlag("--no-record", options->no_record,
                            "Do not record; instrumentation is switched off");
       options->measure.AddTo(&command_line);
       command_line.Group("Rows and batches");
       command_line
           .AddFlag("--checksum", options->checksum, "Hash every row delivered and print the sums")
           ->Excludes(ceiling);
       command_line.AddFlag("-q,--quiet", options->quiet, "Print nothing but errors");
       command_line.AddFlag("--json", options->json,
                            "Print one JSON object (schema headrace.run/1)");
       return [options] { return Run(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
