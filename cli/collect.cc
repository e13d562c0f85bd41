// headrace collect: the collector process, started by `run` through collectors/agent.h; with
// --discover the always-on service that starts one for each pipeline it finds.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/verdict.h"
#include "collectors/discovery.h"
#include "collectors/recorder.h"
#include "experiments/interrupt.h"

namespace headrace::cli {
namespace {

struct CollectOptions {
  collectors::RecorderOptions recorder;
  MeasureOptions measure;
  int ready_fd = -1;
  bool discover = false;
  std::string older_than, max_size;
  int64_t keep = -1;
  std::string commit;
};

// A line to the one who started this (collectors/agent.h).
void Answer(int fd, std::string text) {
  if (fd < 0) return;
  text += '\n';
  [[maybe_unused]] const ssize_t n = write(fd, text.data(), text.size());
}

int DiscoverAll(const CollectOptions& options) {
  // It records whoever's processes: command lines, paths and stacks are not for everybody to read.
  umask(S_IRWXG | S_IRWXO);
  collectors::DiscoveryOptions discovery;
  discovery.database = options.recorder.database;
  discovery.arguments = options.measure.Arguments();
  discovery.retention = MakeRetention(options.older_than, options.keep, options.max_size);
  discovery.stop = experiments::Interrupted;
  discovery.log = [](const std::string& line) {
    std::fputs((Printable(line, 500) + "\n").c_str(), stderr);
  };
  collectors::Discover(discovery);
  return 0;
}

int Collect(CollectOptions& options) {
  experiments::InstallInterruptHandler();
  if (options.discover) return DiscoverAll(options);
  if (options.recorder.pid == 0) {
    throw Error(ExitCode::kUsage, "say what to record: --pid PID, or --discover");
  }
  bool answered = false;
  if (options.ready_fd >= 0) {
    fcntl(options.ready_fd, F_SETFD, FD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);  // the one who started this may be gone at the end
  }
  options.recorder.stop = experiments::Interrupted;
  options.recorder.ready = [&](int64_t run_id, bool) {
    Answer(options.ready_fd, fmt::format("run {}", run_id));
    answered = true;
  };
  try {
    options.measure.Apply(&options.recorder);
    if (!options.commit.empty())
      options.recorder.commit_ns = ParseDuration(options.commit, "--commit-every");
    const auto result = collectors::Record(options.recorder);
    if (!result.displaced.empty()) {
      const Error displaced(ExitCode::kResources, result.displaced, options.recorder.database);
      if (options.ready_fd < 0) throw displaced;
      Answer(options.ready_fd, fmt::format("displaced {}", result.displaced));
      return static_cast<int>(displaced.code());
    }
    return result.state == collectors::RunState::kTruncated ? static_cast<int>(ExitCode::kResources)
                                                            : 0;
  } catch (const Error& error) {
    // Before it records, the starter reports the error; later there is nobody but stderr.
    if (answered || options.ready_fd < 0) throw;
    Answer(options.ready_fd,
           fmt::format("error {} {}", static_cast<int>(error.code()), error.what()));
    return static_cast<int>(error.code());
  }
}

HR_COMMAND("collect",
           {.summary = "records a process into the run store until it ends",
            .examples = "  headrace collect --pid 4242 --db headrace.db --name nightly\n"
                        "  headrace collect --discover --db headrace.db --max-size 4GiB\n",
            .exit_codes = "0 ok, 5 no such process or bad database, 6 not allowed, 7 disk full, or "
                          "the database was deleted or replaced meanwhile",
            .next = "headrace report latest",
            .configure = [](CommandLine& command_line) -> std::function<int()> {
              auto options = std::make_shared<CollectOptions>();
              options->recorder.database = DefaultDatabase();
              command_line.AddOption("--pid", options->recorder.pid, "Record this process")
                  ->Check(Positive);
              command_line.AddFlag("--discover", options->discover,
                                   "Record every instrumented pipeline, until stopped; a new "
                                   "database is its owner's alone to read");
              command_line.AddOption("--older-than", options->older_than,
                                     "With --discover: remove runs that began longer ago, e.g. 7d");
              command_line
                  .AddOption("--keep", options->keep,
                             "With --discover: keep only this many of the newest runs")
                  ->Check(InRange(int64_t{0}, int64_t{1} << 40));
              command_line.AddOption(
                  "--max-size", options->max_size,
                  "With --discover: remove the oldest runs to stay below, e.g. 4GiB");
              command_line.AddOption("--db", options->recorder.database, "Write to this database");
              command_line.AddOption("--name", options->recorder.run_name, "Name the run");
              command_line.AddOption("--pipeline", options->recorder.pipeline_path,
                                     "Keep this pipeline file with the run");
              command_line
                  .AddOption("--commit-every", options->commit,
                             "Store what was recorded at this interval")
                  ->TypeName("DURATION")
                  ->Default("1s");
              options->measure.AddTo(&command_line);
              command_line.AddOption("--ready-fd", options->ready_fd,
                                     "Report on this descriptor when recording has begun");
              return [options] { return Collect(*options); };
            },
            .hidden = true});

}  // namespace
}  // namespace headrace::cli
