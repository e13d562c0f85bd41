// headrace profile: records a running process into the run store.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "collectors/recorder.h"
#include "probes/process.h"

namespace headrace::cli {
namespace {

struct Options {
  collectors::RecorderOptions recorder;
  std::string duration;
  bool quiet = false;
};

int Profile(Options& options) {
  collectors::RecorderOptions& recorder = options.recorder;
  if (!options.duration.empty()) {
    recorder.duration_ns = ParseDuration(options.duration, "--duration");
    if (recorder.duration_ns <= 0) {
      throw Error(ExitCode::kUsage, "must be longer than 0", "--duration", "try 10s, 2m, 1h30m");
    }
  }
  InstallInterruptHandler();
  Progress progress("profiling");
  const int64_t begin_ns = MonotonicNs();
  int64_t drawn_ns = 0;
  recorder.ready = [&](int64_t, bool has_accounts) {
    if (options.quiet) return;
    const auto stat = probes::ReadProcessStat(recorder.pid);
    std::fprintf(stderr, "attached to %lld (%s, %lld thread%s)\n",
                 static_cast<long long>(recorder.pid), stat ? Printable(stat->name).c_str() : "?",
                 stat ? static_cast<long long>(stat->num_threads) : 0,
                 stat && stat->num_threads == 1 ? "" : "s");
    if (has_accounts) return;
    std::fputs(
        "no operator accounts: seen from outside only (CPU, run queue, memory and IO by process "
        "and "
        "thread name);\nnot seen: operators, queues, steps. Write accounts with "
        "headrace/account.h, see docs/accounts.md\n",
        stderr);
  };
  recorder.stop = [&] {
    const int64_t now = MonotonicNs();
    if (!options.quiet && recorder.duration_ns > 0 && now - drawn_ns > 100'000'000) {
      drawn_ns = now;
      progress.Update(
          static_cast<double>(now - begin_ns) / static_cast<double>(recorder.duration_ns), "");
    }
    return Interrupted();
  };
  const collectors::Recording result = collectors::Record(recorder);
  const std::string span = FormatDuration(static_cast<double>(result.duration_ns));
  if (!options.quiet) {
    if (result.target_ended) {
      std::fprintf(stderr, "process %lld %s\n", static_cast<long long>(recorder.pid),
                   result.state == collectors::RunState::kInterrupted
                       ? "died without closing its accounts: the run is marked interrupted"
                       : "ended");
    }
    progress.Finish(
        fmt::format("saved {} as run {} in {}", span, result.run_id, recorder.database));
    if (result.has_accounts) {
      std::fprintf(stderr, "next: %s report %lld --db %s\n", ShellWord(ProgramName()).c_str(),
                   static_cast<long long>(result.run_id), ShellWord(recorder.database).c_str());
    } else {
      std::fprintf(stderr,
                   "next: %s query --db %s \"SELECT metric, unit, mean_value, last_value "
                   "FROM host_summary WHERE run_id = %lld\"\n",
                   ShellWord(ProgramName()).c_str(), ShellWord(recorder.database).c_str(),
                   static_cast<long long>(result.run_id));
    }
  }
  if (result.state == collectors::RunState::kTruncated) {
    throw Error(ExitCode::kResources,
                fmt::format("disk full; run {} is complete to {} and marked truncated",
                            result.run_id, span),
                recorder.database, "free space, or use --db elsewhere");
  }
  return Interrupted() ? static_cast<int>(ExitCode::kInterrupted) : 0;
}

HR_COMMAND("profile",
           {.summary = "records a running process: its operators if it keeps accounts, else what "
                       "is seen from outside",
            .examples = "  headrace profile -p 4242 -d 10s        # ten seconds of process 4242\n"
                        "  headrace profile -p 4242 --name before # until it ends or Ctrl-C\n",
            .exit_codes = "0 ok, 2 usage, 5 no such process or bad database, 6 not allowed, 7 disk "
                          "full, 130 interrupted (what was recorded is kept)",
            .next = "headrace report latest",
            .configure = [](CLI::App& app) -> std::function<int()> {
              auto options = std::make_shared<Options>();
              options->recorder.database = DefaultDatabase();
              app.add_option("-p,--pid", options->recorder.pid, "Record this process")
                  ->required()
                  ->check(Positive);
              app.add_option("-d,--duration", options->duration,
                             "Stop after this long, e.g. 10s, 2m (default: when the process ends)");
              app.add_option("--db", options->recorder.database,
                             "Write to this database (default $HEADRACE_DB or ./headrace.db)");
              app.add_option("--name", options->recorder.run_name,
                             "Name the run (default: program and time)");
              app.add_option("--pipeline", options->recorder.pipeline_path,
                             "Keep this pipeline file with the run");
              app.add_flag("-q,--quiet", options->quiet, "Say nothing but errors");
              return [options] { return Profile(*options); };
            }});

}  // namespace
}  // namespace headrace::cli
