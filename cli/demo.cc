// headrace demo: a small table, the reference pipeline with a planted bottleneck, the measured
// verdict, the next commands.
//
// It plays the user: every step is a command of this program run as a person would run it, so
// nothing here can be canned.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/verdict.h"
#include "dashboards/serve/port.h"
#include "experiments/child_run.h"
#include "experiments/held_interrupts.h"
#include "experiments/interrupt.h"

namespace headrace::cli {
namespace {

namespace fs = std::filesystem;

struct DemoOptions {
  std::string folder = "headrace-demo";
  std::string database;
  std::string duration = "8s";
};

// The planted bottleneck: each read of a stripe waits as long as a remote store would, on one
// thread.
constexpr const char* kFetchStage = "operators = [\"fetch\"]";
constexpr const char* kSlowFetchStage =
    "operators = [\"fetch\", { sleep = \"30ms\", name = \"storage_latency\" }]";

// A trainer that could take twice what one reading thread brings.
constexpr const char* kConsumerStep = "\nstep = \"0\"";
constexpr const char* kDemoStep = "\nstep = \"4ms\"";

// The wait status of a step. A signal that was sent to this process alone is passed on to it; one
// from the terminal has reached it as well.
int WaitForStep(pid_t pid) {
  constexpr int64_t kLookNs = 20'000'000;
  int status = 0;
  bool told = false;
  while (true) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return status;
    if (experiments::Interrupted() && !experiments::InterruptFromTerminal() && !told) {
      told = true;
      kill(pid, experiments::InterruptSignal());
    }
    SleepUntilNs(MonotonicNs() + kLookNs);
  }
}

constexpr int kNotStarted = 127;  // what a step that was run never returns

// Runs this program with `arguments`; its output goes where ours goes. Returns its exit code: it
// has said itself what went wrong.
int RunSelf(const std::vector<std::string>& arguments) {
  std::fflush(stdout);
  const std::string self = experiments::SelfPath();
  std::optional<experiments::HeldInterrupts> held(std::in_place);
  const pid_t pid = fork();
  if (pid < 0) throw ErrnoError(errno, "start", self);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);  // a second signal ends this process at once
    held->LetThrough();
    const std::string program =
        ProgramName();  // so that the commands it prints are those the user can type
    std::vector<char*> argv;
    argv.push_back(const_cast<char*>(program.c_str()));
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(self.c_str(), argv.data());
    _exit(kNotStarted);
  }
  held.reset();
  const int status = WaitForStep(pid);
  if (experiments::Interrupted()) return static_cast<int>(ExitCode::kInterrupted);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted)
    throw Error(ExitCode::kFailure, "this program cannot start itself again", self,
                "in an emulator, register it for programs of this kind (binfmt_misc)");
  return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(ExitCode::kInterrupted);
}

// Replaces `from`, which the generator wrote, by `to`.
void Replace(std::string* text, const std::string& from, const std::string& to,
             const std::string& path) {
  const size_t at = text->find(from);
  if (at == std::string::npos)
    throw Error(ExitCode::kFailure, fmt::format("the generated pipeline has no '{}'", from), path);
  text->replace(at, from.size(), to);
}

// The generated pipeline with the slow storage and a trainer put in, written beside it as
// demo.toml.
void WriteDemoPipeline(const fs::path& folder) {
  const std::string path = (folder / "pipeline.toml").string();
  std::string text = ReadWholeFile(path);
  Replace(&text, kFetchStage, kSlowFetchStage, path);
  Replace(&text, kConsumerStep, kDemoStep, path);
  AtomicFile output((folder / "demo.toml").string(), true);
  output.Write(text);
  output.Commit();
}

int Demo(const DemoOptions& options) {
  experiments::InstallInterruptHandler();
  const fs::path folder = options.folder;
  if (ParseDuration(options.duration, "--duration") <= 0)
    throw Error(ExitCode::kUsage, "must be longer than 0", "--duration");
  if (fs::exists(folder) && !fs::exists(folder / "table.json")) {
    throw Error(ExitCode::kUsage, "exists and is not a generated table", options.folder,
                "give another with --folder");
  }
  fmt::print(stderr, "headrace " HEADRACE_VERSION
                     ": makes a small table, and reads it through a store that answers slowly, on "
                     "purpose\n");
  const std::string pipeline = (folder / "demo.toml").string();
  int code = RunSelf({"generate", "rm1", "-o", options.folder, "--rows", "8192", "--features",
                      "0.0625", "--seed", "1", "-f", "-q"});
  if (code != 0) return code;
  WriteDemoPipeline(folder);
  code = RunSelf({"run", pipeline, "--name", "demo", "--duration", options.duration, "--db",
                  options.database, "--set", "source.epochs=0"});
  if (code != 0) return code;
  fmt::print(" see    {} serve latest{}    # the same as pages: http://127.0.0.1:{}\n",
             ShellWord(ProgramName()), DatabaseOption(options.database), dashboards::kServePort);
  return 0;
}

HR_COMMAND(
    "demo",
    {.summary = "makes a small table, runs a pipeline with a planted bottleneck, and prints the "
                "measured verdict",
     .examples = "  headrace demo                        # about 15 s; leaves headrace-demo/ and "
                 "./headrace.db\n"
                 "  headrace demo --folder /tmp/d --db /tmp/d.db\n",
     .exit_codes = "0 ok, else the code of the step that failed",
     .next = "headrace apply",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<DemoOptions>();
       options->database = DefaultDatabase();
       command_line.AddOption("--folder", options->folder, "Write the table here")
           ->TypeName("FOLDER")
           ->ShowDefault();
       command_line.AddOption("--db", options->database, "Record the run in this database");
       command_line.AddOption("-d,--duration", options->duration, "Run the pipeline this long")
           ->ShowDefault();
       return [options] { return Demo(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
