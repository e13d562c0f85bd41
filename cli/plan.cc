// headrace plan: the settings to change, solved as an integer program over the recorded run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "analysis/advice/emit/emit.h"
#include "analysis/model/sensitivity.h"
#include "analysis/model/what_if.h"
#include "analysis/program/allocation.h"
#include "analysis/program/reader_cache.h"
#include "analysis/run/read_run.h"
#include "analysis/run/run_view.h"
#include "analysis/run/settings.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/plan_fleet.h"
#include "collectors/store/store.h"
#include "dashboards/cache_page.h"
#include "dashboards/emit_page.h"
#include "dashboards/plan_page.h"
#include "dashboards/terminal/progress.h"
#include "dashboards/what_if_page.h"
#include "experiments/cache_options.h"
#include "experiments/target_text.h"

namespace headrace::cli {
namespace {

struct PlanOptions {
  std::string run = "latest", memory, target, output, nodes, format = "text", lp, emit,
              database = DefaultDatabase();
  double cores = 0, price = 0, watts = 0;
  int max_threads = 0;
  std::vector<std::string> what_if;
  experiments::CacheOptions cache;
  bool json = false, force = false, explain = false;
};

void PrintPage(const std::string& page) { std::fputs(page.c_str(), stdout); }

// The options that a plan was made with, so that a command makes it again.
std::string BudgetText(const PlanOptions& options) {
  std::string text;
  const auto number = [&](const char* option, double value) {
    if (value > 0) text += fmt::format(" {} {:.15g}", option, value);
  };
  const auto word = [&](const char* option, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {} {}", option, ShellWord(value));
  };
  number("--cores", options.cores);
  word("--memory", options.memory);
  word("--target", options.target);
  number("--max-threads", options.max_threads);
  number("--price-per-core-hour", options.price);
  number("--watts-per-core", options.watts);
  for (const std::string& tier : options.cache.tiers) word("--cache", tier);
  number("--epoch-rows", options.cache.epoch_rows);
  number("--epochs", options.cache.epochs);
  return text;
}

// Predicts the rate at settings of --what-if, and prints the page.
int WhatIf(const analysis::RunView& view, const analysis::PipelineModel& model,
           const PlanOptions& options) {
  const analysis::Variant what = analysis::ParseWhatIf(model, options.what_if);
  const analysis::Predictor predictor(model);
  const analysis::Prediction prediction = predictor.Predict(what);
  if (!std::isfinite(prediction.rate)) {
    throw Error(ExitCode::kInconclusive, "nothing that was recorded limits the rate then",
                "--what-if", "leave some cost to the pipeline");
  }
  const double now = model.demands().rate, rows = model.demands().rows;
  const analysis::Interval gain =
      predictor.Gain({model.current(), {}}, what, prediction.rate / now - 1);
  const std::vector<analysis::Worth> worths =
      analysis::Sensitivity(model, predictor, what, analysis::Step::kUnit);
  const dashboards::WhatIfPage page{view,       options.what_if,        now,  rows,
                                    prediction, predictor.contention(), gain, worths};
  PrintPage(options.json ? dashboards::WhatIfJson(page) : dashboards::WhatIfText(page));
  return static_cast<int>(ExitCode::kOk);
}

// A ceiling run says nothing of the pipeline by itself; the run that it is the ceiling of does.
[[noreturn]] void RefuseCeiling(const analysis::RunView& view) {
  std::string fix = fmt::format("record the pipeline itself ('{} run {}') and name that run",
                                view.program, analysis::PipelineWord(view.run));
  for (const analysis::SiblingRow& sibling : view.siblings) {
    if (sibling.kind != "pipeline") continue;
    fix = fmt::format("name the run that it is the ceiling of: {} plan {}{}", view.program,
                      sibling.run_id, view.database_option);
    break;
  }
  throw Error(ExitCode::kInconclusive,
              "this run repeated one batch to measure the trainer without input, so there is "
              "nothing to size",
              fmt::format("run {}", view.run.run_id), fix);
}

// Without its target, which is in rows of the model, and what it may keep.
analysis::Budget BudgetOf(const PlanOptions& options) {
  analysis::Budget budget;
  budget.max_threads = options.max_threads;
  if (options.cores > 0) budget.cores = options.cores;
  if (!options.memory.empty()) budget.memory_bytes = ParseBytes(options.memory, "--memory");
  if (options.price > 0) budget.price_per_core_hour = options.price;
  if (options.watts > 0) budget.watts_per_core = options.watts;
  return budget;
}

dashboards::PlanAsked AskedOf(const PlanOptions& options) {
  dashboards::PlanAsked asked;
  asked.cores = options.cores;
  asked.memory = options.memory;
  asked.target = !options.target.empty();
  asked.price = options.price > 0;
  asked.power = options.watts > 0;
  asked.explain = options.explain;
  asked.options = BudgetText(options);
  asked.output = options.output;
  return asked;
}

void WriteOutput(const std::string& path, bool force, const std::string& text) {
  AtomicFile file(path, force);
  file.Write(text);
  file.Commit();
  fmt::print(stderr, "wrote {}\n", Printable(path));
}

// `target` as the option --emit has it: "dataloader" or "tfdata".
analysis::Emitted EmitFor(const std::string& target, const analysis::RunView& view,
                          const analysis::Budget& budget) {
  return target == "tfdata" ? analysis::EmitTfData(view, budget)
                            : analysis::EmitDataLoader(view, budget);
}

int EmitFromOutside(const analysis::RunView& view, const PlanOptions& options) {
  if (!options.target.empty()) {
    throw Error(ExitCode::kInconclusive, "a run seen from outside has no rate to reach", "--target",
                "leave it out, or record operators (docs/python.md)");
  }
  const analysis::Emitted emitted = EmitFor(options.emit, view, BudgetOf(options));
  const std::string json = dashboards::OutsidePlanJson(view, emitted);
  if (!options.output.empty()) WriteOutput(options.output, options.force, json);
  PrintPage(options.json ? json : dashboards::EmitText(view, emitted, options.output));
  return static_cast<int>(ExitCode::kOk);
}

int PlanNodes(const analysis::RunView& view, const analysis::PipelineModel& model,
              const PlanOptions& options) {
  const double rows = model.demands().rows;
  FleetOptions fleet;
  fleet.nodes = options.nodes;
  if (!options.target.empty())
    fleet.target_rows = experiments::ParseTarget(options.target, rows) * rows;
  fleet.format = options.json ? "json" : options.format;
  fleet.output = options.output;
  fleet.lp = options.lp;
  fleet.force = options.force;
  fleet.explain = options.explain;
  fleet.database = options.database;
  return PlanFleet(view, model, fleet);
}

// The rate for each number of cores, to twice those of the plan; none where cores are not known.
std::optional<analysis::Curve> OverCores(const analysis::Predictor& predictor,
                                         const analysis::Allocation& plan) {
  if (!predictor.model().cores_known()) return std::nullopt;
  const double most = std::max(4.0, 2 * std::ceil(std::min(plan.settings.cores, 8.0)));
  return analysis::RateOverCores(predictor, {plan.settings, plan.scales}, static_cast<int>(most));
}

// The plan of one host: threads, queues and caches.
int PlanHost(const analysis::RunView& view, const analysis::PipelineModel& model,
             const PlanOptions& options) {
  if (!options.lp.empty() && options.lp == options.output) {
    throw Error(ExitCode::kUsage, "the plan and its program cannot be one file", "--lp",
                "name another file");
  }
  analysis::Budget budget = BudgetOf(options);
  if (!options.target.empty()) {
    budget.target = experiments::ParseTarget(options.target, model.demands().rows);
  }
  const analysis::Predictor predictor(model);
  std::optional<analysis::CacheChoice> caches;
  if (!options.cache.tiers.empty()) {
    budget.cache = experiments::CacheQuestionOf(model, options.cache);
    budget.one_cache = analysis::IsReader(model);
    caches = analysis::ChooseCache(model, predictor, *budget.cache);
  }
  const analysis::Allocation plan = analysis::Allocate(predictor, budget);
  std::optional<analysis::Emitted> emitted;
  if (!options.emit.empty()) emitted = EmitFor(options.emit, view, budget);
  const std::vector<analysis::Worth> worths =
      analysis::Sensitivity(model, predictor, {plan.settings, plan.scales}, analysis::Step::kUnit);
  const std::optional<analysis::Curve> over_cores = OverCores(predictor, plan);

  dashboards::PlanPage page{view, plan, worths, AskedOf(options)};
  std::optional<dashboards::CachePage> cache_page;
  if (caches) {
    cache_page.emplace(
        dashboards::CachePage{model, plan, *budget.cache, *caches, options.cache.epoch_rows});
    page.cache = &*cache_page;
  }
  if (over_cores) page.over_cores = &*over_cores;
  if (emitted) page.emitted = &*emitted;
  const std::string json = dashboards::PlanJson(page);
  if (!options.output.empty()) WriteOutput(options.output, options.force, json);
  if (!options.lp.empty()) WriteOutput(options.lp, options.force, plan.program.lp);
  PrintPage(options.json ? json
            : emitted    ? dashboards::EmitText(view, *emitted, options.output)
                         : dashboards::PlanText(page));
  return static_cast<int>(dashboards::TooSlow(page) ? ExitCode::kInconclusive : ExitCode::kOk);
}

int Run(const PlanOptions& options) {
  // Refuses what is no run store.
  { collectors::ReadStore ready(options.database); }
  std::optional<dashboards::TransientNote> note("reading the run ...");
  analysis::RunView view = analysis::LoadRun(options.database, options.run);
  note.reset();
  view.program = ShellWord(ProgramName());
  if (options.database != DefaultDatabase())
    view.database_option = " --db " + ShellWord(options.database);
  if (view.run.kind == "ceiling") RefuseCeiling(view);
  if (!options.emit.empty() && view.operators.empty()) return EmitFromOutside(view, options);
  if (view.operators.empty()) {
    throw Error(
        ExitCode::kInconclusive,
        "this run is seen from outside: its operators are not known, so nothing can be planned",
        fmt::format("run {}", view.run.run_id),
        "record a Python program with 'headrace profile -- COMMAND', or wrap its loader "
        "(docs/python.md); a C program includes a header (docs/accounts.md)");
  }
  const analysis::PipelineModel model(view);
  if (!options.what_if.empty()) return WhatIf(view, model, options);
  if (!options.nodes.empty()) return PlanNodes(view, model, options);
  return PlanHost(view, model, options);
}

// --cache, --epoch-rows and --epochs, after the options that do not go with them.
void AddCacheOptions(CommandLine* command_line, experiments::CacheOptions* options) {
  auto* cache = command_line
                    ->AddOption("--cache", options->tiers,
                                "Answer instead whether to keep a stage's output between epochs, "
                                "and where: memory=8GiB, disk=200GiB@1.5GB/s, or both")
                    ->TypeName("TIER=BUDGET[@RATE]")
                    ->Excludes({"--what-if", "--nodes"});
  command_line->AddOption("--epoch-rows", options->epoch_rows, "Rows of one epoch")
      ->Check(Positive)
      ->Needs(cache);
  command_line->AddOption("--epochs", options->epochs, "Epochs that the job makes")
      ->Default("says after how many it pays")
      ->Check(Positive)
      ->Needs(cache);
}

// --emit, after the options that do not go with it.
void AddEmitOption(CommandLine* command_line, std::string* target) {
  CommandOption* emit =
      command_line
          ->AddOption("--emit", *target,
                      "Print it as arguments of torch.utils.data.DataLoader, or options of "
                      "tf.data, to be pasted; also of runs seen from outside (docs/plan.md)")
          ->TypeName("LOADER")
          ->Check(OneOf({"dataloader", "tfdata"}));
  for (const char* other : {"--what-if", "--nodes", "--cache", "--lp", "--explain",
                            "--price-per-core-hour", "--watts-per-core"}) {
    emit->Excludes(command_line->Find(other));
  }
}

HR_COMMAND(
    "plan",
    {.summary =
         "recommends threads, queues and caches for a recorded pipeline, with the rate to expect",
     .examples =
         "  headrace plan                               # for the latest run\n"
         "  headrace plan nightly --cores 8 --memory 4G -o plan.json\n"
         "  headrace plan latest --target 282000rows/s --json\n"
         "  headrace plan latest --what-if decode.parallelism=4 stage:fetch.cost=0.5\n"
         "  headrace plan latest --cache memory=8GiB --epoch-rows 3000000 --epochs 10\n"
         "  headrace plan latest --emit dataloader        # num_workers=..., to be pasted\n",
     .exit_codes = "0 ok, 2 usage, 4 no plan fits the budget or keeps the rate within it, or the "
                   "run has no operator data or "
                   "no input (--ceiling), 5 not a headrace database or no such run",
     .next = "headrace run PIPELINE --plan plan.json",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<PlanOptions>();
       command_line.AddOption("RUN", options->run, "Plan for this run: an id, a name, or latest")
           ->ShowDefault();
       command_line.Group("Budget and aim");
       command_line.AddOption("--cores", options->cores, "Plan for this many cores")
           ->Check(Positive)
           ->Default("those of the run");
       command_line
           .AddOption("--memory", options->memory, "Stay within this much memory: 100M, 4GiB")
           ->Default("the run's limit");
       command_line
           .AddOption("--target", options->target,
                      "Reach this rate with the fewest changes: 500, 282000rows/s")
           ->Default("as fast as the trainer can use");
       command_line
           .AddOption("--max-threads", options->max_threads, "Allow this many threads per stage")
           ->Check(Positive)
           ->Default("8, or 4 per core");
       command_line
           .AddOption("--price-per-core-hour", options->price,
                      "Buy the fewest whole cores that keep the rate, at this price each")
           ->Check(Positive);
       command_line
           .AddOption("--watts-per-core", options->watts,
                      "Then take the least power, at this much for a core in use")
           ->Check(Positive);
       command_line.Group("Output of the plan");
       command_line.AddFlag("--json", options->json,
                            "Print the plan as JSON (schema headrace.plan/1)");
       command_line.AddOption(
           "-o,--output", options->output,
           "Write the plan as JSON to this file; appears complete or not at all");
       command_line
           .AddOption("--lp", options->lp,
                      "Write the integer program to this file, in the LP format that CBC, GLPK and "
                      "HiGHS read")
           ->TypeName("FILE");
       command_line.AddFlag("-f,--force", options->force, "Replace the output files if they exist");
       command_line.AddFlag("--explain", options->explain,
                            "Print the objectives and the integer program, too");
       command_line.Group("Other questions than the plan");
       command_line
           .AddOption("--what-if", options->what_if,
                      "Predict the rate at these settings instead of planning: "
                      "STAGE.parallelism=4, STAGE.queue=16, cores=8, NAME.cost=0.5 (a stage, an "
                      "operator, a lock, a device or consumer at half its cost)")
           ->TypeName("KEY=VALUE")
           ->Excludes({"--cores", "--memory", "--target", "--max-threads", "--output", "--lp",
                       "--explain", "--price-per-core-hour", "--watts-per-core"});
       AddFleetOptions(&command_line, &options->nodes, &options->format);
       AddCacheOptions(&command_line, &options->cache);
       AddEmitOption(&command_line, &options->emit);
       command_line.AddOption("--db", options->database, "Read this database");
       return [options] { return Run(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
