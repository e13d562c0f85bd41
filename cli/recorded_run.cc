#include "cli/recorded_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "cli/command.h"
#include "collectors/child.h"

namespace headrace::cli {
namespace {

constexpr size_t kMostRead = 1 << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePointer = std::unique_ptr<std::FILE, CloseFile>;

// A file without a name: a child may write as much as it likes without anybody reading along.
FilePointer Scratch() {
  FilePointer file(std::tmpfile());
  if (!file) throw ErrnoError(errno, "make", "a temporary file");
  return file;
}

std::string Text(std::FILE* file) {
  std::string text(kMostRead, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

std::string LastLine(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

std::vector<std::string> Words(const RecordedRun& run) {
  std::vector<std::string> words = {SelfPath(), "run",        run.pipeline, "--json", "--quiet",
                                    "--db",     run.database, "--name",     run.name};
  for (const std::string& setting : run.settings) {
    words.push_back("--set");
    words.push_back(setting);
  }
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  return words;
}

// Passes an interrupt on that the child did not get itself. Returns as a shell would.
int Wait(pid_t pid) {
  bool told = false;
  int status = 0;
  for (;;) {
    const pid_t done = waitpid(pid, &status, WNOHANG);
    if (done == pid) return collectors::ShellStatus(status);
    if (done < 0 && errno != EINTR) throw ErrnoError(errno, "wait for", "headrace run");
    if (Interrupted() && !InterruptFromTerminal() && !std::exchange(told, true))
      kill(pid, InterruptSignal());
    SleepUntilNs(MonotonicNs() + 10'000'000);
  }
}

}  // namespace

RecordedRunEnd RecordRun(const RecordedRun& run) {
  const FilePointer out = Scratch(), error = Scratch();
  const std::vector<std::string> words = Words(run);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw ErrnoError(errno, "start", words[0]);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);  // nothing is recorded for nobody
    if (getppid() != parent) _exit(125);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(fileno(out.get()), STDOUT_FILENO);
    dup2(fileno(error.get()), STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  const int code = Wait(pid);
  if (Interrupted() || code == static_cast<int>(ExitCode::kInterrupted))
    throw Error(ExitCode::kInterrupted, "interrupted");
  if (code != 0) {
    std::string line = LastLine(Text(error.get()));
    const std::string prefix = "headrace run: ";
    if (line.starts_with(prefix)) line.erase(0, prefix.size());
    if (line.empty()) line = fmt::format("headrace run ended with exit code {}", code);
    throw Error(code >= 1 && code <= 7 ? static_cast<ExitCode>(code) : ExitCode::kFailure, line,
                "run '" + run.name + "'");
  }
  const nlohmann::json said = nlohmann::json::parse(Text(out.get()), nullptr, false);
  if (!said.is_object() || !said.contains("run_id") || !said["run_id"].is_number_integer())
    throw Error(ExitCode::kFailure, "the run was not recorded", "run '" + run.name + "'",
                "'headrace run' alone says why");
  return {said["run_id"].get<int64_t>(), said.value("rows_per_second", 0.0)};
}

}  // namespace headrace::cli
