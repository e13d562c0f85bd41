// headrace report: the first page of a recorded run; the evidence by name, whole, or as a page.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "analysis/advice/statements.h"
#include "analysis/run/read_run.h"
#include "analysis/run/run_view.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/page_output.h"
#include "cli/report_fleet.h"
#include "cli/report_part.h"
#include "cli/verdict.h"
#include "collectors/store/store.h"
#include "dashboards/pages/report_file.h"
#include "dashboards/render/render.h"
#include "dashboards/report/make_report.h"
#include "dashboards/terminal/progress.h"
#include "experiments/service_fleet.h"

namespace headrace::cli {
namespace {

struct ReportOptions {
  std::string run = "latest", database = DefaultDatabase();
  std::string fleet;
  std::vector<std::string> sections;
  CommandLine* command_line = nullptr;
  bool full = false, open = false, no_pager = false;
  RunPart part;
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

// The next command after all evidence. Without accounts there is nothing to plan; the store has all
// that was seen.
std::string Next(const analysis::RunView& view) {
  return view.operators.empty()
             ? fmt::format(
                   "\nnext: {} query{} \"SELECT metric, process, thread, cause, value FROM "
                   "measurement_summary WHERE run_id = {} AND pid IS NOT NULL\"\n",
                   view.program, view.database_option, view.run.run_id)
             : fmt::format("\nnext: {} plan {}{}\n", view.program, view.run.run_id,
                           view.database_option);
}

// Writes the page as HTML into a folder of its own that only this user may read, and shows it in
// the browser where there is one.
void OpenPage(const std::string& html, int64_t run_id) {
  const char* temporary = std::getenv("TMPDIR");
  std::string folder =
      std::string(temporary != nullptr && *temporary != '\0' ? temporary : "/tmp") +
      "/headrace-report-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw ErrnoError(errno, "create", folder);
  const std::string path = fmt::format("{}/run-{}.html", folder, run_id);
  AtomicFile file(path, false);
  file.Write(html);
  file.Commit();
  fmt::print("{}\n", path);
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) {
    fmt::print(stderr, "there is no display here: open the file in a browser\n");
    return;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    execlp("xdg-open", "xdg-open", path.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  if (pid > 0) waitpid(pid, &status, 0);
  if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fmt::print(stderr, "no browser could be started (xdg-open): open the file yourself\n");
  }
}

// --since, --until: of the windows between them.
int RunOnPart(const ReportOptions& options) {
  if (options.open || (options.page.format == "html" && !options.page.json))
    throw Error(ExitCode::kUsage, "pages are of whole runs", "--since",
                "leave out --open and --format html; charts show a part when they are zoomed");
  analysis::RunTimes times = TimesOf(options.part);
  analysis::RunView view = analysis::LoadRun(options.database, options.run, times);
  view.program = ShellWord(ProgramName());
  view.database_option = DatabaseOption(options.database);
  view.core_hour_price = options.core_hour_price;
  view = analysis::PartOf(view, &times);
  const analysis::Statements statements = analysis::MakeStatements(view);
  const dashboards::Report report = ReportOfPart(times, view, statements, options.sections);
  const int code = static_cast<int>(report.decided ? ExitCode::kOk : ExitCode::kInconclusive);
  PageOutput page = options.page;
  page.first_only = !options.full && options.sections.empty() && page.file.empty();
  page.pager = !options.no_pager;
  WritePage(page, report, [&] { return dashboards::RenderJson(report, view); });
  return code;
}

// --fleet: of a job of the preprocessing service.
int RunOnFleet(const ReportOptions& options) {
  for (const char* name : {"RUN", "--open", "--since", "--until", "--core-hour-price"})
    if (options.command_line->Count(name) > 0)
      throw Error(ExitCode::kUsage, "is not for the report of a job", name, "leave out --fleet");
  PageOutput page = options.page;
  page.first_only = !options.full && page.file.empty();
  page.pager = !options.no_pager;
  return ReportFleet(
      options.fleet,
      options.command_line->Count("--db") > 0 ? options.database : experiments::kFleetFile, page);
}

int Run(const ReportOptions& options) {
  if (!options.fleet.empty()) return RunOnFleet(options);
  // Refuses what is no run store.
  { collectors::ReadStore ready(options.database); }
  if (!options.part.whole()) return RunOnPart(options);
  // A page may be read elsewhere than where it was made.
  const bool as_page = options.open || (options.page.format == "html" && !options.page.json);
  const dashboards::LoadOptions load{.program = as_page ? "headrace" : ShellWord(ProgramName()),
                                     .database_option = DatabaseOption(options.database),
                                     .core_hour_price = options.core_hour_price};
  std::optional<dashboards::TransientNote> note("looking for what limits it ...");
  const std::shared_ptr<const dashboards::LoadedRun> loaded =
      dashboards::LoadForPages(options.database, options.run, load);
  note.reset();
  const analysis::RunView& view = loaded->run;
  dashboards::Report report = loaded->report;
  const int code = static_cast<int>(report.decided ? ExitCode::kOk : ExitCode::kInconclusive);
  const auto html = [&] { return dashboards::ReportFile(options.database, loaded); };
  if (options.open) {
    OpenPage(html(), view.run.run_id);
    return code;
  }
  PageOutput page = options.page;
  page.first_only = !options.full && options.sections.empty() && page.file.empty();
  page.pager = !options.no_pager;
  if (options.sections.empty()) page.html = html;
  if (!options.sections.empty()) report = dashboards::OnlySections(report, options.sections);
  WritePage(
      page, report, [&] { return dashboards::RenderJson(report, view); },
      options.full ? Next(view) : "");
  return code;
}

std::string Names() {
  std::string text;
  for (const std::string& name : dashboards::SectionNames()) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

HR_COMMAND(
    "report",
    {.summary = "says what limits a recorded run, and what to change",
     .examples = "  headrace report                             # the latest run: what limits it\n"
                 "  headrace report latest operators bytes      # the evidence, by name\n"
                 "  headrace report latest --full               # all of it\n"
                 "  headrace report latest --until 1s           # of a part of it\n"
                 "  headrace report latest --open               # as a page in the browser\n"
                 "  headrace report nightly --format md -o nightly.md\n"
                 "  headrace report --fleet train               # of a job: which part limits it\n"
                 "  headrace report latest --json | jq '.findings[0]'\n",
     .exit_codes = "0 ok, 2 no such section, 4 undecided or withheld (says what to measure), 5 not "
                   "a headrace "
                   "database or no such run",
     .next = "headrace plan RUN",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<ReportOptions>();
       command_line.AddOption("RUN", options->run, "Report this run: an id, a name, or latest")
           ->ShowDefault();
       command_line
           .AddOption("SECTION", options->sections,
                      "Print only these parts of the evidence: " + Names())
           ->TypeName("NAME");
       options->command_line = &command_line;
       command_line
           .AddOption("--fleet", options->fleet,
                      "Report this job of the preprocessing service, of the database or "
                      "headrace-fleet.db; or the newest job of a fleet file")
           ->TypeName("JOB")
           ->Check(NotEmpty());
       auto* full =
           command_line.AddFlag("--full", options->full, "Print all evidence after the first page");
       command_line
           .AddFlag("--open", options->open, "Write the page as HTML and show it in the browser")
           ->Excludes(full);
       command_line
           .AddOption("--since", options->part.since,
                      "Report only what was recorded from this time of the run on: 10s")
           ->Check(NotEmpty());
       command_line
           .AddOption("--until", options->part.until,
                      "Report only what was recorded up to this time of the run")
           ->Check(NotEmpty());
       command_line.AddFlag("--no-pager", options->no_pager,
                            "Do not show what is longer than the screen through $PAGER");
       AddFormatOptions(&command_line, &options->page,
                        "Write one JSON object (schema headrace.report/1)");
       command_line.AddOption(
           "-o,--output", options->page.file,
           "Write to this file instead of standard output; appears complete or not at all");
       command_line.AddFlag("-f,--force", options->page.replace,
                            "Replace the output file if it exists");
       command_line
           .AddOption("--core-hour-price", options->core_hour_price,
                      "Say what a million rows cost at this price of one core for one hour")
           ->TypeName("PRICE")
           ->Check(Price);
       command_line.AddOption("--db", options->database, "Read this database");
       return [options] { return Run(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
