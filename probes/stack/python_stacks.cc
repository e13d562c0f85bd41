#include "probes/stack/python_stacks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/library_processes.h"
#include "base/program_path.h"
#include "base/terminal_text.h"
#include "probes/helper_cpu.h"
#include "probes/process.h"
#include "probes/process_identity.h"
#include "probes/stack/py_spy_text.h"

namespace headrace::probes::stack {
namespace {

constexpr size_t kMostSpies = 12;
// Begun at one read. Reads may be seconds apart, so that one would come too late to a short
// training; each takes some 0.25 s of CPU time to begin.
constexpr size_t kMostAtOnce = 4;
// A process that ends younger than that was short-lived; so long after one the next are expected.
constexpr int64_t kYoungNs = 10'000'000'000, kCalmNs = 30'000'000'000;
// So long after it was first seen a process may still become what it was started for.
constexpr int64_t kNewNs = 3'000'000'000;
constexpr int64_t kCpuLookNs = 1'000'000'000;  // what a process computes is looked at so often
constexpr size_t kMostStacks = 20'000;
constexpr size_t kMostBytes = 16 << 20;  // of frames that are kept, and of what one run writes
constexpr int kMostFailures = 5;
constexpr int64_t kRetryNs = 1'000'000'000, kLastWaitNs = 2'000'000'000, kPollNs = 5'000'000;
constexpr int kOutputFd = 3;  // of py-spy
constexpr char kProbeName[] = "Python stacks";

constexpr char kFix[] = "pip install py-spy, in an environment that is on the PATH";

// At most kMostBytes, in whole lines; `is_cut`: there was more.
std::string ReadFile(int fd, bool* is_cut) {
  struct stat info;
  *is_cut = false;
  if (fstat(fd, &info) != 0 || info.st_size <= 0) return "";
  std::string text(std::min(static_cast<size_t>(info.st_size), kMostBytes), '\0');
  const ssize_t n = pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  *is_cut = text.size() < static_cast<size_t>(info.st_size);
  if (*is_cut) text.resize(text.rfind('\n') + 1);
  return text;
}

int64_t CpuNs(const rusage& usage) {
  const auto ns = [](const timeval& t) { return t.tv_sec * 1'000'000'000 + t.tv_usec * 1000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// In the child: only what may be called between fork and exec.
[[noreturn]] void Become(const std::vector<char*>& argv, pid_t parent, int output, int messages) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // it records for nobody else
  if (getppid() != parent) _exit(125);
  setpgid(0, 0);  // Ctrl-C is for the recording, which ends it then
  // What is blocked or ignored here is not there.
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(messages, STDERR_FILENO);
  dup2(output, kOutputFd);
  execv(argv[0], argv.data());
  _exit(127);
}

// Starts it with `output` as its descriptor kOutputFd and its words in `messages`. Returns errno.
int Spawn(const std::vector<std::string>& command, int output, int messages, pid_t* child) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  // Above the numbers that the child puts in their place.
  const int high_output = fcntl(output, F_DUPFD_CLOEXEC, 16);
  const int high_messages = fcntl(messages, F_DUPFD_CLOEXEC, 16);
  const pid_t parent = getpid();
  *child = high_output < 0 || high_messages < 0 ? -1 : fork();
  if (*child == 0) Become(argv, parent, high_output, high_messages);
  const int error = errno;
  for (const int fd : {high_output, high_messages}) {
    if (fd >= 0) close(fd);
  }
  return *child < 0 ? error : 0;
}

// Threads of one kind have one name: "Thread-12 (work)" is "Thread (work)".
std::string ThreadKind(const std::string& name) {
  const size_t target = std::min(name.find(" ("), name.size());
  return ThreadGroupLabel(name.substr(0, target), false) + name.substr(target);
}

// The words of its command line. A process that is just becoming another program has none for a
// moment.
std::string CommandOf(const Host& host, const std::string& process) {
  constexpr int kTries = 20;
  constexpr timespec kPause = {0, 1'000'000};
  std::optional<std::string> command = host.Read(process + "/cmdline");
  for (int i = 0; i < kTries && command && command->empty(); ++i) {
    nanosleep(&kPause, nullptr);
    command = host.Read(process + "/cmdline");
  }
  return command.value_or("");
}

// Where the files of a Python program's own modules are: the folder of its script, and the one that
// it works in, as this process reaches them.
std::vector<std::string> FoldersOf(const Host& host, int64_t pid) {
  char link[4096];
  const std::string process = fmt::format("/proc/{}", pid);
  const ssize_t n = readlink(host.Path(process + "/cwd").c_str(), link, sizeof link);
  // The last stacks are written down when the process has ended: it has no /proc/PID/root then.
  struct stat own = {}, its = {};
  const bool same = stat("/", &own) == 0 && stat(host.Path(process + "/root").c_str(), &its) == 0 &&
                    own.st_dev == its.st_dev && own.st_ino == its.st_ino;
  const std::string root = same ? "" : process + "/root",
                    cwd(link, n > 0 ? static_cast<size_t>(n) : 0);
  std::vector<std::string> folders;
  const std::string command = CommandOf(host, process);
  std::string_view words = command;
  while (!words.empty()) {
    const size_t end = std::min(words.find('\0'), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (!word.ends_with(".py")) continue;
    const size_t slash = word.rfind('/');
    const std::string folder(slash == std::string_view::npos ? "" : word.substr(0, slash));
    folders.push_back(host.Path(root + (word[0] == '/' ? folder : cwd + "/" + folder)));
    break;  // further ones are arguments of the script
  }
  folders.push_back(host.Path(root + cwd));
  return folders;
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
    return Availability::Unavailable("no /proc of a running machine", kFix);
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
  const std::string path(link, n > 0 ? static_cast<size_t>(n) : 0);
  const auto [it, is_new] = programs_.try_emplace(pid);
  Program& program = it->second;
  if (is_new) program.seen_ns = MonotonicNs();
  if (is_new || program.path != path) {
    program.path = path;
    program.is_python = path.substr(path.rfind('/') + 1).starts_with("python");
    if (!program.is_python) {
      const std::optional<std::string> maps = host_->Read(fmt::format("/proc/{}/maps", pid));
      program.is_python = maps && maps->find("/libpython3.") != std::string::npos;
    }
  }
  // A child has its parent's words until it becomes another program, which may be Python again.
  if (program.is_python && MonotonicNs() - program.seen_ns < kNewNs) {
    program.command = CommandOf(*host_, fmt::format("/proc/{}", pid));
    std::replace(program.command.begin(), program.command.end(), '\0', ' ');
  }
  return program.is_python;
}

// Ray renames a process when it gives it something to do.
bool PythonStacks::IsService(int64_t pid, const std::string& name) {
  const auto program = programs_.find(pid);
  return !ServiceName(name, program == programs_.end() ? "" : program->second.command).empty();
}

// Python processes, by the topmost Python process of the target above them.
void PythonStacks::FindGroups() {
  std::set<int64_t> python, services;
  for (const int64_t pid : target_->pids) {
    const auto stat = ReadProcessStat(pid);
    const bool is_python = IsPython(pid);
    if (stat && IsService(pid, stat->name)) {
      services.insert(pid);
    } else if (is_python) {
      python.insert(pid);
    }
  }
  processes_ = python.size();
  const int64_t now = MonotonicNs();
  const std::set<int64_t> live(target_->pids.begin(), target_->pids.end());
  std::map<int64_t, int64_t> roots;  // of each process
  for (const int64_t pid : python) {
    int64_t& root = roots[pid] = pid;
    bool is_of_service = false;
    int64_t parent = pid;
    for (int depth = 0; depth < 64; ++depth) {
      const auto stat = ReadProcessStat(parent);
      if (!stat || !live.contains(stat->parent_pid)) break;
      parent = stat->parent_pid;
      is_of_service = is_of_service || services.contains(parent);
      if (python.contains(parent)) root = parent;
    }
    Group& group = groups_.try_emplace(root, Group{now, 0, {}}).first->second;
    Member& member = group.members.try_emplace(pid, Member{now, is_of_service}).first->second;
    const int64_t passed_ns = now - member.cpu_read_ns;
    if (passed_ns < kCpuLookNs) continue;
    const auto stat = ReadProcessStat(pid);
    if (!stat) continue;
    if (member.cpu_read_ns != 0) {
      member.cores = static_cast<double>(std::max<int64_t>(0, stat->cpu_ns - member.cpu_ns)) /
                     static_cast<double>(passed_ns);
    }
    member.cpu_ns = stat->cpu_ns;
    member.cpu_read_ns = now;
  }
  for (auto& [root, group] : groups_) {
    std::erase_if(group.members, [&, root = root, &group = group](const auto& member) {
      const auto found = roots.find(member.first);
      if (found != roots.end() && found->second == root) return false;
      const bool has_ended = found == roots.end() && !services.contains(member.first);
      const Member& seen = member.second;
      // Who loads its libraries runs tools, which are Python for a moment.
      const bool is_young = now - seen.seen_ns < kYoungNs;
      if (has_ended && !seen.is_of_service && is_young && !IsYoung(group)) {
        group.short_lived_ns = now;
      }
      return true;
    });
  }
  std::erase_if(groups_, [](const auto& each) { return each.second.members.empty(); });
  std::erase_if(programs_, [&](const auto& each) { return !live.contains(each.first); });
  std::erase_if(failures_, [&](const auto& each) { return !live.contains(each.first); });
  std::erase_if(had_run_, [&](const auto& each) { return !live.contains(each.first); });
  std::erase_if(next_ns_, [&](const auto& each) { return !live.contains(each.first); });
  std::erase_if(loops_, [&](const auto& each) {
    return !groups_.contains(each.first) &&
           std::none_of(spies_.begin(), spies_.end(),
                        [&](const auto& spy) { return spy.second.root == each.first; });
  });
}

bool PythonStacks::IsYoung(const Group& group) const {
  return MonotonicNs() - group.begun_ns < options_.first_s * 1'000'000'000;
}

// Whether one run is to find the group's processes by itself: they may not last, or are too many
// for runs of their own.
bool PythonStacks::FollowsChildren(const Group& group) const {
  return IsYoung(group) || processes_ > kMostSpies ||
         (group.short_lived_ns != 0 && MonotonicNs() - group.short_lived_ns < kCalmNs);
}

// Of a run for that process: half of all samples are spread evenly, as what waits says whom it
// waits for, and half by CPU time; of a run that follows children, all evenly.
int PythonStacks::SamplesPerS(int64_t pid, bool with_children) const {
  double all = 0;
  std::optional<double> its;
  for (const auto& [root, group] : groups_) {
    for (const auto& [member_pid, member] : group.members) {
      all += member.cores.value_or(0);
      if (member_pid == pid) its = member.cores;
    }
  }
  const double even = 1 / static_cast<double>(std::max<size_t>(processes_, 1));
  const double share = its && all > 0 && !with_children ? (even + *its / all) / 2 : even;
  return std::clamp(static_cast<int>(options_.processes_per_s * share), 1, options_.samples_per_s);
}

// Ends the runs of the other kind that see the group's processes. Whether there are some still.
bool PythonStacks::EndsOthers(int64_t root, const Group& group, bool with_children) {
  bool any = false;
  const int64_t now = MonotonicNs();
  for (auto& [pid, spy] : spies_) {
    const bool sees = spy.root == root || group.members.contains(pid);
    if (!sees || spy.with_children == with_children) continue;
    any = true;
    if (spy.told_ns == 0) {
      spy.told_ns = now;
      kill(spy.child, SIGINT);
    } else if (now - spy.told_ns > kLastWaitNs) {
      kill(spy.child, SIGKILL);
    }
  }
  return any;
}

void PythonStacks::BeginAll() {
  const int64_t now = MonotonicNs();
  size_t given_up = 0, wanted = 0;
  struct Waiting {
    bool had_one;
    int64_t cpu_ns, pid, root;
  };
  std::vector<Waiting> waiting;  // for a run of their own
  unseen_ = 0;
  for (const auto& [root, group] : groups_) {
    const bool with_children = FollowsChildren(group);
    if (EndsOthers(root, group, with_children)) {
      wanted++;
      continue;
    }
    std::vector<int64_t> pids = {root};
    if (!with_children) {
      pids.clear();
      for (const auto& [pid, member] : group.members) pids.push_back(pid);
    }
    wanted += pids.size();
    for (const int64_t pid : pids) {
      if (spies_.contains(pid)) continue;
      if (failures_[pid] >= kMostFailures) {
        given_up++;
      } else if (spies_.size() >= kMostSpies) {
        unseen_++;
      } else if (now >= next_ns_[pid]) {
        if (with_children) {
          Begin(pid, root, true);
        } else {
          const auto stat = ReadProcessStat(pid);
          waiting.push_back({had_run_.contains({pid, false}), stat ? stat->cpu_ns : 0, pid, root});
        }
      }
    }
  }
  // Those that had none come first, and of these who computes most: of a launcher there is nothing
  // to see.
  const size_t at_once = std::min(waiting.size(), kMostAtOnce);
  std::partial_sort(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(at_once),
                    waiting.end(), [](const Waiting& a, const Waiting& b) {
                      return std::pair(a.had_one, b.cpu_ns) < std::pair(b.had_one, a.cpu_ns);
                    });
  for (size_t i = 0; i < at_once && spies_.size() < kMostSpies; ++i) {
    Begin(waiting[i].pid, waiting[i].root, false);
  }
  if (given_up > 0 && given_up == wanted && samples_ == 0) {
    throw Error(ExitCode::kFailure, why_);
  }
  unseen_ += static_cast<int64_t>(given_up);
}

void PythonStacks::Begin(int64_t pid, int64_t root, bool with_children) {
  auto loops = loops_.find(root);
  const bool is_new = loops == loops_.end();
  if (is_new) loops = loops_.try_emplace(root, FoldersOf(*host_, root)).first;
  const auto stat = is_new ? ReadProcessStat(root) : std::nullopt;
  if (stat) {
    // The clock of files may have been set since: a minute counts as nothing.
    constexpr int64_t kSlackS = 60;
    const int64_t age_ns = MonotonicNs() - StartedMonotonicNs(stat->start_ticks);
    loops->second.IgnoreChangedAfter(std::time(nullptr) - age_ns / 1'000'000'000 + kSlackS);
  }
  Spy spy;
  spy.root = root;
  spy.with_children = with_children;
  spy.samples_per_s = SamplesPerS(pid, with_children);
  spy.output = memfd_create("headrace-python-stacks", MFD_CLOEXEC);
  spy.messages = memfd_create("headrace-python-messages", MFD_CLOEXEC);
  const auto group = groups_.find(root);
  const bool is_young = with_children && group != groups_.end() && IsYoung(group->second);
  const bool is_known = had_run_.contains({pid, with_children});
  const int64_t seconds = is_young   ? std::min(options_.chunk_s, options_.first_s)
                          : is_known ? options_.chunk_s
                                     : std::min(options_.chunk_s, options_.second_s);
  std::vector<std::string> command = {path_,
                                      "record",
                                      "--nonblocking",
                                      "--threads",
                                      "--idle",
                                      "--pid",
                                      std::to_string(pid),
                                      "--rate",
                                      std::to_string(spy.samples_per_s),
                                      "--duration",
                                      std::to_string(seconds),
                                      "--format",
                                      "raw",
                                      "--output",
                                      fmt::format("/proc/self/fd/{}", kOutputFd)};
  if (with_children) command.push_back("--subprocesses");
  const int error = spy.output < 0 || spy.messages < 0
                        ? errno
                        : Spawn(command, spy.output, spy.messages, &spy.child);
  if (error == 0) {
    spy.begun_ns = MonotonicNs();
    const bool had_run = !had_run_.emplace(pid, with_children).second;
    spy.is_first = is_young && !had_run;
    // Where processes follow each other, so do the starts of their runs.
    spy.is_again = had_run || starts_++ >= kMostSpies;
    spies_[pid] = spy;
    return;
  }
  for (const int fd : {spy.output, spy.messages}) {
    if (fd >= 0) close(fd);
  }
  why_ = fmt::format("{}: {}", options_.program, std::strerror(error));
  failures_[pid]++;
  next_ns_[pid] = MonotonicNs() + kRetryNs;
}

void PythonStacks::Keep(const std::string& text, int64_t pid, const Spy& spy) {
  const int64_t period_ns = 1'000'000'000 / spy.samples_per_s;
  PythonLoops& loops = loops_.try_emplace(spy.root, std::vector<std::string>()).first->second;
  PySpyText parsed = ParsePySpyText(text);
  refused_lines_ += parsed.refused_lines;
  for (PythonStack& stack : parsed.stacks) {
    samples_ += stack.samples;
    // Only a run that follows children says whose it is.
    const int64_t owner = stack.pid != 0 ? stack.pid : pid;
    // A program that has not imported threading has no names for its threads.
    if (stack.tid == owner) stack.thread = "MainThread";
    Key key{owner, ThreadKind(stack.thread), loops.Mark(stack.frames)};
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

void PythonStacks::End(int64_t pid, Spy* spy, int status) {
  bool is_cut = false;
  const std::string text = ReadFile(spy->output, &is_cut);
  Keep(text, pid, *spy);
  if (is_cut) refused_lines_++;
  const bool failed = text.empty() && status != 0 && spy->told_ns == 0;
  if (failed && IsAlive(pid)) {
    const std::string words = FirstLine(ReadFile(spy->messages, &is_cut));
    why_ = fmt::format("{}: {}", options_.program, words.empty() ? "ended at once" : words);
    failures_[pid]++;
    next_ns_[pid] = MonotonicNs() + kRetryNs;
  } else {
    failures_.erase(pid);
    next_ns_.erase(pid);
  }
  close(spy->output);
  close(spy->messages);
  spies_.erase(pid);
}

// What of `used_ns` is done only once; below 0 where more was taken for that before. A run reads
// the symbols of each process's interpreter and libraries first. What it used up to the first look
// at it is taken for that, until the second look tells how much the samples take.
int64_t PythonStacks::OnceNs(Spy* spy, int64_t used_ns) {
  if (spy->is_first) return used_ns;
  if (spy->is_again) return 0;
  const int64_t now = MonotonicNs();
  const int looks = spy->looks++;
  if (looks == 0) {
    spy->first_look_ns = now;
    spy->start_ns = used_ns;
    return used_ns;
  }
  if (looks != 1) return 0;
  const double per_ns = static_cast<double>(used_ns) /
                        static_cast<double>(std::max<int64_t>(now - spy->first_look_ns, 1));
  const double samples_ns = per_ns * static_cast<double>(spy->first_look_ns - spy->begun_ns);
  return -std::min(static_cast<int64_t>(samples_ns), spy->start_ns);
}

// Takes what a run left, if it has ended, and its CPU time in any case.
void PythonStacks::Watch(int64_t pid, Spy* spy) {
  int status = 0;
  rusage usage = {};
  const pid_t ended = wait4(spy->child, &status, WNOHANG, &usage);
  int64_t cpu_ns = spy->cpu_ns;
  if (ended == spy->child) {
    cpu_ns = CpuNs(usage);
  } else if (const auto stat = ReadProcessStat(spy->child)) {
    cpu_ns = stat->cpu_ns;
  }
  const int64_t used_ns = std::max<int64_t>(0, cpu_ns - spy->cpu_ns);
  HelperCpuNs() += used_ns;
  spy->cpu_ns += used_ns;
  const int64_t once_ns = OnceNs(spy, used_ns);
  OnceCpuNs() += once_ns;
  LastingHelperCpuNs()[kProbeName] += used_ns - once_ns;
  if (ended != 0) End(pid, spy, ended < 0 ? -1 : status);
}

void PythonStacks::WaitForAll() {
  for (const auto& [pid, spy] : spies_) {
    if (spy.told_ns == 0) kill(spy.child, SIGINT);
  }
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
    FindGroups();
    BeginAll();
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
  for (auto& [pid, spy] : spies_) {
    kill(spy.child, SIGKILL);
    waitpid(spy.child, nullptr, 0);
    close(spy.output);
    close(spy.messages);
  }
  spies_.clear();
  target_ = nullptr;
}

HR_PROBE(
    kProbeName,
    {.summary = "Python functions with file and line, busy or waiting, up to 10 times a second "
                "(py-spy)",
     .affects = "which Python functions take the time",
     .level = 3,
     .period_ns = 500'000'000,
     .check = [](const Host& host) { return PythonStacks::Check(host, "py-spy"); },
     .make = [] { return std::make_unique<PythonStacks>(); }});

}  // namespace headrace::probes::stack
