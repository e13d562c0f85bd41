#include "collectors/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/program_path.h"

namespace headrace::collectors {
namespace {

constexpr auto kNotFound = static_cast<ExitCode>(127);
constexpr auto kNotExecutable = static_cast<ExitCode>(126);

Error CannotRun(const std::string& name, int error_number) {
  struct stat info;
  const std::string shown = Printable(name);
  if (error_number == EACCES && stat(name.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    return Error(kNotExecutable,
                 fmt::format("'{}' is not executable (mode {:04o})", shown, info.st_mode & 07777),
                 "", "chmod +x, or name its interpreter before it");
  }
  if (error_number == EACCES && stat(name.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return Error(kNotExecutable, fmt::format("cannot run '{}': it is a folder", shown));
  }
  // A word without a slash is looked for in PATH alone, as in every shell.
  if (error_number == ENOENT && name.find('/') == std::string::npos &&
      stat(name.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    return Error(kNotFound, fmt::format("'{}' is a file of this folder, not a command", shown), "",
                 name.ends_with(".py") ? "name its interpreter: python " + shown
                                       : "give its path: ./" + shown);
  }
  std::string why = std::strerror(error_number);
  if (!why.empty()) why[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(why[0])));
  if (error_number == ENOENT) why = "no such file or command";
  return Error(error_number == ENOENT || error_number == ENOTDIR ? kNotFound : kNotExecutable,
               fmt::format("cannot run '{}': {}", shown, why));
}

// The file a shell would execute. Throws Error.
std::string Resolve(const std::string& name) {
  const ProgramPath found = FindProgram(name);
  if (found.error != 0) throw CannotRun(name, found.error);
  return found.path;
}

}  // namespace

int ShellStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

Child Child::Start(const std::vector<std::string>& command) {
  const std::string path = Resolve(command.at(0));
  std::vector<char*> argv, script;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // A script without "#!" is the shell's, as in every shell.
  script.push_back(const_cast<char*>("sh"));
  script.push_back(const_cast<char*>(path.c_str()));
  script.insert(script.end(), argv.begin() + 1, argv.end());

  int go[2], failure[2];
  if (pipe2(go, O_CLOEXEC) != 0) throw ErrnoError(errno, "make a pipe to", command[0]);
  if (pipe2(failure, O_CLOEXEC) != 0) {
    const int error = errno;
    close(go[0]);
    close(go[1]);
    throw ErrnoError(error, "make a pipe to", command[0]);
  }
  const pid_t pid = fork();
  if (pid == 0) {
    // Ignored by this program, and that would be inherited.
    for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
    close(go[1]);
    // What looks at it before it executes the command finds it under the command's name.
    prctl(PR_SET_NAME, path.c_str() + path.rfind('/') + 1);
    char byte;
    ssize_t n;
    while ((n = read(go[0], &byte, 1)) < 0 && errno == EINTR) {
    }
    if (n != 1) _exit(125);
    execv(path.c_str(), argv.data());
    if (errno == ENOEXEC) execv("/bin/sh", script.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(failure[1], &error, sizeof error);
    _exit(error == ENOENT ? 127 : 126);
  }
  const int error = errno;
  close(go[0]);
  close(failure[1]);
  if (pid < 0) {
    close(go[1]);
    close(failure[0]);
    throw ErrnoError(error, "start", command[0]);
  }
  Child child;
  child.name_ = command[0];
  child.pid_ = pid;
  child.go_ = go[1];
  child.failure_ = failure[0];
  return child;
}

Child::Child(Child&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      go_(std::exchange(other.go_, -1)),
      failure_(std::exchange(other.failure_, -1)),
      released_(other.released_),
      status_(other.status_) {}

Child::~Child() {
  if (go_ >= 0) close(go_);  // unreleased, it ends now
  if (failure_ >= 0) close(failure_);
  if (pid_ > 0 && !released_) Wait();
}

void Child::Release() {
  released_ = true;
  [[maybe_unused]] const ssize_t n = write(go_, "x", 1);
  close(std::exchange(go_, -1));
  int error = 0;
  ssize_t got;
  // The end of the pipe: it executes the command.
  while ((got = read(failure_, &error, sizeof error)) < 0 && errno == EINTR) {
  }
  close(std::exchange(failure_, -1));
  if (got == sizeof error) throw CannotRun(name_, error);
}

int Child::Wait() {
  while (!status_) {
    int status = 0;
    const pid_t pid = waitpid(pid_, &status, 0);
    if (pid == pid_) status_ = status;
    if (pid < 0 && errno != EINTR) status_ = 0;
  }
  return *status_;
}

void Child::Signal(int signal_number) const {
  if (pid_ > 0 && !status_) kill(pid_, signal_number);
}

}  // namespace headrace::collectors
