// headrace top: what limits a run while it is being recorded, on the whole terminal.
#include "dashboards/terminal/top.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/verdict.h"
#include "dashboards/terminal/live_run.h"
#include "dashboards/terminal/progress.h"
#include "dashboards/terminal/terminal.h"
#include "dashboards/terminal/top_json.h"
#include "experiments/interrupt.h"
#include "experiments/watched_recording.h"

namespace headrace::cli {
namespace {

struct TopCommand {
  std::vector<std::string> words;
  experiments::WatchedOptions recording;
  MeasureOptions measure;
  int64_t pid = 0;
  bool once = false, json = false, ascii = false;
  int width = 0, height = 0;
  std::string interval = "1s";
  const CommandLine* command_line = nullptr;
};

// Whether the words are a command: they were given after "--".
bool IsCommand(const TopCommand& options) {
  const std::vector<std::string> rest = options.command_line->Remaining();
  return std::find(rest.begin(), rest.end(), "--") != rest.end();
}

void Check(const TopCommand& options) {
  const bool command = IsCommand(options), text = options.once || options.json;
  const auto refuse = [](const char* what, const char* fix = "try 'headrace top --help'") {
    throw Error(ExitCode::kUsage, what, "", fix);
  };
  if (command && options.words.empty()) refuse("say which command to record after --");
  if (command && options.pid != 0) refuse("takes -p PID or a command, not both");
  if (!command && options.pid != 0 && !options.words.empty()) refuse("takes a RUN or -p PID");
  if (!command && options.words.size() > 1) refuse("takes one RUN");
  if ((command || options.pid != 0) && text) {
    refuse("--once and --json show what is recorded already",
           "record with 'headrace profile', then 'headrace top --once'");
  }
  if (!text && (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)) {
    refuse("needs a terminal on standard input and output",
           "use --once for one screen as text, or --json");
  }
}

int PrintOnce(const TopCommand& options, const dashboards::TopOptions& top) {
  using dashboards::TerminalRows, dashboards::TerminalWidth;
  const dashboards::TopModel model = dashboards::LookOnce(top);
  const int width = options.width > 0 ? options.width : TerminalWidth(STDOUT_FILENO);
  const int height = options.height > 0 ? options.height : TerminalRows(STDOUT_FILENO).value_or(0);
  const dashboards::TopLayout layout{static_cast<size_t>(width), static_cast<size_t>(height),
                                     top.ascii, true};
  const std::string text =
      options.json ? dashboards::TopJson(model)
                   : dashboards::TextOf(dashboards::LayOutTop(model, {}, layout), top.color);
  std::fputs(text.c_str(), stdout);
  return 0;
}

experiments::WatchedRecording StartRecording(TopCommand* options) {
  options->recording.arguments = options->measure.Arguments();
  const dashboards::TransientNote note("starting the recorder ...");
  return options->pid != 0
             ? experiments::WatchedRecording::OfProcess(options->pid, options->recording)
             : experiments::WatchedRecording::OfCommand(options->words, options->recording);
}

int Watch(const dashboards::TopOptions& top, experiments::WatchedRecording* recording) {
  const dashboards::TopEnd end = dashboards::RunTop(top);
  if (recording != nullptr) {
    const std::string became = recording->Close(!end.end_command && !end.interrupted);
    fmt::print(stderr, "{}next: {} report {}{}\n", became, top.program, top.run_id,
               top.database_option);
  }
  const int code = end.interrupted ? static_cast<int>(ExitCode::kInterrupted) : 0;
  if (end.unfinished) {  // nothing that the verdict's thread still uses may be taken from it
    std::fflush(stdout);
    std::fflush(stderr);
    std::_Exit(code);
  }
  return code;
}

int Run(TopCommand& options) {
  Check(options);
  dashboards::TopOptions top;
  top.database = options.recording.database;
  top.program = ShellWord(ProgramName());
  top.database_option = DatabaseOption(top.database);
  top.interval_ns = ParseDuration(options.interval, "--interval");
  if (top.interval_ns < dashboards::kLeastIntervalNs ||
      top.interval_ns > dashboards::kMostIntervalNs) {
    throw Error(ExitCode::kUsage, "must be from 250ms to 60s", "--interval", "try 1s");
  }
  top.ascii = options.ascii || AsciiOnly();
  top.color = dashboards::UseColor(STDOUT_FILENO);
  experiments::InstallInterruptHandler();
  top.interrupted = experiments::Interrupted;
  if (options.pid != 0 || IsCommand(options)) {
    experiments::WatchedRecording recording = StartRecording(&options);
    top.run_id = recording.run_id();
    if (!recording.output().empty()) {
      top.notes.push_back("Output of the command: " + Printable(recording.output()));
    }
    top.command_runs = [&recording] { return recording.CommandRuns(); };
    return Watch(top, &recording);
  }
  const dashboards::ChosenRun chosen =
      dashboards::ChooseLiveRun(top.database, options.words.empty() ? "" : options.words[0]);
  top.run_id = chosen.run_id;
  if (!chosen.note.empty()) top.notes.push_back(chosen.note);
  return options.once || options.json ? PrintOnce(options, top) : Watch(top, nullptr);
}

HR_COMMAND(
    "top",
    {.summary = "shows on the terminal what limits a run while it is being recorded",
     .examples = "  headrace top                        # the run that is being recorded\n"
                 "  headrace top nightly                # a run by number or name\n"
                 "  headrace top -p 4242                # record process 4242, and watch it\n"
                 "  headrace top -- python train.py     # record a command, and watch it\n"
                 "  headrace top --once --width 100     # one screen as text\n"
                 "  headrace top --json | jq .stages    # the same figures for programs\n",
     .exit_codes = "0 ok, 2 usage (no terminal: --once), 5 no such run, process or database, 6 not "
                   "allowed, 7 disk full, 126 COMMAND not executable, 127 COMMAND not found, 130 "
                   "interrupted",
     .next = "headrace report RUN",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<TopCommand>();
       options->command_line = &command_line;
       options->recording.database = DefaultDatabase();
       command_line
           .AddOption("RUN", options->words,
                      "Show this run: an id, a name, or latest; after --: a command to record")
           ->TypeName("RUN")
           ->Default("the run that is being recorded, else the latest");
       command_line.AddOption("-p,--pid", options->pid, "Record this process and all it starts")
           ->TypeName("PID")
           ->Check(Positive);
       command_line.AddFlag("--once", options->once, "Print one screen as text, and end");
       command_line.AddFlag("--json", options->json,
                            "Print one JSON object (schema headrace.top/1), and end");
       command_line.AddOption("--width", options->width, "With --once: columns")
           ->Check(InRange(20, 1000))
           ->Default("the terminal's");
       command_line.AddOption("--height", options->height, "With --once: lines")
           ->Check(InRange(4, 1000))
           ->Default("the terminal's, or as many as it takes");
       command_line.AddFlag("--ascii", options->ascii, "Draw with ASCII characters only");
       command_line
           .AddOption("--interval", options->interval,
                      "Look at the store this often, from 250ms to 60s")
           ->TypeName("DURATION")
           ->ShowDefault();
       command_line.AddOption("--db", options->recording.database,
                              "Read this database, or record into it");
       command_line.AddOption("--name", options->recording.name, "Name the run that is recorded")
           ->Default("program and time");
       options->measure.AddTo(&command_line);
       return [options] { return Run(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
