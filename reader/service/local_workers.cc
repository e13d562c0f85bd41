#include "reader/service/local_workers.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::reader::service {
namespace {

constexpr int64_t kFirstPauseNs = 100'000'000, kMostPauseNs = 10'000'000'000;
// After one that was drained: who lends workers soon hears of a job that has ended.
constexpr int64_t kEndedPauseNs = 500'000'000;
constexpr int64_t kLongRunNs = 10'000'000'000;  // one that ran so long did not end at its start
constexpr int64_t kEndNs = 5'000'000'000;
constexpr int kNotStarted = 127;  // exit code, as a shell's

// One that was refused as one too many perhaps gets no successor (Bound).
const char* WhatFollowsEnding(int status) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::kResources:
      return "";
    case ExitCode::kUsage:
    case ExitCode::kBadData:
    case ExitCode::kPrivilege:
      return "; another is started, and will end like it until what it said is put right";
    default:
      return code == kNotStarted ? "; it could not be started at all, and is tried again"
                                 : "; another takes its place";
  }
}

}  // namespace

LocalWorkers::~LocalWorkers() {
  for (const auto& [pid, start] : children_) kill(pid, SIGTERM);
  const int64_t until = MonotonicNs() + kEndNs;
  while (!children_.empty()) {
    if (MonotonicNs() > until)
      for (const auto& [pid, start] : children_) kill(pid, SIGKILL);
    std::erase_if(children_,
                  [](const auto& child) { return waitpid(child.first, nullptr, WNOHANG) != 0; });
    usleep(5'000);
  }
}

void LocalWorkers::Start(int64_t now_ns) {
  std::vector<char*> arguments;
  for (const std::string& word : command_) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  // A signal between fork and exec would run this process's handler in the child, and be lost.
  sigset_t both, before;
  sigemptyset(&both);
  sigaddset(&both, SIGTERM);
  sigaddset(&both, SIGINT);
  pthread_sigmask(SIG_BLOCK, &both, &before);
  const pid_t pid = fork();
  const int error = errno;
  if (pid != 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) throw ErrnoError(error, "start", "a " + name_);
  if (pid == 0) {
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    // It ends with its dispatcher, also when that is killed; and only then: Ctrl-C on a terminal
    // reaches the whole group, and the dispatcher ends its workers itself.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    setpgid(0, 0);
    execv(arguments[0], arguments.data());
    _exit(kNotStarted);
  }
  children_[pid] = now_ns;
}

void LocalWorkers::Ended(pid_t pid, int status, int64_t now_ns,
                         std::vector<std::string>* failures) {
  const int64_t ran_ns = now_ns - children_.at(pid);
  children_.erase(pid);
  if (draining_.erase(pid) > 0) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    wanted_ -= std::min(wanted_, 1u);
    next_start_ns_ = now_ns + kEndedPauseNs;
    return;
  }
  pause_ns_ =
      ran_ns > kLongRunNs ? kFirstPauseNs : std::clamp(2 * pause_ns_, kFirstPauseNs, kMostPauseNs);
  next_start_ns_ = now_ns + pause_ns_;
  failures->push_back(fmt::format("{} {} {}{}", name_, pid,
                                  WIFEXITED(status)
                                      ? fmt::format("ended with exit code {}", WEXITSTATUS(status))
                                      : fmt::format("was killed by signal {}", WTERMSIG(status)),
                                  WhatFollowsEnding(status)));
}

void LocalWorkers::DrainTo(uint32_t workers, int64_t until_ns) {
  std::vector<std::pair<int64_t, pid_t>> latest;
  for (const auto& [pid, start] : children_)
    if (!draining_.contains(pid)) latest.emplace_back(start, pid);
  std::sort(latest.rbegin(), latest.rend());
  for (const auto& [start, pid] : latest) {
    if (working() <= workers) return;
    draining_[pid] = until_ns;
    kill(pid, SIGTERM);
  }
}

// To start them again would be in vain, and so would others be.
void LocalWorkers::Bound(uint32_t refused, std::vector<std::string>* failures) {
  if (refused == 0) return;
  most_ = std::max<uint32_t>(1, wanted_ - std::min(wanted_, refused));
  wanted_ = std::min(wanted_, most_);
  failures->push_back(
      fmt::format("runs {} worker{} from now on: more ended with exit code {}, which says that a "
                  "rank or the dispatcher takes no more, or that there is no memory for them",
                  most_, most_ == 1 ? "" : "s", static_cast<int>(ExitCode::kResources)));
}

std::vector<std::string> LocalWorkers::Turn(int64_t now_ns) {
  std::vector<std::string> failures;
  uint32_t refused = 0;
  std::vector<pid_t> pids;
  for (const auto& [pid, start] : children_) pids.push_back(pid);
  for (const pid_t pid : pids) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(ExitCode::kResources) &&
        wanted_ > 1 + refused && !draining_.contains(pid)) {
      children_.erase(pid);
      ++refused;
    } else {
      Ended(pid, status, now_ns, &failures);
    }
  }
  Bound(refused, &failures);
  for (const auto& [pid, until_ns] : draining_)
    if (now_ns > until_ns) kill(pid, SIGKILL);
  while (working() < wanted_ && now_ns >= next_start_ns_) Start(now_ns);
  return failures;
}

}  // namespace headrace::reader::service
