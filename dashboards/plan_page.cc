#include "dashboards/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/advice/next_step.h"
#include "analysis/advice/tried.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/settings.h"
#include "base/error.h"
#include "base/units.h"
#include "dashboards/emit_page.h"
#include "dashboards/json_number.h"
#include "dashboards/rates.h"
#include "dashboards/worths.h"

namespace headrace::dashboards {
namespace {

using analysis::Allocation;
using Json = nlohmann::ordered_json;

bool ChangesNothing(const Allocation& plan) { return plan.changes.empty() && plan.caches.empty(); }

std::string TooSlowText(const PlanPage& page) {
  const Allocation& plan = page.plan;
  std::string budget;
  if (page.asked.cores > 0) budget = fmt::format("{:g} cores", page.asked.cores);
  if (!page.asked.memory.empty()) {
    budget += (budget.empty() ? "" : " and ") + page.asked.memory + " of memory";
  }
  return fmt::format(
      "infeasible at the present rate: {} allow {} at most, {:+.0f} % [{:.0f}, {:.0f}]; "
      "limited by {}\n\n",
      budget, FormatRate(plan.predicted, "batches"), 100 * (plan.predicted / plan.now - 1),
      100 * plan.gain_interval.low, 100 * plan.gain_interval.high,
      analysis::Describe(plan.limited_by));
}

std::string NoChangesText(const PlanPage& page) {
  return fmt::format("{}: {}\n",
                     page.plan.caches.empty() ? "nothing to change" : "nothing else to change",
                     TooSlow(page)       ? "no setting makes up for the smaller budget"
                     : page.asked.target ? "the target is met as it is"
                                         : "no setting gains 3 % or more");
}

std::string ChangesText(const std::vector<analysis::Change>& changes) {
  size_t knob = 4;
  for (const analysis::Change& change : changes) knob = std::max(knob, change.knob.size());
  std::string text = fmt::format("{:<{}}  {:>4}  {:>4}  {:>11}  {:>10}  why\n", "knob", knob, "now",
                                 "plan", "without it", "memory");
  for (const analysis::Change& change : changes) {
    text += fmt::format(
        "{:<{}}  {:>4}  {:>4}  {:>11}  {:>10}  {}\n", Printable(change.knob), knob, change.from,
        change.to, fmt::format("{:+.0f} %", 100 * (1 / (1 + change.gain) - 1)),
        change.memory_bytes
            ? (*change.memory_bytes < 0 ? "-" : "+") + FormatBytes(std::abs(*change.memory_bytes))
            : std::string("-"),
        change.why);
  }
  return text;
}

// The rates now and then, how sure that is, and what limits then.
std::string PredictionText(const Allocation& plan) {
  const analysis::Interval& range = plan.predicted_interval;
  std::string text = fmt::format("\nnow        {}\n", RatesText(plan.now, plan.rows_per_batch));
  text += fmt::format(
      "predicted  {}, {:+.0f} %\n",
      RatesText(plan.predicted, plan.rows_per_batch,
                fmt::format(" [{}, {}]", FormatCount(range.low), FormatCount(range.high))),
      100 * (plan.predicted / plan.now - 1));
  if (plan.handing_over_s > 0) {
    text += fmt::format("           {}\n", analysis::HandingOverWords(plan.handing_over_s));
  }
  if (!plan.unknown_store.empty()) {
    text += fmt::format("promise    none: what stage {} waits for may have no more to give\n",
                        Printable(plan.unknown_store));
  } else if (!ChangesNothing(plan)) {
    text += fmt::format("promise    nine of ten such plans reach {}; slower than now: {}\n",
                        FormatRate(plan.promise, "batches"),
                        plan.slower_probability.value_or(0) < 0.01
                            ? std::string("under 1 %")
                            : FormatPercent(*plan.slower_probability));
  }
  text += fmt::format("then limited by {}", analysis::Describe(plan.limited_by));
  if (std::isfinite(plan.next_bound)) {
    // A bound is computed apart from the rate, and may lie a little below it.
    if (plan.limited_by.bound >= plan.predicted) {
      text += fmt::format(" at {}", FormatRate(plan.limited_by.bound, "batches"));
    }
    text += fmt::format("; after that by {} at {}", analysis::Describe(plan.next),
                        FormatRate(plan.next_bound, "batches"));
  }
  text += "\n";
  if (plan.memory_bytes) {
    text +=
        fmt::format("memory of queues and batches in work: {}\n", FormatBytes(*plan.memory_bytes));
  }
  return text;
}

std::string OverCoresText(const analysis::Curve& curve) {
  std::string text = "  with";
  for (const auto& [number, rate] : curve.points) {
    text += fmt::format("{} {} core{} {}", number > 1 ? "," : "", number, number > 1 ? "s" : "",
                        FormatCount(rate));
  }
  return text + fmt::format(" batches/s: more than {} gain{} under 2 %\n", curve.knee,
                            curve.knee == 1 ? "s" : "");
}

std::string ObjectivesText(const PlanPage& page) {
  std::string text = "\nobjectives, in order, each at what the ones before reached\n";
  for (const analysis::SolvedObjective& objective : page.plan.program.objectives) {
    const analysis::Proof& proof = objective.proof;
    text += fmt::format("  least {:<32} {:>10.5g} {:<8} {} in {} (limit {:g} s)\n", objective.what,
                        objective.value, objective.unit,
                        proof.optimal
                            ? std::string("proven optimal, gap 0,")
                            : fmt::format("within {} of the least,", FormatPercent(proof.gap)),
                        FormatDuration(proof.seconds * 1e9), proof.max_seconds);
  }
  if (!page.asked.price) text += "  price: not in force; --price-per-core-hour gives one\n";
  if (!page.asked.power) text += "  power: not in force; --watts-per-core gives it\n";
  return text + fmt::format("copies of subgraphs: none to choose; {}\n", page.plan.no_copies);
}

std::string ProgramText(const analysis::HostReport& program) {
  return fmt::format(
      "\nprogram; ways to run a stage that cannot be part of a best answer are left out{}:\n{}",
      program.exact_batch_s
          ? fmt::format("; the exact max-min method, which needs no program, finds {}",
                        FormatRate(1 / *program.exact_batch_s, "batches"))
          : std::string(),
      program.words);
}

// What comes next where the pipeline is a program of the user's own: what the changes are called
// there, the lines to paste where they can be printed, else how to see what they brought.
std::string OwnProgramText(const PlanPage& page) {
  const analysis::RunView& run = page.run;
  if (analysis::IsOfService(run.run)) {
    std::string settings;
    for (const analysis::Change& change : page.plan.changes)
      settings += fmt::format(" --set {}={}", change.knob, change.to);
    return fmt::format("\nnext: start the job with{}\n", settings);
  }
  const std::string changes = analysis::ChangeWords(run, page.plan);
  if (changes.empty()) return "";
  const std::string text =
      fmt::format("\nin {}: {}\n", Printable(run.run.program), Printable(changes));
  if (const std::string emit = analysis::EmitOption(run);
      !emit.empty() && !page.asked.price && !page.asked.power)
    return text + fmt::format("next: {} plan {}{}{}{}\n", run.program, run.run.run_id,
                              page.asked.options, emit, run.database_option);
  const std::string command = analysis::CommandWords(run.run);
  return text + fmt::format("next: make the change, then: {} profile {}{}{}\n", run.program,
                            run.database_option.empty() ? "" : run.database_option.substr(1) + " ",
                            command.empty() ? "-p PID -d 10s" : "-- ", command);
}

// The command that comes next; empty where there is nothing to do, or nothing that helps.
std::string NextText(const PlanPage& page) {
  const analysis::RunView& run = page.run;
  if (ChangesNothing(page.plan) || TooSlow(page)) return "";
  using Outcome = analysis::MeasuredPlan::Outcome;
  const std::optional<analysis::MeasuredPlan> measured =
      page.asked.cores ? std::nullopt : analysis::MeasuredBefore(run, page.plan);
  if (measured && measured->outcome == Outcome::kNotFaster) return "";
  const bool open = measured ? measured->outcome == Outcome::kCannotTell : !page.plan.shown();
  if (const std::string compare = analysis::CompareCommand(run, page.plan);
      open && !compare.empty()) {
    return fmt::format("\n{}:\nnext: {}\n",
                       measured ? "The plan may not help: so few pairs cannot tell. More can"
                                : "The plan may not help: its interval includes 0. A comparison "
                                  "decides",
                       compare);
  }
  if (run.run.pipeline_path.empty()) {
    return OwnProgramText(page);
  }
  const std::string& output = page.asked.output;
  const std::string file = output.empty() ? "plan.json" : ShellWord(output);
  std::string text = "\n";
  if (output.empty()) {
    text += fmt::format("next: {} plan {}{}{} -o {}\n", run.program, run.run.run_id,
                        page.asked.options, run.database_option, file);
  }
  return text + fmt::format("next: {} run {}{} --plan {}\n", run.program,
                            analysis::PipelineWord(run.run), run.database_option, file);
}

// The plan holds for the pipeline as it was run, with what that run had set.
Json PlanSettingsJson(const PlanPage& page) {
  Json settings = Json::object();
  for (const std::string& setting : analysis::RecordedSettings(page.run.run)) {
    if (const size_t at = setting.find('='); at != std::string::npos) {
      settings[setting.substr(0, at)] = setting.substr(at + 1);
    }
  }
  for (const analysis::Change& change : page.plan.changes) settings[change.knob] = change.to;
  if (page.cache != nullptr) PutCacheSettings(*page.cache, &settings);
  return settings;
}

Json ChangesJson(const std::vector<analysis::Change>& changes) {
  Json out = Json::array();
  for (const analysis::Change& change : changes) {
    out.push_back({{"knob", change.knob},
                   {"from", change.from},
                   {"to", change.to},
                   {"why", change.why},
                   {"gain_ratio", NumberOrNull(change.gain)},
                   {"memory_change_bytes", WholeOrNull(change.memory_bytes)}});
  }
  return out;
}

// The rates now and then, how sure that is, and what limits then.
void PutPrediction(const Allocation& plan, Json* out) {
  (*out)["now"] = RatesJson(plan.now, plan.rows_per_batch);
  const Json then = RatesJson(plan.predicted, plan.rows_per_batch);
  (*out)["predicted"] = {{"batches_per_second", then["batches_per_second"]},
                         {"low", NumberOrNull(plan.predicted_interval.low)},
                         {"high", NumberOrNull(plan.predicted_interval.high)},
                         {"level_ratio", 0.9},
                         {"rows_per_second", then["rows_per_second"]}};
  (*out)["gain_ratio"] = NumberOrNull(plan.predicted / plan.now - 1);
  (*out)["gain_interval"] = IntervalJson(plan.gain_interval, 0.9);
  (*out)["promise"] = {{"batches_per_second", NumberOrNull(plan.promise)}, {"probability", 0.9}};
  (*out)["risk"] = {{"slower_probability", NumberOrNull(plan.slower_probability)}};
  (*out)["then_limited_by"] = plan.limited_by.name;
  (*out)["then_limited_by_kind"] = plan.limited_by.kind_name();
  (*out)["memory_bytes"] = WholeOrNull(plan.memory_bytes);
  (*out)["memory_change_bytes"] = WholeOrNull(plan.memory_change_bytes);
}

void PutCache(const PlanPage& page, Json* out) {
  (*out)["fill_batches_per_second"] = NumberOrNull(page.plan.predicted_fill);
  (*out)["total_seconds"] = NumberOrNull(page.plan.total_s);
  (*out)["now_total_seconds"] = NumberOrNull(page.plan.now_total_s);
  (*out)["cache"] = CacheJson(*page.cache);
}

Json ProofJson(const analysis::Proof& proof) {
  return {{"optimal", proof.optimal},
          {"gap_ratio", proof.gap},
          {"seconds", proof.seconds},
          {"limit_seconds", proof.max_seconds}};
}

Json ObjectivesJson(const std::vector<analysis::SolvedObjective>& objectives) {
  Json out = Json::array();
  for (const analysis::SolvedObjective& objective : objectives) {
    Json one = {{"least", objective.what},
                {"value", NumberOrNull(objective.value)},
                {"unit", objective.unit}};
    one.update(ProofJson(objective.proof));
    out.push_back(std::move(one));
  }
  return out;
}

void PutOverCores(const analysis::Curve* over_cores, Json* out) {
  Json& points = (*out)["rate_over_cores"] = Json::array();
  if (over_cores == nullptr) return;
  for (const auto& [number, rate] : over_cores->points)
    points.push_back({{"cores", number}, {"batches_per_second", rate}});
  (*out)["knee_cores"] = over_cores->knee;
}

}  // namespace

bool TooSlow(const PlanPage& page) {
  const bool smaller = page.asked.cores > 0 || !page.asked.memory.empty();
  return smaller && page.plan.predicted_interval.high < page.plan.now;
}

std::string PlanText(const PlanPage& page) {
  const Allocation& plan = page.plan;
  const PlanAsked& asked = page.asked;
  std::string text;
  if (TooSlow(page)) text += TooSlowText(page);
  if (page.cache != nullptr) text += CacheVerdictText(*page.cache);
  text += plan.changes.empty() ? NoChangesText(page) : ChangesText(plan.changes);
  text += PredictionText(plan);
  // What was tried had the run's cores.
  const std::string short_of = page.asked.cores ? "" : analysis::WhatWasTried(page.run, plan);
  if (!short_of.empty()) {
    text += (analysis::MeasuredBefore(page.run, plan) ? "measured   " : "tried      ") + short_of;
    text += "\n";
  }
  text += WorthsText(page.worths);
  if (page.over_cores != nullptr) text += OverCoresText(*page.over_cores);
  if (page.cache != nullptr) text += CacheTableText(*page.cache);
  if (asked.explain || asked.price || asked.power) text += ObjectivesText(page);
  if (asked.explain) text += ProgramText(plan.program);
  return text + NextText(page);
}

std::string PlanJson(const PlanPage& page) {
  const Allocation& plan = page.plan;
  const std::vector<analysis::SolvedObjective>& objectives = plan.program.objectives;
  Json out;
  out["schema"] = "headrace.plan/1";
  out["run"] = page.run.run.run_id;
  out["run_name"] = page.run.run.name;
  out["pipeline"] = page.run.run.pipeline_path;
  // Set only if the plan is for another number of cores than the run had.
  out["cores"] = page.asked.cores > 0 ? Json(page.asked.cores) : Json(nullptr);
  out["settings"] = PlanSettingsJson(page);
  out["changes"] = ChangesJson(plan.changes);
  out["caches"] = page.cache != nullptr ? PlannedCachesJson(*page.cache) : Json::array();
  PutPrediction(plan, &out);
  if (page.cache != nullptr) PutCache(page, &out);
  out["solver"] = ProofJson(objectives.empty() ? analysis::Proof{} : objectives[0].proof);
  out["objectives"] = ObjectivesJson(objectives);
  out["cores_used"] = NumberOrNull(plan.cores_used);
  out["watts"] = NumberOrNull(plan.watts);
  out["worth_of_more"] = WorthsJson(page.worths);
  PutOverCores(page.over_cores, &out);
  if (page.emitted != nullptr) out["emit"] = EmitJson(page.run, *page.emitted);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::dashboards
