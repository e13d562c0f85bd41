#include "experiments/child_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "collectors/child.h"
#include "experiments/held_interrupts.h"
#include "experiments/interrupt.h"

namespace headrace::experiments {
namespace {

constexpr size_t kMostOut = 1 << 20;
constexpr size_t kErrorTail = 1 << 14;
// What a child that was told to end has to do so, and to save what it recorded.
constexpr int64_t kEndWithinNs = 10'000'000'000;

struct Descriptor {
  int fd = -1;
  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Close(); }
  void Close() {
    if (fd >= 0) close(std::exchange(fd, -1));
  }
};

struct Pipe {
  Descriptor read, write;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw ErrnoError(errno, "make", "a pipe");
    read.fd = ends[0];
    write.fd = ends[1];
    // Only our end may refuse to block: the child writes as to any pipe.
    fcntl(write.fd, F_SETFL, 0);
  }
};

// Reads what is there, but not for ever from one who writes as fast; false at the end of the
// stream.
bool Drain(int fd, std::string* text, size_t most, bool keep_end) {
  char buffer[4096];
  constexpr int kMostReads = 64;
  for (int i = 0; i < kMostReads; ++i) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    if (keep_end || text->size() < most) text->append(buffer, static_cast<size_t>(got));
    if (keep_end && text->size() > 2 * most) text->erase(0, text->size() - most);
  }
  return true;
}

// In the child: only what may be called between fork and exec.
[[noreturn]] void Become(const std::vector<char*>& argv, pid_t parent, int out, int error,
                         const HeldInterrupts& held) {
  prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);  // nothing is recorded for nobody
  if (getppid() != parent) _exit(125);
  setpgid(0, 0);
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
  held.LetThrough();
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(out >= 0 ? out : null, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(127);
}

bool HasEnded(pid_t pid) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

}  // namespace

std::string ChildEnd::last() const {
  const size_t end = error.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "";
  const size_t newline = error.rfind('\n', end);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return error.substr(begin, end - begin + 1);
}

ChildEnd RunChild(const std::vector<std::string>& words, const ChildOptions& options) {
  Pipe out, error;
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int64_t start_ns = MonotonicNs();
  const pid_t parent = getpid();
  std::optional<HeldInterrupts> held(std::in_place);
  const pid_t pid = fork();
  if (pid < 0) throw ErrnoError(errno, "start", words[0]);
  if (pid == 0)
    Become(argv, parent, options.keep_output ? out.write.fd : -1, error.write.fd, *held);
  held.reset();
  setpgid(pid, pid);  // whoever is first
  SetGroupOfChild(pid);
  out.write.Close();
  error.write.Close();
  Descriptor ended;
  ended.fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  ChildEnd end;
  bool out_open = true, error_open = true;
  int64_t told_ns = 0;  // to end
  do {
    pollfd polled[3] = {{ended.fd, POLLIN, 0},
                        {out_open ? out.read.fd : -1, POLLIN, 0},
                        {error_open ? error.read.fd : -1, POLLIN, 0}};
    poll(polled, 3, ended.fd >= 0 ? 100 : 10);
    if (out_open) out_open = Drain(out.read.fd, &end.out, kMostOut, false);
    if (error_open) error_open = Drain(error.read.fd, &end.error, kErrorTail, true);
    if (Interrupted() && told_ns == 0) {
      told_ns = MonotonicNs();
      kill(-pid, InterruptSignal());
    }
    end.timed_out =
        end.timed_out || (options.timeout_ns > 0 && MonotonicNs() - start_ns > options.timeout_ns);
    if (end.timed_out || (told_ns != 0 && MonotonicNs() - told_ns > kEndWithinNs))
      kill(-pid, SIGKILL);
  } while (!HasEnded(pid));
  // Before it is reaped: the group's number is still its own.
  if (told_ns != 0 || end.timed_out) kill(-pid, SIGKILL);
  SetGroupOfChild(0);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  // What is still in the pipes; another process may hold them open for long.
  if (out_open) Drain(out.read.fd, &end.out, kMostOut, false);
  if (error_open) Drain(error.read.fd, &end.error, kErrorTail, true);
  end.code = collectors::ShellStatus(status);
  return end;
}

Error ErrorOfChild(const ChildEnd& end, const std::string& command, const std::string& where) {
  std::string line = end.last();
  if (line.starts_with(command + ": ")) line.erase(0, command.size() + 2);
  if (line.empty()) line = fmt::format("{} ended with exit code {}", command, end.code);
  const bool known = end.code >= 1 && end.code <= 7;
  return Error(known ? static_cast<ExitCode>(end.code) : ExitCode::kFailure, line, where);
}

std::string SelfPath() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) throw ErrnoError(errno, "find this program's own path in", "/proc/self/exe");
  return std::string(path, static_cast<size_t>(length));
}

}  // namespace headrace::experiments
