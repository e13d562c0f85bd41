// headrace plan: the settings to change, solved as an integer program over the recorded run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/advice/next_step.h"
#include "analysis/model/sensitivity.h"
#include "analysis/model/what_if.h"
#include "analysis/program/allocation.h"
#include "analysis/program/reader_cache.h"
#include "analysis/run/read_run.h"
#include "analysis/run/run_view.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/plan_cache.h"
#include "cli/plan_emit.h"
#include "cli/plan_fleet.h"
#include "cli/rates_text.h"
#include "collectors/store/store.h"
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

nlohmann::ordered_json Finite(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json Whole(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(std::llround(*value)) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json LimitJson(const analysis::Limit& limit) {
  return {{"name", limit.name},
          {"kind", limit.kind_name()},
          {"batches_per_second", Finite(limit.bound)}};
}

nlohmann::ordered_json IntervalJson(const analysis::Interval& interval) {
  return {{"low", Finite(interval.low)}, {"high", Finite(interval.high)}, {"level_ratio", 0.9}};
}

nlohmann::ordered_json WorthsJson(const std::vector<analysis::Worth>& worths) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const analysis::Worth& worth : worths) {
    out.push_back({{"resource", worth.limit.name},
                   {"kind", worth.limit.kind_name()},
                   {"change", worth.what},
                   {"batches_per_second", worth.rate},
                   {"gain_ratio", worth.gain},
                   {"gain_interval", IntervalJson(worth.interval)},
                   {"then_limited_by", LimitJson(worth.then)}});
  }
  return out;
}

void PrintWorths(const std::vector<analysis::Worth>& worths) {
  fmt::print("\ngain from one more, each alone\n");
  size_t name = 0, what = 0;
  for (const analysis::Worth& worth : worths) {
    name = std::max(name, analysis::Describe(worth.limit).size());
    what = std::max(what, worth.what.size());
  }
  for (const analysis::Worth& worth : worths) {
    if (worth.gain < analysis::kNoGain) continue;
    fmt::print("  {:<{}}  {:<{}}  {:+.0f} % [{:.0f}, {:.0f}], then limited by {}\n",
               analysis::Describe(worth.limit), name, worth.what, what, 100 * worth.gain,
               100 * worth.interval.low, 100 * worth.interval.high, analysis::Describe(worth.then));
  }
  std::string nothing;
  for (const analysis::Worth& worth : worths) {
    if (worth.gain >= analysis::kNoGain) continue;
    nothing += (nothing.empty() ? "" : "; ") +
               fmt::format("{}, {}", analysis::Describe(worth.limit), worth.what);
  }
  if (!nothing.empty()) fmt::print("  nothing (under 1 %): {}\n", nothing);
}

nlohmann::ordered_json ObjectivesJson(const analysis::HostReport& program) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const analysis::SolvedObjective& objective : program.objectives) {
    out.push_back({{"least", objective.what},
                   {"value", Finite(objective.value)},
                   {"unit", objective.unit},
                   {"optimal", objective.proof.optimal},
                   {"gap_ratio", objective.proof.gap},
                   {"seconds", objective.proof.seconds},
                   {"limit_seconds", objective.proof.max_seconds}});
  }
  return out;
}

nlohmann::ordered_json RowsRate(double rate, double rows) {
  return rows > 0 ? Finite(rate * rows) : nlohmann::ordered_json(nullptr);
}

// What a page of a plan is made of.
struct Planned {
  const analysis::RunView& view;
  const analysis::PipelineModel& model;
  const PlanOptions& options;
  const analysis::Allocation& plan;
  const std::vector<analysis::Worth>& worths;
  const analysis::Curve* over_cores;        // none: cores are not known
  const analysis::CacheQuestion* question;  // none: no cache was asked for
  const analysis::CacheChoice* caches;      // likewise
  const analysis::Emitted* emitted;         // none: not asked for
};

// A cache that `headrace run --plan` can make: in memory, as one in a folder needs the folder.
void AddCacheSettings(const Planned& about, nlohmann::ordered_json* settings) {
  for (const analysis::PlannedCache& cache : about.plan.caches) {
    const std::string after = analysis::CacheAfter(about.model, cache.stage);
    const analysis::CacheTier& tier = about.question->tiers[cache.tier];
    if (after.empty() || tier.name != "memory") continue;
    (*settings)["cache.after"] = after;
    (*settings)["cache.tier"] = "memory";
    (*settings)["cache.budget"] = fmt::format("{}MiB", analysis::CacheBudgetMiB(cache));
  }
}

std::string PlanJson(const Planned& about) {
  const auto& [view, model, options, plan, worths, over_cores, question, caches, emitted] = about;
  const double cores = options.cores;
  nlohmann::ordered_json out;
  out["schema"] = "headrace.plan/1";
  out["run"] = view.run.run_id;
  out["run_name"] = view.run.name;
  out["pipeline"] = view.run.pipeline_path;
  // Set only if the plan is for another number of cores than the run had.
  out["cores"] = cores > 0 ? nlohmann::ordered_json(cores) : nlohmann::ordered_json(nullptr);
  // The plan holds for the pipeline as it was run, with what that run had set.
  out["settings"] = nlohmann::ordered_json::object();
  for (const std::string& setting : analysis::RecordedSettings(view.run)) {
    if (const size_t at = setting.find('='); at != std::string::npos) {
      out["settings"][setting.substr(0, at)] = setting.substr(at + 1);
    }
  }
  out["changes"] = nlohmann::ordered_json::array();
  for (const analysis::Change& change : plan.changes) {
    out["settings"][change.knob] = change.to;
    out["changes"].push_back({{"knob", change.knob},
                              {"from", change.from},
                              {"to", change.to},
                              {"why", change.why},
                              {"gain_ratio", Finite(change.gain)},
                              {"memory_change_bytes", Whole(change.memory_bytes)}});
  }
  AddCacheSettings(about, &out["settings"]);
  out["caches"] = nlohmann::ordered_json::array();
  for (const analysis::PlannedCache& cache : plan.caches) {
    out["caches"].push_back({{"after", model.stages()[cache.stage].name},
                             {"tier", question->tiers[cache.tier].name},
                             {"kept_ratio", cache.share},
                             {"bytes", std::llround(cache.bytes)},
                             {"budget_bytes", analysis::CacheBudgetMiB(cache) << 20}});
  }
  out["now"] = {{"batches_per_second", plan.now},
                {"rows_per_second", RowsRate(plan.now, plan.rows_per_batch)}};
  out["predicted"] = {{"batches_per_second", Finite(plan.predicted)},
                      {"low", Finite(plan.predicted_interval.low)},
                      {"high", Finite(plan.predicted_interval.high)},
                      {"level_ratio", 0.9},
                      {"rows_per_second", RowsRate(plan.predicted, plan.rows_per_batch)}};
  out["gain_ratio"] = Finite(plan.predicted / plan.now - 1);
  out["gain_interval"] = IntervalJson(plan.gain_interval);
  out["promise"] = {{"batches_per_second", Finite(plan.promise)}, {"probability", 0.9}};
  out["risk"] = {{"slower_probability", plan.slower_probability
                                            ? nlohmann::ordered_json(*plan.slower_probability)
                                            : nlohmann::ordered_json(nullptr)}};
  out["then_limited_by"] = plan.limited_by.name;
  out["then_limited_by_kind"] = plan.limited_by.kind_name();
  out["memory_bytes"] = Whole(plan.memory_bytes);
  out["memory_change_bytes"] = Whole(plan.memory_change_bytes);
  if (question != nullptr) {
    const auto number = [](const std::optional<double>& value) {
      return value ? Finite(*value) : nlohmann::ordered_json(nullptr);
    };
    out["fill_batches_per_second"] = number(plan.predicted_fill);
    out["total_seconds"] = number(plan.total_s);
    out["now_total_seconds"] = number(plan.now_total_s);
    out["cache"] =
        nlohmann::ordered_json::parse(CacheJson(model, options.cache, *question, *caches));
  }
  const analysis::Proof proof =
      plan.program.objectives.empty() ? analysis::Proof{} : plan.program.objectives[0].proof;
  out["solver"] = {{"optimal", proof.optimal},
                   {"gap_ratio", proof.gap},
                   {"seconds", proof.seconds},
                   {"limit_seconds", proof.max_seconds}};
  out["objectives"] = ObjectivesJson(plan.program);
  out["cores_used"] = Finite(plan.cores_used);
  out["watts"] = plan.watts ? Finite(*plan.watts) : nlohmann::ordered_json(nullptr);
  out["worth_of_more"] = WorthsJson(worths);
  out["rate_over_cores"] = nlohmann::ordered_json::array();
  if (over_cores != nullptr) {
    for (const auto& [number, rate] : over_cores->points) {
      out["rate_over_cores"].push_back({{"cores", number}, {"batches_per_second", rate}});
    }
    out["knee_cores"] = over_cores->knee;
  }
  if (emitted != nullptr) {
    out["emit"] = nlohmann::ordered_json::parse(EmitJson(view, *emitted));
  }
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void PrintObjectives(const analysis::Allocation& plan, const PlanOptions& options) {
  fmt::print("\nobjectives, in order, each at what the ones before reached\n");
  for (const analysis::SolvedObjective& objective : plan.program.objectives) {
    const analysis::Proof& proof = objective.proof;
    fmt::print("  least {:<32} {:>10.5g} {:<8} {} in {} (limit {:g} s)\n", objective.what,
               objective.value, objective.unit,
               proof.optimal ? std::string("proven optimal, gap 0,")
                             : fmt::format("within {} of the least,", FormatPercent(proof.gap)),
               FormatDuration(proof.seconds * 1e9), proof.max_seconds);
  }
  if (options.price <= 0) fmt::print("  price: not in force; --price-per-core-hour gives one\n");
  if (options.watts <= 0) fmt::print("  power: not in force; --watts-per-core gives it\n");
  fmt::print("copies of subgraphs: none to choose; {}\n", plan.no_copies);
}

void PrintProgram(const analysis::HostReport& program) {
  fmt::print(
      "\nprogram; ways to run a stage that cannot be part of a best answer are left out{}:\n{}",
      program.exact_batch_s
          ? fmt::format("; the exact max-min method, which is no program, finds {}",
                        FormatRate(1 / *program.exact_batch_s, "batches"))
          : std::string(),
      program.words);
}

// Whether what the budget leaves is surely slower than what ran, whatever is set.
bool TooSlow(const analysis::Allocation& plan, const PlanOptions& options) {
  return (options.cores > 0 || !options.memory.empty()) && plan.predicted_interval.high < plan.now;
}

void PrintTooSlow(const Planned& about) {
  const analysis::Allocation& plan = about.plan;
  std::string budget;
  if (about.options.cores > 0) budget = fmt::format("{:g} cores", about.options.cores);
  if (!about.options.memory.empty()) {
    budget += (budget.empty() ? "" : " and ") + about.options.memory + " of memory";
  }
  fmt::print(
      "infeasible at the present rate: {} allow {} at most, {:+.0f} % [{:.0f}, {:.0f}]; "
      "limited by {}\n\n",
      budget, FormatRate(plan.predicted, "batches"), 100 * (plan.predicted / plan.now - 1),
      100 * plan.gain_interval.low, 100 * plan.gain_interval.high,
      analysis::Describe(plan.limited_by));
}

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

void PrintTable(const Planned& about) {
  const auto& [view, model, options, plan, worths, over_cores, question, caches, emitted] = about;
  if (TooSlow(plan, options)) PrintTooSlow(about);
  if (question != nullptr) PrintCacheVerdict(model, *question, plan, *caches);
  if (plan.changes.empty()) {
    fmt::print("{}: {}\n", plan.caches.empty() ? "nothing to change" : "nothing else to change",
               TooSlow(plan, options)   ? "no setting makes up for the smaller budget"
               : options.target.empty() ? "no setting gains 3 % or more"
                                        : "the target is met as it is");
  } else {
    size_t knob = 4;
    for (const analysis::Change& change : plan.changes) knob = std::max(knob, change.knob.size());
    fmt::print("{:<{}}  {:>4}  {:>4}  {:>11}  {:>10}  why\n", "knob", knob, "now", "plan",
               "without it", "memory");
    for (const analysis::Change& change : plan.changes) {
      fmt::print(
          "{:<{}}  {:>4}  {:>4}  {:>11}  {:>10}  {}\n", Printable(change.knob), knob, change.from,
          change.to, fmt::format("{:+.0f} %", 100 * (1 / (1 + change.gain) - 1)),
          change.memory_bytes
              ? (*change.memory_bytes < 0 ? "-" : "+") + FormatBytes(std::abs(*change.memory_bytes))
              : std::string("-"),
          change.why);
    }
  }
  const analysis::Interval& range = plan.predicted_interval;
  fmt::print("\nnow        {}\n", RatesText(plan.now, plan.rows_per_batch));
  fmt::print("predicted  {}, {:+.0f} %\n",
             RatesText(plan.predicted, plan.rows_per_batch,
                       fmt::format(" [{}, {}]", FormatCount(range.low), FormatCount(range.high))),
             100 * (plan.predicted / plan.now - 1));
  if (!plan.changes.empty() || !plan.caches.empty()) {
    fmt::print("promise    nine of ten such plans reach {}; slower than now: {}\n",
               FormatRate(plan.promise, "batches"),
               plan.slower_probability.value_or(0) < 0.01
                   ? std::string("under 1 %")
                   : FormatPercent(*plan.slower_probability));
  }
  fmt::print("then limited by {}", analysis::Describe(plan.limited_by));
  if (std::isfinite(plan.next_bound)) {
    fmt::print(" at {}; after that by {} at {}", FormatRate(plan.limited_by.bound, "batches"),
               analysis::Describe(plan.next), FormatRate(plan.next_bound, "batches"));
  }
  fmt::print("\n");
  if (plan.memory_bytes)
    fmt::print("memory of queues and batches in work: {}\n", FormatBytes(*plan.memory_bytes));
  PrintWorths(worths);
  if (over_cores != nullptr) {
    fmt::print("  with");
    for (const auto& [number, rate] : over_cores->points) {
      fmt::print("{} {} core{} {}", number > 1 ? "," : "", number, number > 1 ? "s" : "",
                 FormatCount(rate));
    }
    fmt::print(" batches/s: more than {} gain{} under 2 %\n", over_cores->knee,
               over_cores->knee == 1 ? "s" : "");
  }
  if (question != nullptr) PrintCacheTable(model, options.cache, *question, *caches);
  if (options.explain || options.price > 0 || options.watts > 0) PrintObjectives(plan, options);
  if (options.explain) PrintProgram(plan.program);
  if (plan.changes.empty() && plan.caches.empty()) return;
  if (TooSlow(plan, options)) return;
  if (const std::string compare = analysis::CompareCommand(view, plan);
      !plan.shown() && !compare.empty()) {
    fmt::print(
        "\nThe plan may gain nothing: its interval holds 0. A comparison decides:\n"
        "next: {}\n",
        compare);
    return;
  }
  const std::string file = options.output.empty() ? "plan.json" : ShellWord(options.output);
  fmt::print("\n");
  if (view.run.pipeline_path.empty()) {
    fmt::print("next: make these changes in {}, run it, then: {} profile -p PID -d 10s{}\n",
               Printable(view.run.program), view.program, view.database_option);
    return;
  }
  if (options.output.empty()) {
    fmt::print("next: {} plan {}{}{} -o {}\n", view.program, view.run.run_id, BudgetText(options),
               view.database_option, file);
  }
  fmt::print("next: {} run {}{} --plan {}\n", view.program, ShellWord(view.run.pipeline_path),
             view.database_option, file);
}

std::string WhatIfJson(const analysis::RunView& view, const PlanOptions& options, double now,
                       double rows, const analysis::Prediction& prediction,
                       const analysis::Contention& contention, const analysis::Interval& gain,
                       const std::vector<analysis::Worth>& worths) {
  nlohmann::ordered_json out;
  out["schema"] = "headrace.what_if/1";
  out["run"] = view.run.run_id;
  out["run_name"] = view.run.name;
  out["what_if"] = options.what_if;
  out["now"] = {{"batches_per_second", now}, {"rows_per_second", RowsRate(now, rows)}};
  out["predicted"] = {{"batches_per_second", prediction.rate},
                      {"rows_per_second", RowsRate(prediction.rate, rows)},
                      {"low", prediction.interval.low},
                      {"high", prediction.interval.high},
                      {"level_ratio", 0.9},
                      {"cpu_cost_ratio", prediction.cpu_cost}};
  out["contention"] = {{"each_core_ratio", contention.each},
                       {"deviation_ratio", contention.deviation},
                       {"runs", contention.runs}};
  out["gain_ratio"] = prediction.rate / now - 1;
  out["gain_interval"] = IntervalJson(gain);
  out["limited_by"] = LimitJson(prediction.limits[prediction.binding]);
  out["limits"] = nlohmann::ordered_json::array();
  for (const analysis::Limit& limit : prediction.limits) out["limits"].push_back(LimitJson(limit));
  out["worth_of_more"] = WorthsJson(worths);
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int PrintWhatIf(const analysis::RunView& view, const analysis::PipelineModel& model,
                const PlanOptions& options) {
  const analysis::Variant what = analysis::ParseWhatIf(model, options.what_if);
  const analysis::Predictor predictor(model);
  const analysis::Prediction prediction = predictor.Predict(what);
  if (!std::isfinite(prediction.rate)) {
    throw Error(ExitCode::kInconclusive, "nothing that was recorded limits the rate then",
                "--what-if", "leave some cost to the pipeline");
  }
  const double now = model.demands().rate, rows = model.demands().rows;
  const double gain = prediction.rate / now - 1;
  const analysis::Interval range = predictor.Gain({model.current(), {}}, what, gain);
  const std::vector<analysis::Worth> worths =
      analysis::Sensitivity(model, predictor, what, analysis::Step::kUnit);
  if (options.json) {
    std::fputs(
        WhatIfJson(view, options, now, rows, prediction, predictor.contention(), range, worths)
            .c_str(),
        stdout);
    return static_cast<int>(ExitCode::kOk);
  }
  const auto shown = [&](double rate) { return RatesText(rate, rows); };
  fmt::print("run {} as recorded        {}\n", view.run.run_id, shown(now));
  fmt::print("if {}  {}, 90 % of such predictions within [{}, {}]\n",
             Printable(fmt::format("{}", fmt::join(options.what_if, " "))), shown(prediction.rate),
             FormatCount(prediction.interval.low), FormatCount(prediction.interval.high));
  fmt::print("gain {:+.0f} % [{:.0f}, {:.0f}]; limited by {} then\n", 100 * gain, 100 * range.low,
             100 * range.high, analysis::Describe(prediction.limits[prediction.binding]));
  if (const std::string dearer = analysis::Words(predictor.contention(), prediction.cpu_cost);
      !dearer.empty()) {
    fmt::print("{}\n", dearer);
  }
  PrintWorths(worths);
  return static_cast<int>(ExitCode::kOk);
}

// A ceiling run says nothing of the pipeline by itself; the run that it is the ceiling of does.
[[noreturn]] void RefuseCeiling(const analysis::RunView& view) {
  std::string fix = fmt::format("record the pipeline itself ('{} run {}') and name that run",
                                view.program, ShellWord(view.run.pipeline_path));
  for (const analysis::SiblingRow& sibling : view.siblings) {
    if (sibling.kind != "pipeline") continue;
    fix = fmt::format("name the run that it is the ceiling of: {} plan {}{}", view.program,
                      sibling.run_id, view.database_option);
    break;
  }
  throw Error(ExitCode::kInconclusive,
              "this run repeated one batch to measure the consumer without input, so there is "
              "nothing to size",
              fmt::format("run {}", view.run.run_id), fix);
}

// Without its target, which is in rows of the model.
analysis::Budget BudgetOf(const PlanOptions& options) {
  analysis::Budget budget;
  budget.max_threads = options.max_threads;
  if (options.cores > 0) budget.cores = options.cores;
  if (!options.memory.empty()) budget.memory_bytes = ParseBytes(options.memory, "--memory");
  return budget;
}

void WriteOutput(const std::string& path, bool force, const std::string& text) {
  AtomicFile file(path, force);
  file.Write(text);
  file.Commit();
  fmt::print(stderr, "wrote {}\n", Printable(path));
}

void PrintEmitted(const analysis::RunView& view, const PlanOptions& options,
                  const analysis::Emitted& emitted) {
  std::fputs(analysis::EmitPython(view, emitted).c_str(), stdout);
  if (emitted.target != analysis::EmitTarget::kDataLoader) return;
  fmt::print(
      "# or, without pasting: {} plan {}{} --emit dataloader -o {}; then in the program:\n"
      "#   loader = DataLoader(dataset, **headrace.apply(\"plan.json\", DataLoader, ...))\n",
      view.program, view.run.run_id, view.database_option,
      options.output.empty() ? "plan.json" : ShellWord(options.output));
}

int EmitFromOutside(const analysis::RunView& view, const PlanOptions& options) {
  if (!options.target.empty()) {
    throw Error(ExitCode::kInconclusive, "a run seen from outside has no rate to reach", "--target",
                "leave it out, or record operators (docs/python.md)");
  }
  const analysis::Emitted emitted = EmitFor(options.emit, view, BudgetOf(options));
  const std::string json = OutsidePlanJson(view, emitted);
  if (!options.output.empty()) WriteOutput(options.output, options.force, json);
  if (options.json) {
    std::fputs(json.c_str(), stdout);
  } else {
    PrintEmitted(view, options, emitted);
  }
  return static_cast<int>(ExitCode::kOk);
}

int Run(const PlanOptions& options) {
  // Refuses what is no run store.
  { collectors::ReadStore ready(options.database); }
  analysis::RunView view = analysis::LoadRun(options.database, options.run);
  view.program = ShellWord(ProgramName());
  if (options.database != DefaultDatabase())
    view.database_option = " --db " + ShellWord(options.database);
  if (view.run.kind == "ceiling") RefuseCeiling(view);
  if (!options.emit.empty() && view.operators.empty()) return EmitFromOutside(view, options);
  if (view.operators.empty()) {
    throw Error(
        ExitCode::kInconclusive,
        "this run has no operator accounts (profiled from outside), so there is nothing to size",
        fmt::format("run {}", view.run.run_id),
        "write accounts with the C header (docs/accounts.md), or record with 'headrace run'");
  }
  const analysis::PipelineModel model(view);
  if (!options.what_if.empty()) return PrintWhatIf(view, model, options);
  if (!options.nodes.empty()) {
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
    return PlanFleet(view, model, fleet);
  }
  if (!options.lp.empty() && options.lp == options.output) {
    throw Error(ExitCode::kUsage, "the plan and its program cannot be one file", "--lp",
                "name another file");
  }
  analysis::Budget budget = BudgetOf(options);
  if (!options.target.empty()) {
    budget.target = experiments::ParseTarget(options.target, model.demands().rows);
  }
  if (options.price > 0) budget.price_per_core_hour = options.price;
  if (options.watts > 0) budget.watts_per_core = options.watts;
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
  std::optional<analysis::Curve> over_cores;
  if (model.cores_known()) {
    const double cores = std::max(4.0, 2 * std::ceil(std::min(plan.settings.cores, 8.0)));
    over_cores =
        analysis::RateOverCores(predictor, {plan.settings, plan.scales}, static_cast<int>(cores));
  }
  const Planned about{view,
                      model,
                      options,
                      plan,
                      worths,
                      over_cores ? &*over_cores : nullptr,
                      budget.cache ? &*budget.cache : nullptr,
                      caches ? &*caches : nullptr,
                      emitted ? &*emitted : nullptr};
  const std::string json = PlanJson(about);
  if (!options.output.empty()) WriteOutput(options.output, options.force, json);
  if (!options.lp.empty()) WriteOutput(options.lp, options.force, plan.program.lp);
  if (options.json) {
    std::fputs(json.c_str(), stdout);
  } else if (emitted) {
    PrintEmitted(view, options, *emitted);
  } else {
    PrintTable(about);
  }
  return static_cast<int>(TooSlow(plan, options) ? ExitCode::kInconclusive : ExitCode::kOk);
}

HR_COMMAND(
    "plan",
    {.summary =
         "recommends threads, queues and caches for a recorded pipeline, with the rate to expect",
     .examples =
         "  headrace plan                               # for the latest run\n"
         "  headrace plan nightly --cores 8 --memory 4G -o plan.json\n"
         "  headrace plan latest --target 282000rows/s --json\n"
         "  headrace plan latest --what-if decode.parallelism=4 fetch.cost=0.5\n"
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
       command_line
           .AddOption("--cores", options->cores, "Plan for this many cores [those of the run]")
           ->Check(Positive);
       command_line.AddOption("--memory", options->memory,
                              "Stay within this much memory: 100M, 4GiB [the run's limit]");
       command_line.AddOption(
           "--target", options->target,
           "Reach this rate with the fewest changes: 500, 282000rows/s [as fast as "
           "the consumer can use]");
       command_line
           .AddOption("--max-threads", options->max_threads,
                      "Allow this many threads per stage [8, or 4 per core]")
           ->Check(Positive);
       command_line
           .AddOption("--price-per-core-hour", options->price,
                      "Buy the fewest whole cores that keep the rate, at this price each")
           ->Check(Positive);
       command_line
           .AddOption("--watts-per-core", options->watts,
                      "Then take the least power, at this much for a core in use")
           ->Check(Positive);
       command_line.AddFlag("--json", options->json,
                            "Print the plan as JSON (schema headrace.plan/1)");
       command_line.AddOption(
           "-o,--output", options->output,
           "Write the plan as JSON to this file; appears complete or not at all");
       command_line.AddOption(
           "--lp", options->lp,
           "Write the integer program to this file, in the LP format that CBC, GLPK and "
           "HiGHS read");
       command_line.AddFlag("-f,--force", options->force, "Replace the output files if they exist");
       command_line.AddFlag("--explain", options->explain,
                            "Print the objectives and the integer program, too");
       command_line
           .AddOption("--what-if", options->what_if,
                      "Predict the rate at these settings instead of planning: "
                      "STAGE.parallelism=4, STAGE.queue=16, cores=8, NAME.cost=0.5 (a stage, an "
                      "operator, a lock, a device or consumer at half its cost)")
           ->TypeName("KEY=VALUE...")
           ->Excludes({"--cores", "--memory", "--target", "--max-threads", "--output", "--lp",
                       "--explain", "--price-per-core-hour", "--watts-per-core"});
       AddFleetOptions(&command_line, &options->nodes, &options->format);
       AddCacheOptions(&command_line, &options->cache);
       AddEmitOption(&command_line, &options->emit);
       command_line.AddOption("--db", options->database,
                              "Read this database [$HEADRACE_DB or ./headrace.db]");
       return [options] { return Run(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
