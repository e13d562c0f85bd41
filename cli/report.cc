// headrace report: the verdict of a recorded run, then the evidence.
#include "dashboards/report/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "analysis/run_view.h"
#include "analysis/statements.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/verdict.h"
#include "collectors/store/store.h"
#include "dashboards/render/render.h"

namespace headrace::cli {
namespace {

struct ReportOptions {
  std::string run = "latest", format = "text", output, database = DefaultDatabase();
  bool json = false, force = false;
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
  // Refuses what is no run store, and marks a run whose collector died as interrupted.
  { collectors::ReadStore ready(options.database); }
  analysis::RunView view = analysis::LoadRun(options.database, options.run);
  view.program = ShellWord(ProgramName());
  if (options.database != DefaultDatabase())
    view.database_option = " --db " + ShellWord(options.database);
  view.core_hour_price = options.core_hour_price;
  const analysis::Statements statements = analysis::MakeStatements(view);
  const dashboards::Report report = dashboards::MakeReport(view, statements);
  const std::string format = options.json ? "json" : options.format;
  std::string text;
  if (format == "json") {
    text = dashboards::RenderJson(report, view);
  } else if (format == "md") {
    text = dashboards::RenderMarkdown(report);
  } else if (format == "html") {
    text = dashboards::RenderHtml(report);
  } else {
    const int width = options.output.empty() ? TerminalWidth(STDOUT_FILENO) : 120;
    text = dashboards::RenderText(report, {width, AsciiOnly()});
    if (view.operators.empty()) {
      // Without accounts there is nothing to plan; the store has all that was seen.
      text += fmt::format(
          "\nnext: {} query{} \"SELECT metric, process, thread, cause, value FROM "
          "measurement_summary WHERE run_id = {} AND pid IS NOT NULL\"\n",
          view.program, view.database_option, view.run.run_id);
    } else {
      text += fmt::format("\nnext: {} plan {}{}\n", view.program, view.run.run_id,
                          view.database_option);
    }
  }
  if (options.output.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    AtomicFile file(options.output, options.force);
    file.Write(text);
    file.Commit();
    fmt::print(stderr, "wrote {}\n", options.output);
  }
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
       app.add_option("--format", options->format, "Write text, md, html or json")
           ->check(CLI::IsMember({"text", "md", "html", "json"}))
           ->capture_default_str();
       app.add_flag("--json", options->json, "Write one JSON object (schema headrace.report/1)");
       app.add_option(
           "-o,--output", options->output,
           "Write to this file instead of standard output; appears complete or not at all");
       app.add_flag("-f,--force", options->force, "Replace the output file if it exists");
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
