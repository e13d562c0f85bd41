// headrace report: the verdict of a recorded run, then the evidence.
#include "dashboards/report/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "analysis/run_view.h"
#include "analysis/statements.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/page_output.h"
#include "cli/verdict.h"
#include "collectors/store/store.h"
#include "dashboards/render/render.h"

namespace headrace::cli {
namespace {

struct ReportOptions {
  std::string run = "latest", database = DefaultDatabase();
  PageOutput page;
  std::optional<double> core_hour_price;
};

// Empty for a price, else why it is none: not even a rate may come of "nan".
std::string Price(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && value >= 0 && std::isfinite(value)) return "";
  return "'" + Printable(text, 60) + "' is not a price of 0 or more";
}

int Run(const ReportOptions& options) {
  // Refuses what is no run store.
  { collectors::ReadStore ready(options.database); }
  analysis::RunView view = analysis::LoadRun(options.database, options.run);
  view.program = ShellWord(ProgramName());
  if (options.database != DefaultDatabase())
    view.database_option = " --db " + ShellWord(options.database);
  view.core_hour_price = options.core_hour_price;
  const analysis::Statements statements = analysis::MakeStatements(view);
  const dashboards::Report report = dashboards::MakeReport(view, statements);
  // Without accounts there is nothing to plan; the store has all that was seen.
  const std::string next =
      view.operators.empty()
          ? fmt::format(
                "\nnext: {} query{} \"SELECT metric, process, thread, cause, value FROM "
                "measurement_summary WHERE run_id = {} AND pid IS NOT NULL\"\n",
                view.program, view.database_option, view.run.run_id)
          : fmt::format("\nnext: {} plan {}{}\n", view.program, view.run.run_id,
                        view.database_option);
  WritePage(
      options.page, report, [&] { return dashboards::RenderJson(report, view); }, next);
  return static_cast<int>(report.decided ? ExitCode::kOk : ExitCode::kInconclusive);
}

HR_COMMAND(
    "report",
    {.summary = "says what limits a recorded run, and what to change",
     .examples =
         "  headrace report                             # the latest run: verdict, then evidence\n"
         "  headrace report nightly --format md -o nightly.md\n"
         "  headrace report latest --json | jq '.findings[0]'\n",
     .exit_codes = "0 ok, 4 undecided or withheld (says what to measure), 5 not a headrace "
                   "database or no such run",
     .next = "headrace plan RUN",
     .configure = [](CLI::App& app) -> std::function<int()> {
       auto options = std::make_shared<ReportOptions>();
       app.add_option("RUN", options->run, "Report this run: an id, a name, or latest")
           ->capture_default_str();
       AddFormatOptions(&app, &options->page, "Write one JSON object (schema headrace.report/1)");
       app.add_option(
           "-o,--output", options->page.file,
           "Write to this file instead of standard output; appears complete or not at all");
       app.add_flag("-f,--force", options->page.replace, "Replace the output file if it exists");
       app.add_option("--core-hour-price", options->core_hour_price,
                      "Say what a million rows cost at this price of one core for one hour")
           ->type_name("P")
           ->check(Price);
       app.add_option("--db", options->database,
                      "Read this database [$HEADRACE_DB or ./headrace.db]");
       return [options] { return Run(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
