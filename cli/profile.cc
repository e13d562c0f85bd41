// headrace profile: records a running process and all it starts, or a command from its first
// instruction on. A command's own input, output and exit status stay its own.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/common_options.h"
#include "cli/configuration.h"
#include "cli/import_hook.h"
#include "cli/verdict.h"
#include "collectors/child.h"
#include "collectors/process_tree.h"
#include "collectors/recorder.h"
#include "collectors/segment_search.h"
#include "collectors/store/exit_text.h"
#include "dashboards/terminal/progress.h"
#include "experiments/interrupt.h"
#include "probes/process.h"
#include "probes/process_identity.h"

namespace headrace::cli {
namespace {

struct ProfileOptions {
  collectors::RecorderOptions recorder;
  MeasureOptions measure;
  std::string duration;
  bool quiet = false, no_hook = false;
  const CommandLine* command_line = nullptr;
};

void Say(const std::string& text) { std::fputs(text.c_str(), stderr); }

// What was given after "--", or without a dash before it.
std::vector<std::string> CommandOf(const ProfileOptions& options) {
  std::vector<std::string> command = options.command_line->Remaining();
  if (!command.empty() && command[0] == "--") {
    command.erase(command.begin());
    return command;
  }
  if (!command.empty() && !command[0].empty() && command[0][0] == '-') {
    const std::string near = NearestName(command[0], options.command_line->LongNames());
    throw Error(ExitCode::kUsage,
                fmt::format("unknown option '{}'{}", Printable(command[0]),
                            near.empty() ? "" : fmt::format(". Did you mean '{}'?", near)),
                "", "try 'headrace profile --help'");
  }
  return command;
}

void SayAttached(int64_t pid, bool has_accounts) {
  const auto stat = probes::ReadProcessStat(pid);
  const collectors::ProcessTree tree(pid, MonotonicNs());
  const size_t processes = tree.live().size();
  Say(fmt::format("attached to {} ({}, {})\n", pid, stat ? Printable(stat->name) : "?",
                  processes > 1 ? fmt::format("{} processes", processes)
                                : fmt::format("{} thread{}", stat ? stat->num_threads : 0,
                                              stat && stat->num_threads == 1 ? "" : "s")));
  if (has_accounts) return;
  const auto obstacle = collectors::SegmentSearch(pid).FindObstacle();
  const std::string why =
      obstacle.reason.empty()
          ? "no instrumentation yet"
          : fmt::format("no instrumentation: {} (to change it: {})", obstacle.reason, obstacle.fix);
  Say(why +
      ": seen from outside (CPU, off-CPU causes, IO, stacks by process and thread name);\nnot "
      "seen: operators, queues, steps. For these start a Python program with 'headrace profile -- "
      "COMMAND'\n(docs/python.md); a C program includes headrace/account.h (docs/accounts.md)\n");
}

// What a full disk left of a run.
std::string FullDisk(const collectors::Recording& result) {
  return fmt::format(
      "disk full; run {} is complete to {} and {}", result.run_id,
      FormatDuration(static_cast<double>(result.duration_ns)),
      result.marked ? "marked truncated" : "could not be marked: it will appear as interrupted");
}

// A database that was taken away, and where the run is now.
Error Displaced(const collectors::Recording& result, const std::string& database) {
  return Error(ExitCode::kResources, result.displaced, database);
}

int ProfileProcess(ProfileOptions& options) {
  collectors::RecorderOptions& recorder = options.recorder;
  experiments::InstallInterruptHandler();
  dashboards::Progress progress("profiling");
  int64_t begin_ns = MonotonicNs();
  int64_t drawn_ns = 0;
  std::optional<dashboards::TransientNote> note;
  if (!options.quiet) note.emplace("starting the recorder ...");
  recorder.ready = [&](int64_t, bool has_accounts) {
    note.reset();
    begin_ns = MonotonicNs();  // until here the probes were being loaded
    if (!options.quiet) SayAttached(recorder.pid, has_accounts);
  };
  recorder.stop = [&] {
    const int64_t now = MonotonicNs();
    if (!options.quiet && recorder.duration_ns > 0 && now - drawn_ns > 100'000'000) {
      drawn_ns = now;
      const double share =
          static_cast<double>(now - begin_ns) / static_cast<double>(recorder.duration_ns);
      progress.Update(std::min(share, 1.0), "");
    }
    return experiments::Interrupted();
  };
  const collectors::Recording result = collectors::Record(recorder);
  note.reset();
  const std::string span = FormatDuration(static_cast<double>(result.duration_ns));
  if (!options.quiet) {
    if (result.target_ended) {
      Say(fmt::format(
          "process {} {}\n", recorder.pid,
          result.state == collectors::RunState::kInterrupted
              ? (result.has_accounts
                     ? "died without closing its instrumentation: the run is marked interrupted"
                     : "was killed: the run is marked interrupted")
              : "ended"));
    }
    if (!result.database.empty()) {
      progress.Finish(fmt::format("{}saved {} as run {} in {}",
                                  experiments::Interrupted() ? "stopped; " : "", span,
                                  result.run_id, result.database));
      if (result.state != collectors::RunState::kTruncated) {
        Say(FirstPageOf(result.database, result.run_id, STDERR_FILENO));
      }
    }
  }
  if (!result.displaced.empty()) throw Displaced(result, recorder.database);
  if (result.state == collectors::RunState::kTruncated) {
    throw Error(ExitCode::kResources, FullDisk(result), recorder.database,
                "free space, or use --db elsewhere");
  }
  return experiments::Interrupted() ? static_cast<int>(ExitCode::kInterrupted) : 0;
}

std::string HowItEnded(int status) {
  const int code = collectors::ShellStatus(status);
  return code > 128 && collectors::ExitText(status).rfind("killed", 0) == 0
             ? fmt::format("was {}", collectors::ExitText(status))
             : fmt::format("exited {}", code);
}

// A recording that fails once the command runs does not take the command with it.
collectors::Recording RecordUntilLost(const collectors::RecorderOptions& recorder,
                                      const collectors::Child& child, std::optional<Error>* lost) {
  try {
    collectors::Recording result = collectors::Record(recorder);
    if (!child.released() && result.state == collectors::RunState::kTruncated) {
      throw Error(ExitCode::kResources, "disk full; the command was not run", recorder.database,
                  "free space, or use --db elsewhere");
    }
    return result;
  } catch (const Error& error) {
    // Held back, it never runs; unless it was killed meanwhile, which is then what there is to say.
    if (!child.released() && probes::IsAlive(child.pid())) throw;
    lost->emplace(error);
  }
  return {};
}

// What the command gets of a signal that was sent to this process alone: the same. But one that
// was started in the background has inherited that it ignores SIGINT: SIGTERM in its place.
int SignalFor(const collectors::Child& child, int number, bool in_background, bool quiet) {
  if (number != SIGINT || !in_background || !probes::IgnoresSignal(child.pid(), SIGINT)) {
    return number;
  }
  if (!quiet) {
    Say("headrace profile: started in the background, the command ignores SIGINT: sent SIGTERM\n");
  }
  return SIGTERM;
}

// How the command ended, which run it is, and the first page of that; or what became of the
// recording.
void SayWhatIsSaved(const collectors::Recording& result,
                    const collectors::RecorderOptions& recorder, const std::optional<Error>& lost,
                    int64_t run_id, int status, int64_t ran_ns) {
  const double seconds = static_cast<double>(ran_ns) / 1e9;
  if (lost) {
    Say(fmt::format("headrace profile: {}; what was recorded before is run {} in {}\n",
                    lost->what(), run_id, recorder.database));
  } else if (result.state == collectors::RunState::kTruncated) {
    Say(fmt::format("headrace profile: {}: {}; free space, or use --db elsewhere\n",
                    recorder.database, FullDisk(result)));
  } else if (result.duration_ns < 2'000'000'000 && result.steps < 20) {
    Say(
        fmt::format("command {} after {:.2f} s; too short for a verdict (need >= 2 s or 20 steps). "
                    "Saved run {} in {}\n",
                    HowItEnded(status), seconds, result.run_id, result.database));
  } else {
    Say(fmt::format("command {} after {:.1f} s; saved {} as run {} in {}\n", HowItEnded(status),
                    seconds, FormatDuration(static_cast<double>(result.duration_ns)), result.run_id,
                    result.database));
    Say(FirstPageOf(result.database, result.run_id, STDERR_FILENO));
  }
}

// Whether the import hook would see into it, for all that its name says.
bool RunsPython(const std::string& program) {
  return program.starts_with("python") || program == "torchrun";
}

int ProfileCommand(ProfileOptions& options, const std::vector<std::string>& command) {
  collectors::RecorderOptions& recorder = options.recorder;
  for (const std::string& word : command) {
    recorder.command += (recorder.command.empty() ? "" : " ") + Printable(word, 4096);
  }
  recorder.program = Printable(command[0].substr(command[0].rfind('/') + 1), 60);
  options.measure.SetEnvironment();  // the child's is this process's
  if (!options.no_hook && !SetImportHook() && RunsPython(recorder.program)) {
    // Also with --quiet: the page will say less than its reader expects.
    Say("no instrumentation: the Python package is not where this headrace expects it, so the "
        "program is seen\nfrom outside. Install the wheel (docs/install.md)\n");
  }
  RestoreConfigurationVariable();  // the command may be headrace, with the user's file
  collectors::Child child = collectors::Child::Start(command);
  recorder.pid = child.pid();
  recorder.held = true;
  const bool in_background = probes::IgnoresSignal(getpid(), SIGINT);  // so shells start it there
  experiments::InstallInterruptHandler();
  int64_t begin_ns = MonotonicNs();
  bool forwarded = false;
  std::optional<Error> failure;
  int64_t run_id = 0;
  std::optional<dashboards::TransientNote> note;
  if (!options.quiet) note.emplace("starting the recorder ...");
  recorder.ready = [&](int64_t id, bool) {
    note.reset();
    run_id = id;
    begin_ns = MonotonicNs();  // until here it was held back
    try {
      child.Release();
    } catch (const Error& error) {
      failure = error;
    }
  };
  // A signal from the terminal has reached the command as well, and the command decides what it
  // means; one that was sent to this process alone is passed on.
  recorder.stop = [&] {
    if (experiments::Interrupted() && !experiments::InterruptFromTerminal() && !forwarded) {
      forwarded = true;
      child.Signal(SignalFor(child, experiments::InterruptSignal(), in_background, options.quiet));
    }
    return failure.has_value();
  };
  std::optional<Error> lost;
  const collectors::Recording result = RecordUntilLost(recorder, child, &lost);
  note.reset();
  if (failure) {
    child.Wait();
    collectors::RunStore(recorder.database).RemoveRun(run_id);  // nothing happened in it
    throw *failure;
  }
  if (!result.target_ended) {  // the recording is over, the command is not
    if (lost && !options.quiet) {
      Say(fmt::format("headrace profile: recording stopped, the command goes on: {}\n",
                      lost->what()));
    }
    while (probes::IsAlive(child.pid())) {
      recorder.stop();
      SleepUntilNs(MonotonicNs() + 20'000'000);
    }
  }
  const int status = child.Wait();
  const int code = collectors::ShellStatus(status);
  if (!result.displaced.empty()) {  // the command's status is its own, whatever became of the run
    Say(fmt::format("headrace profile: {}\n", Displaced(result, recorder.database).what()));
  }
  if (options.quiet || (!lost && result.database.empty())) return code;
  SayWhatIsSaved(result, recorder, lost, run_id, status, MonotonicNs() - begin_ns);
  return code;
}

int Profile(ProfileOptions& options) {
  collectors::RecorderOptions& recorder = options.recorder;
  const std::vector<std::string> command = CommandOf(options);
  if (recorder.pid == 0 && command.empty()) {
    throw Error(ExitCode::kUsage, "say what to record: -p PID, or -- COMMAND", "",
                "try 'headrace profile --help'");
  }
  if (recorder.pid != 0 && !command.empty()) {
    throw Error(ExitCode::kUsage, "takes -p PID or a command, not both", "",
                "try 'headrace profile --help'");
  }
  if (!options.duration.empty()) {
    recorder.duration_ns = ParseDuration(options.duration, "--duration");
    if (recorder.duration_ns <= 0) {
      throw Error(ExitCode::kUsage, "must be longer than 0", "--duration", "try 10s, 2m, 1h30m");
    }
  }
  options.measure.Apply(&recorder);
  return command.empty() ? ProfileProcess(options) : ProfileCommand(options, command);
}

HR_COMMAND("profile",
           {.summary = "records a running process or a command, with all it starts: its operators "
                       "if it is instrumented, else what is seen from outside",
            .examples =
                "  headrace profile -- python train.py    # a command, from its first instruction\n"
                "  headrace profile -p 4242 -d 10s        # ten seconds of process 4242\n"
                "  headrace profile -p 4242 --name before # until it ends or Ctrl-C\n"
                "  headrace profile --ring 30s --trigger 'stall > 200ms' -- python train.py\n",
            .exit_codes =
                "-- COMMAND: its own, 128 + signal, 126 not executable, 127 not found; else 0 "
                "ok, 2 usage, 5 no such process or bad database, 6 not allowed, 7 disk full "
                "or the database deleted or replaced, 130 interrupted (what was recorded is kept)",
            .next = "headrace report latest",
            .configure = [](CommandLine& command_line) -> std::function<int()> {
              auto options = std::make_shared<ProfileOptions>();
              options->command_line = &command_line;
              options->recorder.database = DefaultDatabase();
              command_line.LeaveTheRest();  // what follows the options is the command, untouched
              command_line
                  .AddOption("-p,--pid", options->recorder.pid,
                             "Record this process and all it starts")
                  ->TypeName("PID")
                  ->Check(Positive);
              command_line
                  .AddOption("-d,--duration", options->duration,
                             "Stop recording after this long: 10s, 2m")
                  ->Default("when the process ends");
              command_line.AddOption("--db", options->recorder.database, "Write to this database");
              command_line.AddOption("--name", options->recorder.run_name, "Name the run")
                  ->Default("program and time");
              command_line.AddOption("--pipeline", options->recorder.pipeline_path,
                                     "Keep this pipeline file with the run");
              options->measure.AddTo(&command_line);
              command_line
                  .AddFlag("--no-hook", options->no_hook,
                           "Leave Python programs alone: no import hook, which instruments "
                           "PyTorch, tf.data, Keras and Ray Data loaders, pools and executors")
                  ->Group(kMeasuring);
              command_line.AddFlag("-q,--quiet", options->quiet, "Print nothing but errors");
              return [options] { return Profile(*options); };
            }});

}  // namespace
}  // namespace headrace::cli
