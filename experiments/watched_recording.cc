#include "experiments/watched_recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/child.h"
#include "collectors/store/read_store.h"
#include "experiments/child_run.h"
#include "experiments/held_interrupts.h"
#include "experiments/interrupt.h"

namespace headrace::experiments {
namespace {

constexpr int64_t kLookForRunNs = 20'000'000;
constexpr int64_t kEndCommandNs = 10'000'000'000;
constexpr size_t kOutputTail = 4096;

int64_t FirstNumber(collectors::ReadStore* store, const std::string& sql,
                    const std::vector<collectors::SqlValue>& values = {}) {
  const collectors::SqlResult result = store->Query(sql, values);
  if (result.rows.empty()) return 0;
  const auto* number = std::get_if<int64_t>(&result.rows[0][0]);
  return number ? *number : 0;
}

// The newest run of the database; 0: there is none, or no database yet.
int64_t NewestRun(const std::string& database) {
  if (access(database.c_str(), F_OK) != 0) return 0;
  collectors::ReadStore store(database);
  return FirstNumber(&store, "SELECT MAX(run_id) FROM run_summary");
}

// The processes that it started and that still live.
std::vector<int64_t> ChildrenOf(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{0}/task/{0}/children", pid));
  std::vector<int64_t> children;
  for (int64_t child = 0; in >> child;) children.push_back(child);
  return children;
}

std::string TailOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<size_t>(std::max<std::streamoff>(0, in.tellg()));
  const size_t wanted = std::min(size, kOutputTail);
  std::string tail(wanted, '\0');
  in.seekg(static_cast<std::streamoff>(size - wanted));
  in.read(tail.data(), static_cast<std::streamsize>(wanted));
  tail.resize(static_cast<size_t>(std::max<std::streamsize>(0, in.gcount())));
  return tail;
}

// A new file that only this user may read.
int NewOutputFile(std::string* path) {
  const char* temporary = std::getenv("TMPDIR");
  *path = std::string(temporary != nullptr && *temporary != '\0' ? temporary : "/tmp") +
          "/headrace-top-XXXXXX.log";
  const int fd = mkostemps(path->data(), 4, O_CLOEXEC);
  if (fd < 0) throw ErrnoError(errno, "create", *path);
  return fd;
}

// Removes a file that nothing was written to; returns whether it did.
bool RemoveIfEmpty(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && info.st_size == 0 && unlink(path.c_str()) == 0;
}

}  // namespace

WatchedRecording WatchedRecording::OfProcess(int64_t pid, const WatchedOptions& options) {
  collectors::AgentOptions agent;
  agent.pid = pid;
  agent.database = options.database;
  agent.run_name = options.name;
  agent.arguments = options.arguments;
  WatchedRecording recording;
  recording.agent_.emplace(collectors::Agent::Start(agent));
  recording.database_ = options.database;
  recording.run_id_ = recording.agent_->run_id();
  return recording;
}

WatchedRecording WatchedRecording::OfCommand(const std::vector<std::string>& command,
                                             const WatchedOptions& options) {
  const int64_t newest_before = NewestRun(options.database);
  std::vector<std::string> words = {SelfPath(), "profile", "--quiet", "--db", options.database};
  if (!options.name.empty()) words.insert(words.end(), {"--name", options.name});
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  WatchedRecording recording;
  recording.database_ = options.database;
  const int output = NewOutputFile(&recording.output_);
  std::optional<HeldInterrupts> held(std::in_place);
  const pid_t pid = fork();
  if (pid == 0) {   // only what may be called between fork and exec
    setpgid(0, 0);  // the terminal's keys are for the view
    for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
    held->LetThrough();
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  const int error = errno;
  held.reset();
  close(output);
  if (pid < 0) throw ErrnoError(error, "start", words[0]);
  setpgid(pid, pid);  // whoever is first
  recording.profile_ = pid;
  recording.WaitForRun(newest_before);
  return recording;
}

// The run is that of a process which the recorder started: others may be recorded at the same time.
void WatchedRecording::WaitForRun(int64_t newest_before) {
  std::vector<int64_t> started;
  while (true) {
    const bool runs = CommandRuns();
    for (const int64_t child : ChildrenOf(profile_)) {
      if (std::find(started.begin(), started.end(), child) == started.end()) {
        started.push_back(child);
      }
    }
    if (access(database_.c_str(), F_OK) == 0) {
      try {
        collectors::ReadStore store(database_);
        for (const int64_t pid : started) {
          run_id_ = FirstNumber(&store,
                                "SELECT MAX(run_id) FROM run_summary WHERE run_id > ?1 AND "
                                "pid = ?2",
                                {newest_before, pid});
          if (run_id_ > 0) return;
        }
      } catch (const Error&) {
        if (!runs) throw;  // it is being made
      }
    }
    if (!runs) {
      ChildEnd end;
      end.code = collectors::ShellStatus(status_);
      end.error = TailOf(output_);
      const Error error = ErrorOfChild(end, "headrace profile", "");
      unlink(output_.c_str());  // all of it is in the error
      // As a shell has it: it cannot be run, or is not found.
      const bool of_shell = end.code == 126 || end.code == 127;
      throw of_shell ? Error(static_cast<ExitCode>(end.code), error.fact()) : error;
    }
    if (Interrupted()) {
      End();
      throw Error(ExitCode::kInterrupted, "interrupted before anything was recorded");
    }
    SleepUntilNs(MonotonicNs() + kLookForRunNs);
  }
}

WatchedRecording::WatchedRecording(WatchedRecording&& other) noexcept
    : agent_(std::move(other.agent_)),
      profile_(std::exchange(other.profile_, -1)),
      status_(other.status_),
      database_(std::move(other.database_)),
      output_(std::move(other.output_)),
      run_id_(other.run_id_) {}

WatchedRecording::~WatchedRecording() {
  try {
    if (profile_ > 0) End();
  } catch (const Error&) {
    // Nobody is left to hear of it; the run says how it ended.
  }
}

bool WatchedRecording::CommandRuns() {
  if (profile_ <= 0) return false;
  int status = 0;
  const pid_t ended = waitpid(profile_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return true;
  status_ = status;
  profile_ = -1;
  return false;
}

void WatchedRecording::End() {
  if (agent_) {
    agent_->Stop();
    agent_.reset();
    return;
  }
  if (profile_ <= 0) return;
  const pid_t group = profile_;
  kill(profile_, SIGINT);  // the recorder passes it on to the command, and saves the run
  const int64_t until_ns = MonotonicNs() + kEndCommandNs;
  while (CommandRuns()) {
    if (MonotonicNs() > until_ns) kill(-group, SIGKILL);
    SleepUntilNs(MonotonicNs() + kLookForRunNs);
  }
}

std::string WatchedRecording::Close(bool leave) {
  std::string text;
  const bool leaves = leave && CommandRuns();
  if (!leaves) End();
  if (!output_.empty() && (leaves || !RemoveIfEmpty(output_))) {
    text = fmt::format("output of the command: {}\n", Printable(output_));
  }
  if (leaves) {
    text +=
        fmt::format("the command runs on and is recorded as run {} in {}; kill -INT {} ends it\n",
                    run_id_, Printable(database_), profile_);
    profile_ = -1;
    return text;
  }
  return text + fmt::format("saved as run {} in {}\n", run_id_, Printable(database_));
}

}  // namespace headrace::experiments
