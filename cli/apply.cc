// headrace apply: runs a pipeline as it was recorded and with the recommended plan, in turns, and
// says what the plan gained and what limits now.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/advice/next_step.h"
#include "analysis/advice/statements.h"
#include "analysis/comparison/comparison.h"
#include "analysis/run/read_run.h"
#include "analysis/run/run_view.h"
#include "analysis/run/settings.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/page_output.h"
#include "cli/verdict.h"
#include "collectors/store/store.h"
#include "dashboards/report/first_page.h"
#include "dashboards/report/limit_words.h"
#include "dashboards/report/page_words.h"
#include "dashboards/report/wording.h"
#include "dashboards/terminal/progress.h"
#include "experiments/ab_runner.h"
#include "experiments/compared_sides.h"
#include "experiments/paired_comparison.h"
#include "reader/pipeline/spec.h"

namespace headrace::cli {
namespace {

struct ApplyOptions {
  std::string run = "latest", database = DefaultDatabase();
  size_t pairs = 4;
  std::string duration = "2s";
  PageOutput page;
  bool quiet = false;
};

// The run, what is said of it, and the settings that the plan changes.
struct Recommended {
  analysis::RunView view;
  analysis::Statements statements;
  std::vector<std::string> settings;  // KEY=VALUE

  const analysis::Allocation& plan() const { return *statements.allocation; }
};

// Of a run that cannot be run again here. Without operators there is no plan either.
std::string WhatWorks(const analysis::RunView& view) {
  if (!view.operators.empty()) {
    return fmt::format("'{} plan {}{}{}' says what to set there", view.program, view.run.run_id,
                       analysis::EmitOption(view), view.database_option);
  }
  return fmt::format(
      "'{0} report {1}{2}' says what limits it; '{0} compare --a-cmd OLD --b-cmd NEW{2}' measures "
      "what a change to its code gains",
      view.program, view.run.run_id, view.database_option);
}

// Throws Error for a run that has no plan, or none that this program can apply.
void Recommend(const ApplyOptions& options, Recommended* found) {
  { collectors::ReadStore ready(options.database); }
  found->view = analysis::LoadRun(options.database, options.run);
  analysis::RunView& view = found->view;
  view.program = ShellWord(ProgramName());
  view.database_option = DatabaseOption(options.database);
  const std::string where = fmt::format("run {} '{}'", view.run.run_id, Printable(view.run.name));
  if (const std::string why = analysis::CannotApply(view.run); !why.empty()) {
    throw Error(ExitCode::kUsage, "cannot be run again here: " + why, where, WhatWorks(view));
  }
  found->statements = analysis::MakeStatements(view);
  if (!found->statements.allocation) {
    throw Error(ExitCode::kInconclusive, "has no plan: " + found->statements.withheld, where,
                "record it for longer");
  }
  for (const analysis::Change& change : found->plan().changes) {
    found->settings.push_back(fmt::format("{}={}", change.knob, change.to));
  }
}

experiments::AbSide SideOf(const std::string& label, const Recommended& recommended, bool planned) {
  experiments::AbSide side;
  side.label = label;
  side.pipeline = recommended.view.run.pipeline_path;
  side.settings = analysis::RecordedSettings(recommended.view.run);
  if (planned) {
    side.settings.insert(side.settings.end(), recommended.settings.begin(),
                         recommended.settings.end());
  }
  // A mistake shows before the first run, not after it.
  const reader::PipelineSpec spec = experiments::LoadSpecOf(side);
  if (spec.delivery.to.kind != reader::DeliveryKind::kInline) {
    throw Error(ExitCode::kUsage,
                "delivers its batches to another process, which is not started here", side.pipeline,
                "apply the plan with 'headrace run --plan'");
  }
  return side;
}

std::string Percent(double log_ratio) {
  return fmt::format("{:+.0f} %", 100 * std::expm1(log_ratio));
}

// Without the number of pairs.
std::string RepeatCommand(const ApplyOptions& options, const Recommended& recommended) {
  return fmt::format("{} apply {} --duration {}{}", recommended.view.program,
                     recommended.view.run.run_id, ShellWord(options.duration),
                     recommended.view.database_option);
}

// What the last run with the plan shows: the trainer's wait and the limit now.
void AddNow(const Recommended& recommended, const ApplyOptions& options, int64_t run_id,
            dashboards::FirstPage* page) {
  const analysis::RunView now = analysis::LoadRun(options.database, std::to_string(run_id));
  const analysis::Statements statements = analysis::MakeStatements(now);
  if (const auto load = dashboards::OtherLoadOf(now, statements)) {
    page->conditional = true;
    page->conditions.push_back(dashboards::BusySentence(*load));
  }
  if (!statements.bottleneck || !recommended.statements.model) return;
  if (dashboards::HasTrainer(*statements.model)) {
    page->lines.push_back(
        {"waited",
         fmt::format("{} of each step in run {}, {} with the plan",
                     FormatPercent(recommended.statements.model->stall_ratio()),
                     recommended.view.run.run_id, FormatPercent(statements.model->stall_ratio()))});
  }
  page->lines.push_back(
      {"limit", "now " + dashboards::LimitLine(*statements.model, *statements.bottleneck)});
}

// "The plan changed the rate by +96 % [+90, +101] in 4 pairs of runs."
std::string GainSentence(const analysis::ComparedMetric& rate, size_t pairs) {
  if (!rate.change) return "What the plan changed is not known: " + rate.reason + ".";
  std::string interval;
  if (std::isfinite(rate.interval.low) && std::isfinite(rate.interval.high)) {
    interval = fmt::format(" [{:+.0f}, {:+.0f}]", 100 * std::expm1(rate.interval.low),
                           100 * std::expm1(rate.interval.high));
  }
  return fmt::format("The plan changed the rate by {}{} in {} pairs of runs.",
                     Percent(*rate.change), interval, pairs);
}

// Whether the pipeline file says something else by now.
bool FileChanged(const analysis::RunRow& run) {
  try {
    return !run.pipeline_text.empty() && ReadWholeFile(run.pipeline_path) != run.pipeline_text;
  } catch (const Error&) {
    return false;  // that it cannot be read is said where it is run
  }
}

dashboards::Report MakePage(const ApplyOptions& options, const Recommended& recommended,
                            const dashboards::ComparisonPage& compared) {
  const analysis::Comparison& comparison = compared.comparison;
  const analysis::ComparedMetric& rate = comparison.metrics[0];
  const analysis::Allocation& plan = recommended.plan();
  dashboards::Report report;
  report.title = fmt::format("run {} '{}', as it was and with its plan",
                             recommended.view.run.run_id, recommended.view.run.name);
  dashboards::FirstPage& page = report.first;
  switch (rate.verdict) {
    case analysis::ChangeVerdict::kFaster:
      page.badge = "FASTER";
      page.severity = dashboards::Severity::kGood;
      break;
    case analysis::ChangeVerdict::kSlower:
      page.badge = "SLOWER";
      page.severity = dashboards::Severity::kHigh;
      break;
    case analysis::ChangeVerdict::kSame:
      page.badge = "NO CHANGE";
      break;
    case analysis::ChangeVerdict::kCannotTell:
      page.badge = "CANNOT TELL";
      report.decided = false;
      break;
  }
  page.verdict = GainSentence(rate, comparison.units);
  if (FileChanged(recommended.view.run)) {
    page.conditions.push_back(fmt::format("{} is not what it was when run {} was recorded.",
                                          recommended.view.run.pipeline_path,
                                          recommended.view.run.run_id));
  }
  std::string changes;
  for (const analysis::Change& change : plan.changes) {
    changes += fmt::format("{}{} {} -> {}", changes.empty() ? "" : ", ", change.knob, change.from,
                           change.to);
  }
  page.lines.push_back({"plan", changes});
  page.lines.push_back({"before", fmt::format("{} (median)", FormatRate(rate.a, "rows"))});
  page.lines.push_back(
      {"after", fmt::format("{} (median), predicted {:+.0f} % {}", FormatRate(rate.b, "rows"),
                            100 * (plan.predicted / plan.now - 1),
                            dashboards::PercentInterval(plan.gain_interval))});
  AddNow(recommended, options, compared.input.b.samples.back().run_id, &page);
  if (rate.verdict == analysis::ChangeVerdict::kFaster) {
    page.lines.push_back(
        {"keep", analysis::RunCommand(recommended.view, recommended.settings), true});
  } else if (rate.verdict == analysis::ChangeVerdict::kCannotTell) {
    page.lines.push_back(
        {"check",
         fmt::format("{} --pairs {}", RepeatCommand(options, recommended), 3 * options.pairs),
         true});
  }
  page.lines.push_back({"detail",
                        fmt::format("{} compare --show {}{}", recommended.view.program,
                                    compared.notes.comparison_id, recommended.view.database_option),
                        true});
  return report;
}

// What is known before anything ran.
nlohmann::ordered_json JsonOf(const Recommended& recommended) {
  nlohmann::ordered_json out;
  out["schema"] = "headrace.apply/1";
  out["run"] = recommended.view.run.run_id;
  out["pipeline"] = recommended.view.run.pipeline_path;
  out["settings"] = recommended.settings;
  return out;
}

std::string TextOf(const nlohmann::ordered_json& out) {
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string Json(const Recommended& recommended, const analysis::Comparison& comparison,
                 const dashboards::Report& report) {
  const analysis::ComparedMetric& rate = comparison.metrics[0];
  const analysis::Allocation& plan = recommended.plan();
  const auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
  };
  nlohmann::ordered_json out = JsonOf(recommended);
  out["pairs_count"] = comparison.units;
  out["verdict"] = rate.word;
  out["before_rows_per_second"] = number(rate.a);
  out["after_rows_per_second"] = number(rate.b);
  out["gain_ratio"] = rate.change ? number(std::expm1(*rate.change)) : nullptr;
  out["gain_ratio_low"] = number(std::expm1(rate.interval.low));
  out["gain_ratio_high"] = number(std::expm1(rate.interval.high));
  out["predicted_gain_ratio"] = number(plan.predicted / plan.now - 1);
  out["predicted_gain_ratio_low"] = number(plan.gain_interval.low);
  out["predicted_gain_ratio_high"] = number(plan.gain_interval.high);
  out["conditional"] = report.first.conditional;
  return TextOf(out);
}

// Nothing is run: the page of the run says what limits it, and why no setting helps.
int NothingToApply(const ApplyOptions& options, const Recommended& recommended) {
  dashboards::Report report;
  report.title = fmt::format("run {} '{}'", recommended.view.run.run_id, recommended.view.run.name);
  report.first = dashboards::MakeFirstPage(recommended.view, recommended.statements);
  report.first.conditions.insert(report.first.conditions.begin(),
                                 "Nothing to apply: no setting is known to be faster.");
  WritePage(options.page, report, [&] {
    nlohmann::ordered_json out = JsonOf(recommended);
    out["pairs_count"] = 0;
    out["verdict"] = "nothing to apply";
    return TextOf(out);
  });
  return static_cast<int>(ExitCode::kOk);
}

// "apply-3"; "apply-3-2" where runs are called that already.
std::string SessionName(const ApplyOptions& options, int64_t run_id) {
  collectors::ReadStore store(options.database);
  const std::string name = fmt::format("apply-{}", run_id);
  for (int64_t i = 1;; ++i) {
    const std::string session = i == 1 ? name : fmt::format("{}-{}", name, i);
    const collectors::SqlResult runs = store.Query(
        fmt::format("SELECT 1 FROM run_summary WHERE name LIKE '{}-before-%' LIMIT 1", session));
    if (runs.rows.empty()) return session;
  }
}

int Exit(const analysis::Comparison& comparison) {
  switch (comparison.metrics[0].verdict) {
    case analysis::ChangeVerdict::kFaster:
      return static_cast<int>(ExitCode::kOk);
    case analysis::ChangeVerdict::kCannotTell:
      return static_cast<int>(ExitCode::kInconclusive);
    default:
      return static_cast<int>(ExitCode::kGateFailed);
  }
}

int Apply(const ApplyOptions& options) {
  const int64_t duration_ns = ParseDuration(options.duration, "--duration");
  if (duration_ns <= 0)
    throw Error(ExitCode::kUsage, "must be longer than 0", "--duration", "try 2s, 10s, 1m");
  Recommended recommended;
  {
    const dashboards::TransientNote note("making the plan ...");
    Recommend(options, &recommended);
  }
  if (recommended.settings.empty()) {
    return NothingToApply(options, recommended);
  }
  experiments::PairedOptions paired;
  paired.sides.a = SideOf("before", recommended, false);
  paired.sides.b = SideOf("after", recommended, true);
  paired.sides.a_what = fmt::format("run {} as recorded", recommended.view.run.run_id);
  for (const std::string& setting : recommended.settings)
    paired.sides.b_what += (paired.sides.b_what.empty() ? "" : " ") + setting;
  paired.repeat = RepeatCommand(options, recommended);
  paired.runs.pairs = options.pairs;
  paired.runs.duration_ns = duration_ns;
  paired.runs.database = options.database;
  paired.runs.name = SessionName(options, recommended.view.run.run_id);
  paired.runs.quiet = options.quiet;
  if (!options.quiet) {
    fmt::print(stderr, "applies {}; runs it with and without, {} times each\n", paired.sides.b_what,
               options.pairs);
  }
  const experiments::PairedEnd end = experiments::ComparePairs(paired);
  if (!end.page) {
    fmt::print(stderr, "stopped after {} of {} pairs; their runs are in {}\n", end.pairs,
               options.pairs, options.database);
    return static_cast<int>(ExitCode::kInterrupted);
  }
  const analysis::Comparison& comparison = end.page->comparison;
  const dashboards::Report report = MakePage(options, recommended, *end.page);
  WritePage(options.page, report, [&] { return Json(recommended, comparison, report); });
  return Exit(comparison);
}

HR_COMMAND(
    "apply",
    {.summary = "runs the recommended plan and compares it with before",
     .examples = "  headrace apply                      # the plan of the latest run, about 25 s\n"
                 "  headrace apply nightly --pairs 10   # surer\n",
     .exit_codes = "0 the plan is faster, or there is nothing to change; 2 not a run of a pipeline "
                   "file; 3 it is not faster; 4 cannot tell, or no plan; 5 no such run; 130 "
                   "interrupted; else that of a run that failed (headrace run --help)",
     .next = "headrace run PIPELINE --set ... (it prints the command)",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<ApplyOptions>();
       command_line
           .AddOption("RUN", options->run, "Apply the plan of this run: an id, a name, or latest")
           ->ShowDefault();
       command_line
           .AddOption("--pairs", options->pairs, "Run it this many times with and without the plan")
           ->Check(InRange(size_t{2}, size_t{1000}))
           ->TypeName("N")
           ->ShowDefault();
       command_line.AddOption("-d,--duration", options->duration, "Run each time this long")
           ->ShowDefault();
       AddFormatOptions(&command_line, &options->page,
                        "Write one JSON object (schema headrace.apply/1)");
       command_line.AddOption(
           "-o,--output", options->page.file,
           "Write to this file instead of standard output; appears complete or not at "
           "all");
       command_line.AddFlag("-f,--force", options->page.replace,
                            "Replace the output file if it exists");
       command_line.AddOption("--db", options->database, "Read and record in this database");
       command_line.AddFlag("-q,--quiet", options->quiet, "No progress");
       return [options] { return Apply(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
