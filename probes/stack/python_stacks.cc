#include "probes/stack/python_stacks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/program_path.h"
#include "base/terminal_text.h"
#include "probes/helper_cpu.h"
#include "probes/process.h"
#include "probes/stack/py_spy_text.h"

extern char** environ;

namespace headrace::probes::stack {
namespace {

constexpr size_t kMostSpies = 4;
constexpr size_t kMostStacks = 20'000;
constexpr size_t kMostBytes = 16 << 20;  // of frames that are kept, and of what one run writes
constexpr int kMostFailures = 5;
constexpr int64_t kRetryNs = 1'000'000'000, kLastWaitNs = 2'000'000'000, kPollNs = 5'000'000;
constexpr int kOutputFd = 3;  // of py-spy

constexpr char kFix[] = "pip install py-spy, in an environment that is on the PATH";

std::string ReadFile(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size <= 0) return "";
  std::string text(std::min(static_cast<size_t>(info.st_size), kMostBytes), '\0');
  const ssize_t n = pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

int64_t CpuNs(const rusage& usage) {
  const auto ns = [](const timeval& t) { return t.tv_sec * 1'000'000'000 + t.tv_usec * 1000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// Starts it with `output` as its descriptor kOutputFd and its words in `messages`. Returns errno.
int Spawn(const std::vector<std::string>& command, int output, int messages, pid_t* child) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, messages, 2);
  posix_spawn_file_actions_adddup2(&actions, output, kOutputFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Ctrl-C is for the recording, which ends it then; what is blocked or ignored here is not there.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int error =
      posix_spawn(child, command[0].c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// What it says of its failure, on one line.
std::string FirstLine(const std::string& text) {
  const size_t error = text.find("Error: ");
  std::string line = error == std::string::npos ? text : text.substr(error + 7);
  line.erase(std::min(line.find('\n'), line.size()));
  return Printable(line, 200);
}

}  // namespace

Availability PythonStacks::Check(const Host& host, const std::string& program) {
  if (!host.is_this_machine())
    return Availability::Unavailable("no /proc of a running machine", "");
  const ProgramPath found = FindProgram(program);
  if (found.error != 0) {
    return Availability::Unavailable(
        fmt::format("functions of Python programs are not named: {} {}", program,
                    found.error == ENOENT ? "is not installed" : "cannot be run"),
        kFix);
  }
  return Availability::Ok();
}

Availability PythonStacks::Start(const Host& host, const Target& target) {
  const Availability found = Check(host, options_.program);
  if (!found.usable()) return found;
  path_ = FindProgram(options_.program).path;
  host_ = &host;
  target_ = &target;
  return found;
}

bool PythonStacks::IsPython(int64_t pid) {
  char link[512];
  const ssize_t n =
      readlink(host_->Path(fmt::format("/proc/{}/exe", pid)).c_str(), link, sizeof link);
  if (n > 0) {
    const std::string_view program(link, static_cast<size_t>(n));
    const std::string_view name = program.substr(program.rfind('/') + 1);
    if (name.starts_with("python")) return true;
  }
  const std::optional<std::string> maps = host_->Read(fmt::format("/proc/{}/maps", pid));
  return maps && maps->find("/libpython3.") != std::string::npos;
}

// Python processes that no other Python process of the target started.
std::vector<int64_t> PythonStacks::Roots() {
  std::map<int64_t, bool> known;
  for (const int64_t pid : target_->pids) {
    const auto before = python_.find(pid);
    // A program may become Python's by exec: what was not is looked at again.
    known[pid] = before != python_.end() && before->second ? true : IsPython(pid);
  }
  python_ = std::move(known);
  std::vector<int64_t> roots;
  for (const auto& [pid, python] : python_) {
    if (!python) continue;
    int64_t parent = pid;
    bool below = false;
    for (int depth = 0; depth < 64 && !below; ++depth) {
      const auto stat = ReadProcessStat(parent);
      if (!stat || !python_.contains(stat->parent_pid)) break;
      parent = stat->parent_pid;
      below = python_[parent];
    }
    if (!below) roots.push_back(pid);
  }
  return roots;
}

void PythonStacks::Begin(int64_t root, size_t processes) {
  Spy spy;
  spy.samples_per_s =
      std::clamp(options_.processes_per_s / static_cast<int>(std::max<size_t>(processes, 1)), 1,
                 options_.samples_per_s);
  spy.output = memfd_create("headrace-python-stacks", MFD_CLOEXEC);
  spy.messages = memfd_create("headrace-python-messages", MFD_CLOEXEC);
  const int error =
      spy.output < 0 || spy.messages < 0
          ? errno
          : Spawn({path_, "record", "--nonblocking", "--subprocesses", "--threads", "--idle",
                   "--pid", std::to_string(root), "--rate", std::to_string(spy.samples_per_s),
                   "--duration", std::to_string(options_.chunk_s), "--format", "raw", "--output",
                   fmt::format("/proc/self/fd/{}", kOutputFd)},
                  spy.output, spy.messages, &spy.child);
  if (error == 0) {
    spies_[root] = spy;
    return;
  }
  for (const int fd : {spy.output, spy.messages}) {
    if (fd >= 0) close(fd);
  }
  why_ = fmt::format("{}: {}", options_.program, std::strerror(error));
  failures_[root]++;
  next_ns_[root] = MonotonicNs() + kRetryNs;
}

void PythonStacks::Keep(const std::string& text, int samples_per_s) {
  const int64_t period_ns = 1'000'000'000 / samples_per_s;
  PySpyText parsed = ParsePySpyText(text);
  refused_lines_ += parsed.refused_lines;
  for (PythonStack& stack : parsed.stacks) {
    samples_ += stack.samples;
    Key key{stack.pid, std::move(stack.thread), std::move(stack.frames)};
    auto it = totals_.find(key);
    if (it == totals_.end()) {
      const size_t bytes = key.frames.size() + key.thread.size();
      if (totals_.size() >= kMostStacks || bytes_ + bytes > kMostBytes) {
        overflowed_ += stack.samples;
        key.frames = "[other stacks]";
      } else {
        bytes_ += bytes;
      }
      it = totals_.emplace(std::move(key), Total()).first;
    }
    it->second.samples += stack.samples;
    it->second.time_ns += stack.samples * period_ns;
    it->second.changed = true;
  }
}

void PythonStacks::End(int64_t root, Spy* spy, int status) {
  const std::string text = ReadFile(spy->output);
  Keep(text, spy->samples_per_s);
  const bool failed = text.empty() && status != 0;
  if (failed && IsAlive(root)) {
    const std::string words = FirstLine(ReadFile(spy->messages));
    why_ = fmt::format("{}: {}", options_.program, words.empty() ? "ended at once" : words);
    failures_[root]++;
    next_ns_[root] = MonotonicNs() + kRetryNs;
  } else {
    failures_.erase(root);
    next_ns_.erase(root);
  }
  close(spy->output);
  close(spy->messages);
  spies_.erase(root);
}

// Takes what a run left, if it has ended, and its CPU time in any case.
void PythonStacks::Watch(int64_t root, Spy* spy) {
  int status = 0;
  rusage usage = {};
  const pid_t ended = wait4(spy->child, &status, WNOHANG, &usage);
  int64_t cpu_ns = spy->cpu_ns;
  if (ended == spy->child) {
    cpu_ns = CpuNs(usage);
  } else if (const auto stat = ReadProcessStat(spy->child)) {
    cpu_ns = stat->cpu_ns;
  }
  HelperCpuNs() += std::max<int64_t>(0, cpu_ns - spy->cpu_ns);
  spy->cpu_ns = std::max(spy->cpu_ns, cpu_ns);
  if (ended != 0) End(root, spy, ended < 0 ? -1 : status);
}

void PythonStacks::WaitForAll() {
  for (const auto& [root, spy] : spies_) kill(spy.child, SIGINT);
  const int64_t until = MonotonicNs() + kLastWaitNs;
  while (!spies_.empty() && MonotonicNs() < until) {
    for (auto it = spies_.begin(); it != spies_.end();) {
      const auto next = std::next(it);
      Watch(it->first, &it->second);
      it = next;
    }
    if (spies_.empty()) break;
    const timespec pause = {0, kPollNs};
    nanosleep(&pause, nullptr);
  }
  unseen_ += static_cast<int64_t>(spies_.size());
}

void PythonStacks::Read(Sink& sink) {
  if (!target_) return;
  for (auto it = spies_.begin(); it != spies_.end();) {
    const auto next = std::next(it);
    Watch(it->first, &it->second);
    it = next;
  }
  if (target_->ending) {
    WaitForAll();
  } else if (!target_->root_held) {
    const std::vector<int64_t> roots = Roots();
    const auto processes = static_cast<size_t>(std::count_if(
        python_.begin(), python_.end(), [](const auto& each) { return each.second; }));
    const int64_t now = MonotonicNs();
    size_t given_up = 0;
    unseen_ = 0;
    for (const int64_t root : roots) {
      if (spies_.contains(root)) continue;
      if (failures_[root] >= kMostFailures) {
        given_up++;
      } else if (spies_.size() >= kMostSpies) {
        unseen_++;
      } else if (now >= next_ns_[root]) {
        Begin(root, processes);
      }
    }
    if (given_up > 0 && given_up == roots.size() && samples_ == 0) {
      throw Error(ExitCode::kFailure, why_);
    }
    unseen_ += static_cast<int64_t>(given_up);
  }
  for (auto& [key, total] : totals_) {
    if (!total.changed) continue;
    total.changed = false;
    const std::string thread = key.thread.empty() ? "python" : key.thread;
    sink.AddStack({key.pid, std::nullopt, thread, "python", thread + ";" + key.frames,
                   total.samples, total.time_ns});
  }
  sink.Lost("lines of Python stacks", refused_lines_, std::nullopt);
  sink.Lost("Python stacks not separated", overflowed_, samples_);
  sink.Lost("Python processes without stacks", unseen_, std::nullopt);
}

void PythonStacks::Stop() {
  for (auto& [root, spy] : spies_) {
    kill(spy.child, SIGKILL);
    waitpid(spy.child, nullptr, 0);
    close(spy.output);
    close(spy.messages);
  }
  spies_.clear();
  target_ = nullptr;
}

HR_PROBE(
    "Python stacks",
    {.summary = "Python functions with file and line, busy or waiting, up to 10 times a second "
                "(py-spy)",
     .affects = "which Python functions take the time",
     .level = 3,
     .period_ns = 500'000'000,
     .check = [](const Host& host) { return PythonStacks::Check(host, "py-spy"); },
     .make = [] { return std::make_unique<PythonStacks>(); }});

}  // namespace headrace::probes::stack
