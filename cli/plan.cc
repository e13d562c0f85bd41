// headrace plan: the settings to change, solved as an integer program over the recorded run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/allocation.h"
#include "analysis/run_view.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "collectors/store/store.h"

namespace headrace::cli {
namespace {

struct PlanOptions {
  std::string run = "latest", memory, target, output, database = DefaultDatabase();
  double cores = 0;
  int max_threads = 0;
  bool json = false, force = false, explain = false;
};

// "500", "500 batches/s", "282000rows/s": batches per second.
double ParseTarget(const std::string& text, double rows_per_batch) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  std::string unit(end);
  unit.erase(std::remove(unit.begin(), unit.end(), ' '), unit.end());
  const bool rows = unit == "rows/s";
  if (end == text.c_str() || !std::isfinite(value) || value <= 0 ||
      (!unit.empty() && !rows && unit != "batches/s")) {
    throw Error(ExitCode::kUsage, fmt::format("'{}' is not a rate", Printable(text)), "--target",
                "try 500, 500batches/s or 282000rows/s");
  }
  if (!rows) return value;
  if (rows_per_batch <= 0) {
    throw Error(ExitCode::kInconclusive, "the run recorded no rows per batch", "--target",
                "give the target in batches/s");
  }
  return value / rows_per_batch;
}

nlohmann::ordered_json Finite(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

std::string PlanJson(const analysis::RunView& view, const analysis::Allocation& plan) {
  nlohmann::ordered_json out;
  out["schema"] = "headrace.plan/1";
  out["run"] = view.run.run_id;
  out["run_name"] = view.run.name;
  out["pipeline"] = view.run.pipeline_path;
  out["settings"] = nlohmann::ordered_json::object();
  out["changes"] = nlohmann::ordered_json::array();
  for (const analysis::Change& change : plan.changes) {
    out["settings"][change.knob] = change.to;
    out["changes"].push_back(
        {{"knob", change.knob}, {"from", change.from}, {"to", change.to}, {"why", change.why}});
  }
  out["now"] = {{"batches_per_second", plan.now},
                {"rows_per_second", plan.now * plan.rows_per_batch}};
  out["predicted"] = {{"batches_per_second", Finite(plan.predicted)},
                      {"low", Finite(plan.predicted_interval.low)},
                      {"high", Finite(plan.predicted_interval.high)},
                      {"level_ratio", 0.9},
                      {"rows_per_second", Finite(plan.predicted * plan.rows_per_batch)}};
  out["then_limited_by"] = plan.limited_by.name;
  out["then_limited_by_kind"] = analysis::LimitKindName(plan.limited_by.kind);
  out["memory_bytes"] = plan.memory_bytes ? nlohmann::ordered_json(std::llround(*plan.memory_bytes))
                                          : nlohmann::ordered_json(nullptr);
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void PrintTable(const analysis::RunView& view, const analysis::Allocation& plan,
                const PlanOptions& options) {
  if (plan.changes.empty()) {
    fmt::print("nothing to change: no setting gains 3 % or more\n");
  } else {
    size_t knob = 4;
    for (const analysis::Change& change : plan.changes) knob = std::max(knob, change.knob.size());
    fmt::print("{:<{}}  {:>4}  {:>4}  why\n", "knob", knob, "now", "plan");
    for (const analysis::Change& change : plan.changes) {
      fmt::print("{:<{}}  {:>4}  {:>4}  {}\n", change.knob, knob, change.from, change.to,
                 change.why);
    }
  }
  const analysis::Interval& range = plan.predicted_interval;
  fmt::print("\nnow        {} ({})\n", FormatRate(plan.now, "batches"),
             FormatRate(plan.now * plan.rows_per_batch, "rows"));
  fmt::print("predicted  {} [{:.4g}, {:.4g}] ({}), {:+.0f} %\n",
             FormatRate(plan.predicted, "batches"), range.low, range.high,
             FormatRate(plan.predicted * plan.rows_per_batch, "rows"),
             100 * (plan.predicted / plan.now - 1));
  fmt::print("then limited by {}", plan.limited_by.name);
  if (std::isfinite(plan.next_bound)) {
    fmt::print(" at {}; after that by {} at {}", FormatRate(plan.limited_by.bound, "batches"),
               plan.next.name, FormatRate(plan.next_bound, "batches"));
  }
  fmt::print("\n");
  if (plan.memory_bytes)
    fmt::print("memory of queues and batches in work: {}\n", FormatBytes(*plan.memory_bytes));
  if (options.explain) fmt::print("\nprogram:\n{}", plan.program);
  if (plan.changes.empty()) return;
  const std::string file = options.output.empty() ? "plan.json" : ShellWord(options.output);
  fmt::print("\n");
  if (view.run.pipeline_path.empty()) {
    fmt::print("next: make these changes in {}, run it, then: {} profile -p PID -d 10s{}\n",
               Printable(view.run.program), view.program, view.database_option);
    return;
  }
  if (options.output.empty()) {
    fmt::print("next: {} plan {}{} -o {}\n", view.program, view.run.run_id, view.database_option,
               file);
  }
  fmt::print("next: {} run {}{} --plan {}\n", view.program, ShellWord(view.run.pipeline_path),
             view.database_option, file);
}

int Run(const PlanOptions& options) {
  // Refuses what is no run store, and marks a run whose collector died as interrupted.
  { collectors::ReadStore ready(options.database); }
  analysis::RunView view = analysis::LoadRun(options.database, options.run);
  view.program = ShellWord(ProgramName());
  if (options.database != DefaultDatabase())
    view.database_option = " --db " + ShellWord(options.database);
  if (view.operators.empty()) {
    throw Error(
        ExitCode::kInconclusive,
        "this run has no operator accounts (profiled from outside), so there is nothing to size",
        fmt::format("run {}", view.run.run_id),
        "write accounts with the C header (docs/accounts.md), or record with 'headrace run'");
  }
  const analysis::PipelineModel model(view);
  analysis::Budget budget;
  budget.max_threads = options.max_threads;
  if (options.cores > 0) budget.cores = options.cores;
  if (!options.memory.empty()) budget.memory_bytes = ParseBytes(options.memory, "--memory");
  if (!options.target.empty()) {
    budget.target = ParseTarget(options.target, model.demands().rows);
  }
  const analysis::Allocation plan = analysis::Allocate(model, budget);
  const std::string json = PlanJson(view, plan);
  if (!options.output.empty()) {
    AtomicFile file(options.output, options.force);
    file.Write(json);
    file.Commit();
    fmt::print(stderr, "wrote {}\n", options.output);
  }
  if (options.json) {
    std::fputs(json.c_str(), stdout);
  } else {
    PrintTable(view, plan, options);
  }
  return static_cast<int>(ExitCode::kOk);
}

HR_COMMAND(
    "plan",
    {.summary = "recommends threads and queues for a recorded pipeline, with the rate to expect",
     .examples = "  headrace plan                               # for the latest run\n"
                 "  headrace plan nightly --cores 8 --memory 4G -o plan.json\n"
                 "  headrace plan latest --target 282000rows/s --json\n",
     .exit_codes = "0 ok, 2 usage, 4 no plan fits the budget or the run has no operator data, 5 "
                   "not a headrace database or no such run",
     .next = "headrace run PIPELINE --plan plan.json",
     .configure = [](CLI::App& app) -> std::function<int()> {
       auto options = std::make_shared<PlanOptions>();
       app.add_option("RUN", options->run, "Plan for this run: an id, a name, or latest")
           ->capture_default_str();
       app.add_option("--cores", options->cores, "Plan for this many cores [those of the run]")
           ->check(Positive);
       app.add_option("--memory", options->memory,
                      "Stay within this much memory: 100M, 4GiB [the run's limit]");
       app.add_option("--target", options->target,
                      "Reach this rate with the fewest changes: 500, 282000rows/s [as fast as "
                      "the consumer can use]");
       app.add_option("--max-threads", options->max_threads,
                      "Allow this many threads per stage [8, or 4 per core]")
           ->check(Positive);
       app.add_flag("--json", options->json, "Print the plan as JSON (schema headrace.plan/1)");
       app.add_option("-o,--output", options->output,
                      "Write the plan as JSON to this file; appears complete or not at all");
       app.add_flag("-f,--force", options->force, "Replace the output file if it exists");
       app.add_flag("--explain", options->explain, "Print the integer program, too");
       app.add_option("--db", options->database,
                      "Read this database [$HEADRACE_DB or ./headrace.db]");
       return [options] { return Run(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
