// headrace tune: sets the threads and queues of a running pipeline until its plan changes nothing
// any more, each change verified against what was there before.
#include <fmt/format.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "analysis/run/read_run.h"
#include "analysis/tuning/tuner.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/spoken_decisions.h"
#include "cli/verdict.h"
#include "collectors/store/store.h"
#include "dashboards/tune_page.h"
#include "experiments/cache_options.h"
#include "experiments/decision_feed.h"
#include "experiments/decision_record.h"
#include "experiments/decision_text.h"
#include "experiments/device_cost.h"
#include "experiments/foreign_target.h"
#include "experiments/interrupt.h"
#include "experiments/recorded_pipeline.h"
#include "experiments/run_conditions.h"
#include "experiments/target_text.h"
#include "experiments/tune_cache.h"
#include "experiments/tuned_pipeline.h"
#include "reader/pipeline/delivery/send_consumer.h"
#include "workloads/trainer/consumer.h"

namespace headrace::cli {
namespace {

struct TuneOptions {
  std::string pipeline, database = DefaultDatabase(), name, duration, memory, target, output,
                        explain = "latest", feed, apply_command, apply_timeout = "10s";
  std::vector<std::string> set, knobs;
  experiments::CacheOptions cache;
  std::string checkpoint, cache_verify = "2m";
  int64_t pid = 0;
  int cores = 0, max_threads = 0, max_decisions = 0;
  std::optional<uint64_t> epochs;
  bool once = false, continuous = false, no_interleave = false, dry_run = false, json = false,
       quiet = false, force = false, explains = false;
  MeasureOptions measure;
};

// ---- what is said -------------------------------------------------------------------------------

// The details of decisions that can be passed on as JSON.
std::vector<std::string> WholeDetails(const std::vector<analysis::DecisionRow>& decisions) {
  std::vector<std::string> details;
  for (const analysis::DecisionRow& decision : decisions) {
    if (experiments::ReadDetail(decision.detail_json).whole)
      details.push_back(decision.detail_json);
  }
  return details;
}

// What limits after the last decision that names a limit; may be empty.
std::string ThenLimitedBy(const std::vector<analysis::DecisionRow>& decisions) {
  for (auto at = decisions.rbegin(); at != decisions.rend(); ++at) {
    if (!at->limited_by.empty()) return experiments::ReadDetail(at->detail_json).then_limited_by;
  }
  return "";
}

// What the page needs besides the result of tuning: the decisions, and words for its commands.
void Complete(const TuneOptions& options, dashboards::TunePage* page) {
  const auto decisions = analysis::LoadDecisions(options.database, std::to_string(page->run_id));
  page->decisions = WholeDetails(decisions);
  page->then_limited_by = ThenLimitedBy(decisions);
  page->foreign = options.pid != 0;
  page->program = ShellWord(ProgramName());
  page->database = options.database;
  page->database_option = DatabaseOption(options.database);
  page->file = options.pipeline;
  page->output = options.output;
}

// ---- running ------------------------------------------------------------------------------------

// The process and all it starts may use this many cores from here on: no setting can take more.
void LimitCores(int cores) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    throw ErrnoError(errno, "read the CPU affinity", "");
  const int has = CPU_COUNT(&allowed);
  const double budget = ReadCoreBudget().cores;
  if (cores > has || cores > budget) {
    throw Error(
        ExitCode::kInconclusive,
        fmt::format("{} cores were asked for and this process may use {:g}, {:g} fewer", cores,
                    std::min<double>(has, budget), cores - std::min<double>(has, budget)),
        "--cores", "ask for fewer, or leave it out");
  }
  cpu_set_t some;
  CPU_ZERO(&some);
  for (int cpu = 0, left = cores; cpu < CPU_SETSIZE && left > 0; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &some);
    --left;
  }
  if (sched_setaffinity(0, sizeof(some), &some) != 0)
    throw ErrnoError(errno, "set the CPU affinity", "");
}

reader::Settings AllSettings(const TuneOptions& options) {
  reader::Settings settings;
  for (const std::string& text : options.set) settings.push_back(reader::ParseSetting(text));
  if (options.epochs) settings.emplace_back("source.epochs", std::to_string(*options.epochs));
  return settings;
}

std::unique_ptr<reader::Consumer> MakeConsumer(const reader::PipelineSpec& spec) {
  if (spec.delivery.to.kind == reader::DeliveryKind::kInline)
    return workloads::MakeConsumer(spec, nullptr, nullptr, nullptr);
  return std::make_unique<reader::SendConsumer>(spec.delivery,
                                                [] { return experiments::Interrupted(); });
}

analysis::TunerOptions TunerOptionsOf(const TuneOptions& options,
                                      const reader::PipelineSpec& spec) {
  analysis::TunerOptions tuner;
  if (!options.memory.empty()) tuner.memory_bytes = ParseBytes(options.memory, "--memory");
  if (!options.target.empty()) {
    const uint64_t rows = spec.synthetic ? spec.synthetic->rows : spec.batch_rows;
    tuner.target = experiments::ParseTarget(options.target, static_cast<double>(rows));
  }
  tuner.max_threads = options.max_threads;
  tuner.continuous = options.continuous;
  tuner.max_decisions = options.max_decisions;
  tuner.dry_run = options.dry_run;
  return tuner;
}

// Runs the tuner beside the pipeline, and ends the pipeline where it is no longer wanted. A tuner
// that fails says so at once, and a pipeline that is to run on does, with the settings it has. One
// that refuses what was asked ends it all.
class TuningThread {
 public:
  TuningThread(analysis::TunerOptions options, reader::Pipeline* pipeline,
               const std::string& database, int64_t run_id,
               std::vector<analysis::DecisionSink*> sinks, bool stops_pipeline)
      : target_(pipeline, database, run_id, &ended_),
        tuner_(options, target_.knobs()),
        sinks_(std::move(sinks)),
        thread_([this, pipeline, stops_pipeline] {
          failure_ = ErrorOf([this] { analysis::Tune(&tuner_, &target_, sinks_); });
          const bool stops = stops_pipeline || (failure_ && Refuses(*failure_));
          if (failure_ && !stops && !ended_) {
            std::fputs(fmt::format("headrace tune: tuning has ended, the pipeline runs on: {}\n",
                                   failure_->what())
                           .c_str(),
                       stderr);
          }
          if (stops) pipeline->RequestStop();
        }) {}
  ~TuningThread() {
    if (thread_.joinable()) Join();
  }

  // The pipeline has ended.
  void Join() {
    ended_ = true;
    thread_.join();
  }
  analysis::TuneResult result() const { return tuner_.result(); }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  static bool Refuses(const Error& error) {
    return error.code() == ExitCode::kInconclusive || error.code() == ExitCode::kUsage;
  }

  std::atomic<bool> ended_{false};
  experiments::TunedPipeline target_;
  analysis::Tuner tuner_;
  std::vector<analysis::DecisionSink*> sinks_;
  std::optional<Error> failure_;
  std::thread thread_;
};

int Explain(const TuneOptions& options) {
  { collectors::ReadStore ready(options.database); }
  const auto decisions = analysis::LoadDecisions(options.database, options.explain);
  if (decisions.empty()) {
    throw Error(ExitCode::kInconclusive, "nothing was decided about this run",
                "run " + Printable(options.explain),
                "name a run of 'headrace tune'; 'headrace runs' lists them");
  }
  if (options.json) {
    std::fputs(dashboards::TuneDecisionsJson(WholeDetails(decisions)).c_str(), stdout);
    return 0;
  }
  for (const analysis::DecisionRow& decision : decisions) {
    std::fputs(experiments::DecisionText(decision).c_str(), stdout);
  }
  return 0;
}

void CheckOptions(const TuneOptions& options) {
  if (options.pipeline.empty() == (options.pid == 0)) {
    throw Error(ExitCode::kUsage,
                options.pid != 0 ? "takes a pipeline file or -p PID, not both"
                                 : "say which pipeline file to tune",
                "", "try 'headrace tune PIPELINE.toml', -p PID --apply-cmd CMD, or --explain");
  }
  if (options.pid != 0 && options.apply_command.empty() && !options.dry_run) {
    throw Error(ExitCode::kUsage, "say what sets the knobs of the process", "-p",
                "give --apply-cmd CMD (docs/tune-foreign.md), or --dry-run");
  }
  experiments::CheckCacheTiers(options.cache);
  if (options.continuous && !options.cache.tiers.empty()) {
    throw Error(ExitCode::kUsage, "is decided when tuning is over, which --continuous never is",
                "--cache", "leave one of them out");
  }
  if (options.pid != 0 && !options.cache.tiers.empty()) {
    throw Error(ExitCode::kUsage, "a process that headrace did not start has no cache to set",
                "--cache", "leave it out");
  }
  if (options.feed == "-" && options.json) {
    throw Error(ExitCode::kUsage, "both want standard output", "--feed - and --json",
                "leave one out, or give --feed unix:PATH");
  }
  if (!options.output.empty() && !options.force && std::filesystem::exists(options.output)) {
    throw Error(ExitCode::kUsage, "exists already", options.output,
                "name another, or give --force");
  }
}

// What is left to say, and to write, when tuning is over.
int Finish(dashboards::TunePage tuned, const TuneOptions& options, const std::string& store_failure,
           const experiments::DecisionFeed* feed) {
  const auto say = [](const std::string& line) { std::fputs((line + "\n").c_str(), stderr); };
  if (!store_failure.empty()) {
    say("headrace tune: decisions were not stored: " + Printable(store_failure, 500));
  }
  Complete(options, &tuned);
  if (!options.output.empty()) {
    AtomicFile file(options.output, options.force);
    file.Write(dashboards::TunedPlanJson(tuned));
    file.Commit();
    say("wrote " + options.output);
  }
  if (feed != nullptr && feed->dropped_readers() > 0) {
    say(fmt::format("feed: {} reader(s) that were too slow were dropped", feed->dropped_readers()));
  }
  if (feed != nullptr && feed->lost_lines() > 0) {
    say(fmt::format("feed: standard output did not take {} decision(s)", feed->lost_lines()));
  }
  if (feed != nullptr && feed->on_stdout()) {
    if (!options.quiet)
      say(fmt::format("recorded as run {} in {}", tuned.run_id, options.database));
  } else if (options.json) {
    std::fputs(dashboards::TuneJson(tuned).c_str(), stdout);
  } else if (!options.quiet) {
    std::fputs(dashboards::TuneText(tuned).c_str(), stdout);
  }
  if (experiments::Interrupted()) return static_cast<int>(ExitCode::kInterrupted);
  if (const std::optional<double> over = tuned.result.over_memory_bytes) {
    say(
        fmt::format("headrace tune: the process takes {} more than --memory {} allows, at the "
                    "settings it has now: raise --memory, or use smaller batches",
                    FormatBytes(*over), options.memory));
    return static_cast<int>(ExitCode::kInconclusive);
  }
  return 0;
}

// A running process of somebody else's, whose knobs the user's command sets.
int RunForeign(const TuneOptions& options, experiments::DecisionFeed* feed) {
  experiments::ForeignTune what;
  what.target.pid = options.pid;
  what.target.database = options.database;
  what.target.apply_command = options.apply_command;
  what.target.timeout_ns = ParseDuration(options.apply_timeout, "--apply-timeout");
  what.target.knobs = options.knobs;
  if (!options.duration.empty()) {
    what.target.duration_ns = ParseDuration(options.duration, "--duration");
  }
  what.rate = options.target;
  what.name = options.name;
  what.collect_arguments = options.measure.Arguments();
  if (!options.memory.empty()) what.tuner.memory_bytes = ParseBytes(options.memory, "--memory");
  if (options.cores > 0) what.tuner.cores = options.cores;
  what.tuner.max_threads = options.max_threads;
  what.tuner.continuous = options.continuous;
  what.tuner.max_decisions = options.max_decisions;
  what.tuner.dry_run = options.dry_run;
  what.tuner.interleave = !options.no_interleave;
  experiments::InstallInterruptHandler();
  SpokenDecisions spoken(feed != nullptr && feed->on_stdout());
  std::vector<analysis::DecisionSink*> sinks;
  if (!options.quiet && !options.json) sinks.push_back(&spoken);
  if (feed != nullptr) sinks.push_back(feed);
  experiments::ForeignTuned done = experiments::TuneForeign(std::move(what), std::move(sinks));
  dashboards::TunePage tuned;
  tuned.result = std::move(done.result);
  tuned.run_id = done.run_id;
  tuned.rows_per_batch = done.rows;
  tuned.name = options.name;
  return Finish(std::move(tuned), options, done.store_failure, feed);
}

// Decides about a cache, once threads and queues are set; what it comes to is a decision, also
// where it comes to nothing.
void DecideCache(const TuneOptions& options, dashboards::TunePage* tuned,
                 const std::vector<analysis::DecisionSink*>& sinks) {
  experiments::CacheTuning what;
  what.cache = options.cache;
  if (options.epochs) what.cache.epochs = static_cast<double>(*options.epochs);
  if (!options.memory.empty()) what.budget.memory_bytes = ParseBytes(options.memory, "--memory");
  what.budget.max_threads = options.max_threads;
  what.database = options.database;
  what.pipeline = options.pipeline;
  what.name = tuned->name;
  what.run_id = tuned->run_id;
  what.settings = options.set;
  what.settings.emplace_back("source.epochs=0");
  what.start = tuned->result.start;
  what.knobs = tuned->result.end;
  what.checkpoint = options.checkpoint;
  what.most_verify_ns = options.dry_run ? 0 : ParseDuration(options.cache_verify, "--cache-verify");
  what.first_decision = static_cast<int>(
      analysis::LoadDecisions(options.database, std::to_string(tuned->run_id)).size());
  tuned->start_settings = experiments::TuneCache(what, sinks).decision.start_settings;
}

// The pipeline file with what the options change. Tuning takes as long as it takes: the table is
// read again and again, unless told otherwise.
reader::PipelineSpec SpecOf(const TuneOptions& options, const reader::Settings& settings) {
  reader::PipelineSpec spec = reader::LoadPipeline(options.pipeline, settings);
  if (!options.epochs) spec.epochs = 0;
  return spec;
}

// What the page says of the pipeline that was tuned.
void DescribePipeline(const TuneOptions& options, const reader::Pipeline& pipeline,
                      dashboards::TunePage* page) {
  page->pipeline = std::filesystem::absolute(options.pipeline).string();
  page->name = options.name.empty() ? pipeline.spec().name : options.name;
  const reader::PipelineProgress progress = pipeline.progress();
  if (progress.batches > 0) {
    page->rows_per_batch =
        static_cast<double>(progress.rows) / static_cast<double>(progress.batches);
  }
}

int Run(const TuneOptions& options) {
  if (options.explains) return Explain(options);
  CheckOptions(options);
  std::optional<experiments::DecisionFeed> feed;
  if (!options.feed.empty()) feed.emplace(options.feed);
  if (options.pid != 0) return RunForeign(options, feed ? &*feed : nullptr);
  const int64_t duration_ns =
      options.duration.empty() ? 0 : ParseDuration(options.duration, "--duration");
  if (!options.duration.empty() && duration_ns <= 0)
    throw Error(ExitCode::kUsage, "must be longer than 0", "--duration");
  const reader::Settings settings = AllSettings(options);
  reader::PipelineSpec spec = SpecOf(options, settings);
  const analysis::TunerOptions tuner_options = TunerOptionsOf(options, spec);
  if (options.cores > 0) LimitCores(options.cores);
  experiments::ChooseGap(options.database, &spec);
  options.measure.SetEnvironment();
  experiments::InstallInterruptHandler();
  std::unique_ptr<reader::Consumer> consumer = MakeConsumer(spec);
  const collectors::RunConditions conditions = experiments::ReadConditions(spec, settings);
  reader::Pipeline pipeline(std::move(spec), std::move(consumer),
                            [] { return experiments::Interrupted(); },
                            {.path = options.checkpoint});

  experiments::RecordingOptions recording{options.database, options.name, options.pipeline,
                                          options.measure.Arguments()};
  recording.arguments.insert(recording.arguments.end(), {"--commit-every", "400ms"});
  { const collectors::RunStore store(options.database); }  // an unwritable one is told at once
  // The first decision is seconds away.
  if (!options.quiet && !options.json)
    fmt::print(stderr, "tuning {}: it is measured as it is, then changed\n",
               Printable(options.pipeline));
  collectors::Agent agent = experiments::StartRecording(recording, pipeline, conditions);
  const int64_t run_id = agent.run_id();

  experiments::StoredDecisions stored(options.database, run_id);
  const bool stops = !options.continuous && duration_ns == 0;
  // Where the pipeline runs on, the result is long in coming.
  SpokenDecisions spoken(!stops || (feed && feed->on_stdout()));
  std::vector<analysis::DecisionSink*> sinks = {&stored};
  if (!options.quiet && !options.json) sinks.push_back(&spoken);
  if (feed) sinks.push_back(&*feed);
  std::optional<Error> failure;
  dashboards::TunePage tuned;
  {
    TuningThread tuning(tuner_options, &pipeline, options.database, run_id, sinks, stops);
    experiments::PipelineWatcher watcher(&pipeline, duration_ns, true);
    try {
      pipeline.Run();
    } catch (const Error& error) {
      failure = error;
    }
    tuning.Join();
    if (!failure) failure = tuning.failure();
    tuned.result = tuning.result();
  }
  try {
    agent.Stop();
  } catch (const Error& error) {
    if (!failure) failure = error;
  }
  if (failure) throw *failure;
  tuned.run_id = run_id;
  DescribePipeline(options, pipeline, &tuned);
  if (!options.cache.tiers.empty() && !experiments::Interrupted())
    DecideCache(options, &tuned, sinks);
  return Finish(std::move(tuned), options, stored.failure(), feed ? &*feed : nullptr);
}

HR_COMMAND(
    "tune",
    {.summary = "sets threads and queues of a running pipeline, each change verified",
     .examples =
         "  headrace tune rm1/pipeline.toml                          # until nothing more is "
         "gained\n"
         "  headrace tune rm1/pipeline.toml --memory 4GiB --cores 2 -o plan.json\n"
         "  headrace tune rm1/pipeline.toml --continuous             # on, as the pipeline "
         "changes\n"
         "  headrace tune rm1/pipeline.toml --dry-run                # what it would set first\n"
         "  headrace tune -p 4242 --apply-cmd ./set.sh --feed -      # a pipeline of your own\n"
         "  headrace tune --explain latest                           # each decision, and its "
         "result\n",
     .exit_codes =
         "0 ok, 1 the storage or the trainer failed, 2 a mistake in the pipeline file or an "
         "option, 4 no settings satisfy the budget, the process exceeds it at the end, or too "
         "little to plan by, 5 damaged table or database, 7 out of disk or memory, 130 interrupted",
     .next = "headrace tune --explain latest",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<TuneOptions>();
       command_line.AddOption("PIPELINE", options->pipeline, "Tune this pipeline file (TOML)")
           ->TypeName("FILE");
       command_line.Group("A process of yours");
       auto* pid = command_line
                       .AddOption("-p,--pid", options->pid,
                                  "Tune this running process instead, which is instrumented "
                                  "(docs/tune-foreign.md)")
                       ->TypeName("PID")
                       ->Check(Positive);
       command_line
           .AddOption("--apply-cmd", options->apply_command,
                      "Run this by sh to set knobs of the process: one decision as JSON on its "
                      "standard input, HEADRACE_KNOB_... in its environment; exit 0: done")
           ->TypeName("CMD")
           ->Needs(pid);
       command_line
           .AddOption("--apply-timeout", options->apply_timeout,
                      "Wait this long for it, then end it")
           ->TypeName("DURATION")
           ->ShowDefault()
           ->Needs(pid);
       command_line
           .AddOption("--knob", options->knobs,
                      "Turn only these knobs of the process: decode.parallelism")
           ->TypeName("KEY")
           ->OneValueEach()
           ->Default("all")
           ->Needs(pid);
       command_line
           .AddFlag("--no-interleave", options->no_interleave,
                    "Compare before with after, where a change disturbs the process for long; "
                    "otherwise old and new settings take turns until the difference is clear")
           ->Needs(pid);
       command_line.Group("A cache");
       auto* cache =
           command_line
               .AddOption("--cache", options->cache.tiers,
                          "Then decide whether to keep a stage's output between epochs: "
                          "memory=8GiB; where filling it does not take too long, the pipeline is "
                          "started again with it and compared (docs/tune-cache.md)")
               ->TypeName("TIER=BUDGET[@RATE]");
       command_line.AddOption("--epoch-rows", options->cache.epoch_rows, "Rows of one epoch")
           ->Default("those of the table")
           ->Check(Positive)
           ->Needs(cache);
       command_line
           .AddOption("--cache-verify", options->cache_verify,
                      "Run it with the cache for at most this long; 0s: only decide")
           ->TypeName("DURATION")
           ->ShowDefault()
           ->Needs(cache);
       command_line
           .AddOption("--checkpoint", options->checkpoint,
                      "Record the rows delivered in this file, and go on from it with the cache; "
                      "'run --checkpoint FILE --resume' goes on from there")
           ->Needs(cache);
       command_line.Group("How it runs");
       command_line
           .AddOption("--feed", options->feed,
                      "Write each decision as a line of JSON (schema headrace.decision/1) to "
                      "standard output (-), or to all who connect to a socket (unix:PATH)")
           ->TypeName("-|unix:PATH");
       auto* once =
           command_line.AddFlag("--once", options->once,
                                "Stop tuning when the plan changes nothing any more, as without "
                                "--continuous; with --duration the pipeline runs on");
       command_line
           .AddFlag("--continuous", options->continuous,
                    "Keep watching, and plan again when the pipeline changes")
           ->Excludes(once);
       command_line.AddOption("-d,--duration", options->duration,
                              "Run the pipeline this long: 60s, 10m");
       command_line.AddOption("--epochs", options->epochs, "Read the table this many times")
           ->Default("again and again");
       command_line.Group("Budget and aim");
       command_line.AddOption("--cores", options->cores, "Use this many cores and no more")
           ->Check(Positive)
           ->Default("those this process may use");
       command_line
           .AddOption("--memory", options->memory,
                      "Keep the process within this much memory: 100M, 4GiB")
           ->Default("its limit");
       command_line
           .AddOption("--target", options->target, "Reach this rate and no more: 500, 282000rows/s")
           ->Default("as fast as the trainer can use");
       command_line
           .AddOption("--max-threads", options->max_threads, "Allow this many threads per stage")
           ->Check(Positive)
           ->Default("8, or 4 per core");
       command_line
           .AddOption("--max-decisions", options->max_decisions,
                      "Stop after this many changes of knobs")
           ->Check(Positive)
           ->Default("no limit");
       command_line.Group("How it runs");
       command_line.AddFlag("--dry-run", options->dry_run,
                            "Decide once, print it, and set nothing");
       command_line
           .AddOption("--set", options->set, "Begin with one knob changed: decode.parallelism=2")
           ->OneValueEach();
       command_line
           .AddOption("--explain", options->explain,
                      "Print the decisions of this run, or the latest, instead of tuning")
           ->Values(0, 1)
           ->TypeName("RUN");
       command_line.AddOption("-o,--output", options->output,
                              "Write the settings as a plan (schema headrace.plan/1) to this file");
       command_line.AddFlag("-f,--force", options->force, "Replace the output file if it exists");
       command_line.AddOption("--db", options->database, "Record into this database");
       command_line.AddOption("--name", options->name, "Name the run")
           ->Default("the pipeline's name");
       options->measure.AddTo(&command_line);
       command_line.AddFlag("-q,--quiet", options->quiet, "Print nothing but errors");
       command_line.AddFlag("--json", options->json,
                            "Print one JSON object (schema headrace.tune/1)");
       const CommandLine* command = &command_line;
       return [options, command] {
         options->explains = command->Count("--explain") > 0;
         if (options->explain.empty()) options->explain = "latest";
         return Run(*options);
       };
     }});

}  // namespace
}  // namespace headrace::cli
