#include "collectors/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "collectors/recorded_mark.h"
#include "collectors/segment_search.h"

namespace headrace::collectors {
namespace {

// With its end; what there is of it where nobody writes the rest.
std::string ReadLine(int fd) {
  std::string text;
  char c;
  while (true) {
    const ssize_t n = read(fd, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text += c;
    if (c == '\n') return text;
  }
}

// The collector's process, which keeps `ready_fd`. Its id, or -1 and errno.
pid_t Spawn(const std::string& executable, std::vector<std::string>& arguments, int ready_fd) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  // Only calls that are safe after fork in a process with threads.
  setpgid(0, 0);  // Ctrl-C is for the pipeline; the collector is told by Stop or sees it end
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  fcntl(ready_fd, F_SETFD, 0);
  execv(executable.c_str(), argv.data());
  _exit(127);
}

int Wait(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string HowItEnded(int status) {
  return WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                             : fmt::format("exited {}", WEXITSTATUS(status));
}

// Its own class of failure, as far as it told one.
ExitCode CodeOf(int status) {
  for (const ExitCode code : {ExitCode::kBadData, ExitCode::kPrivilege, ExitCode::kResources}) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(code)) return code;
  }
  return ExitCode::kFailure;
}

}  // namespace

Agent Agent::Start(const AgentOptions& options) {
  const int64_t root = options.pid ? options.pid : getpid();
  // Until the collector has marked them itself, which takes a while: else an always-on collector
  // may come first, and the process be recorded twice.
  const RecordedMark mark(SegmentSearch(root).FindWhole());
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) throw ErrnoError(errno, "make a pipe to", "the collector");
  const std::string executable = options.executable.empty() ? "/proc/self/exe" : options.executable;
  std::vector<std::string> arguments = {
      "headrace", "collect",        "--pid",      std::to_string(root),
      "--db",     options.database, "--ready-fd", std::to_string(pipe_fds[1])};
  if (!options.run_name.empty()) arguments.insert(arguments.end(), {"--name", options.run_name});
  if (!options.pipeline_path.empty()) {
    arguments.insert(arguments.end(), {"--pipeline", options.pipeline_path});
  }
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  const pid_t pid = Spawn(executable, arguments, pipe_fds[1]);
  if (pid < 0) {
    const int error = errno;
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    throw ErrnoError(error, "start", "the collector");
  }
  close(pipe_fds[1]);
  const std::string answer = ReadLine(pipe_fds[0]);
  long long run_id = 0;
  if (std::sscanf(answer.c_str(), "run %lld", &run_id) == 1) {
    Agent agent;
    agent.pid_ = pid;
    agent.answers_ = pipe_fds[0];
    agent.run_id_ = run_id;
    agent.database_ = options.database;
    return agent;
  }
  close(pipe_fds[0]);
  kill(pid, SIGKILL);
  const int status = Wait(pid);
  int code = 1;
  int used = 0;
  if (std::sscanf(answer.c_str(), "error %d %n", &code, &used) == 1 && used > 0) {
    std::string text = answer.substr(static_cast<size_t>(used));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    throw Error(static_cast<ExitCode>(code), text);
  }
  // The run's row may have fitted, and its first figures not: then nobody has told of an error.
  if (CodeOf(status) == ExitCode::kResources) {
    throw Error(ExitCode::kResources, "disk full: nothing could be recorded", options.database,
                "free space, or use --db elsewhere");
  }
  throw Error(CodeOf(status),
              fmt::format("the collector {} before it recorded anything", HowItEnded(status)),
              executable);
}

Agent::Agent(Agent&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reaped_(other.reaped_),
      status_(other.status_),
      answers_(std::exchange(other.answers_, -1)),
      run_id_(other.run_id_),
      database_(std::move(other.database_)) {}

Agent::~Agent() {
  if (answers_ >= 0) close(answers_);
  if (pid_ <= 0 || reaped_) return;
  kill(pid_, SIGTERM);
  Wait(pid_);
}

bool Agent::ended() {
  if (pid_ <= 0 || reaped_) return true;
  reaped_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return reaped_;
}

int64_t Agent::Stop() {
  if (pid_ <= 0) return run_id_;
  if (!reaped_) kill(pid_, SIGTERM);
  const int status = reaped_ ? status_ : Wait(pid_);
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return run_id_;
  constexpr std::string_view kDisplaced = "displaced ";
  std::string last = ReadLine(answers_);
  if (last.starts_with(kDisplaced)) {
    last.erase(0, kDisplaced.size());
    while (!last.empty() && last.back() == '\n') last.pop_back();
    throw Error(ExitCode::kResources, last, database_);
  }
  if (CodeOf(status) == ExitCode::kResources) {
    throw Error(
        ExitCode::kResources,
        fmt::format("disk full while recording: run {} is whole up to its last second", run_id_),
        database_, "free space, or use --db elsewhere");
  }
  throw Error(
      CodeOf(status),
      fmt::format("the collector {}; run {} is recorded up to then", HowItEnded(status), run_id_),
      database_, "");
}

}  // namespace headrace::collectors
