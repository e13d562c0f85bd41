#include "probes/threads/wait_sampler.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "probes/probe.h"
#include "probes/process.h"

namespace headrace::probes {
namespace {

constexpr size_t kMaxThreads = 4096;
constexpr int kNameEvery = 16;  // readings between two looks at a thread's name
constexpr int64_t kWaitPeriodNs = 100'000'000;

template <size_t N>
bool IsOneOf(int64_t number, const std::array<int64_t, N>& list) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

constexpr std::array<int64_t, 4> kLocks = {SYS_futex, SYS_fcntl, SYS_flock,
#ifdef SYS_futex_waitv
                                           SYS_futex_waitv};
#else
                                           SYS_futex};
#endif
constexpr std::array<int64_t, 2> kSleeps = {SYS_nanosleep, SYS_clock_nanosleep};
constexpr std::array<int64_t, 9> kSockets = {SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
                                             SYS_sendto,   SYS_sendmsg, SYS_sendmmsg,
                                             SYS_accept,   SYS_accept4, SYS_connect};
constexpr std::array<int64_t, 10> kReads = {SYS_read,     SYS_write,    SYS_readv,  SYS_writev,
                                            SYS_pread64,  SYS_pwrite64, SYS_preadv, SYS_pwritev,
                                            SYS_sendfile, SYS_splice};
constexpr std::array<int64_t, 7> kPolls = {SYS_ppoll,       SYS_pselect6, SYS_epoll_pwait,
#ifdef SYS_poll  // not on every architecture
                                           SYS_poll,        SYS_select,   SYS_epoll_wait,
#else
                                           SYS_ppoll, SYS_ppoll,    SYS_ppoll,
#endif
#ifdef SYS_epoll_pwait2
                                           SYS_epoll_pwait2};
#else
                                           SYS_ppoll};
#endif
constexpr std::array<int64_t, 2> kChildren = {SYS_wait4, SYS_waitid};
constexpr std::array<int64_t, 7> kStorage = {
    SYS_fsync,        SYS_fdatasync,      SYS_msync,          SYS_sync,
    SYS_io_getevents, SYS_io_uring_enter, SYS_sync_file_range};

std::string_view FirstWord(std::string_view text) {
  return text.substr(0, std::min(text.find_first_of(" \n"), text.size()));
}

struct Growth {
  int64_t on_cpu_ns = 0, runnable_ns = 0;
  std::map<std::string, int64_t> blocked_ns;  // by cause
};

struct Thread {
  std::string label;
  int64_t seen_ns = 0;
  TaskTime time;
  std::string cause;    // as last seen; "" not yet
  int64_t debt_ns = 0;  // waited, but on a CPU whenever it was asked what for
  int readings = 0;
};

class WaitSampler final : public Probe {
 public:
  Availability Start(const Host& host, const Target& target) override {
    host_ = &host;
    target_ = &target;
    for (const auto& [name, info] : Registry<ProbeInfo>::Global().entries()) {
      if (name != "off-CPU time") continue;
      if (info.check && info.check(host).usable()) {
        return Availability::Unavailable(
            "not needed: the kernel counts causes exactly (" + name + ")", "");
      }
    }
    const std::string task = fmt::format("/proc/{0}/task/{0}", target.root_pid);
    if (!host.Read(task + "/schedstat", 128)) {
      const int error = errno;
      return Availability::Unavailable(fmt::format("{}/schedstat: {}", task, std::strerror(error)),
                                       "a kernel with CONFIG_SCHED_INFO");
    }
    std::string refused;
    if (!host.Read(task + "/syscall", 256)) {
      refused = fmt::format("{}/syscall: {}", task, std::strerror(errno));
      by_function_ = true;
    }
    if (by_function_) {
      const auto function = host.Read(task + "/wchan", 256);
      const std::string fix = "CAP_SYS_PTRACE, or start it with 'headrace profile -- COMMAND'";
      if (!function) return Availability::Unavailable(refused, fix);
      return Availability::Degraded(refused + "; kernel functions (wchan) stand in", fix);
    }
    return Availability::Degraded("causes of waits are sampled, not counted",
                                  "CAP_BPF and CAP_PERFMON");
  }

  void Read(Sink& sink) override {
    std::set<std::pair<int64_t, int64_t>> seen;
    int64_t left_out = 0;
    for (const int64_t pid : target_->pids) {
      for (const std::string& name : host_->List(fmt::format("/proc/{}/task", pid))) {
        int64_t tid = 0;
        const auto parsed = std::from_chars(name.data(), name.data() + name.size(), tid);
        if (parsed.ec != std::errc()) continue;
        if (seen.size() >= kMaxThreads) {
          ++left_out;
          continue;
        }
        if (Sample(pid, tid)) seen.insert({pid, tid});
      }
    }
    for (auto it = threads_.begin(); it != threads_.end();) {
      if (seen.contains(it->first)) {
        ++it;
        continue;
      }
      Settle(it->first.first, &it->second);
      it = threads_.erase(it);
    }
    most_left_out_ = std::max(most_left_out_, left_out);
    if (most_left_out_ > 0) {
      sink.Lost("threads whose waits were not sampled", most_left_out_,
                static_cast<int64_t>(kMaxThreads) + most_left_out_);
    }
    for (const auto& [group, growth] : groups_) {
      Measurement m;
      m.labels.pid = group.first;
      m.labels.thread = group.second;
      m.metric = "sampled_on_cpu_ns";
      m.value = static_cast<double>(growth.on_cpu_ns);
      sink.Add(m);
      m.metric = "sampled_runnable_ns";
      m.value = static_cast<double>(growth.runnable_ns);
      sink.Add(m);
      m.metric = "sampled_off_cpu_ns";
      for (const auto& [cause, ns] : growth.blocked_ns) {
        m.labels.cause = cause;
        m.value = static_cast<double>(ns);
        sink.Add(m);
      }
    }
  }

  void Stop() override {}

  static constexpr const char* kName = "waits by sampling";

 private:
  // False if the thread is gone.
  bool Sample(int64_t pid, int64_t tid) {
    const int64_t now = MonotonicNs();
    const auto time = ReadTaskTime(pid, tid, host_->Path("/proc"));
    if (!time) return false;
    Thread& thread = threads_[{pid, tid}];
    const std::string task = fmt::format("/proc/{}/task/{}", pid, tid);
    if (thread.readings++ % kNameEvery == 0) {
      std::string name = host_->Read(task + "/comm", 64).value_or("");
      while (!name.empty() && name.back() == '\n') name.pop_back();
      const std::string label = ThreadGroupLabel(Printable(name, 32), pid == tid);
      if (!thread.label.empty() && label != thread.label) Settle(pid, &thread);
      thread.label = label;
    }
    if (thread.seen_ns != 0) {
      Growth& group = groups_[{pid, thread.label}];
      const int64_t on_cpu = std::max<int64_t>(0, time->on_cpu_ns - thread.time.on_cpu_ns);
      const int64_t runnable = std::max<int64_t>(0, time->runnable_ns - thread.time.runnable_ns);
      const int64_t blocked = std::max<int64_t>(0, now - thread.seen_ns - on_cpu - runnable);
      group.on_cpu_ns += on_cpu;
      group.runnable_ns += runnable;
      thread.debt_ns += blocked;
      // A thread that did not run at all still waits for what it waited for.
      const bool same = on_cpu == 0 && runnable == 0 && !thread.cause.empty();
      if (!same) thread.cause = Cause(pid, task).value_or("");
      if (!thread.cause.empty() && thread.cause != "running") Settle(pid, &thread);
    }
    thread.time = *time;
    thread.seen_ns = now;
    return true;
  }

  // Books what a thread waited under its cause.
  void Settle(int64_t pid, Thread* thread) {
    if (thread->debt_ns <= 0) return;
    const bool known = !thread->cause.empty() && thread->cause != "running";
    groups_[{pid, thread->label}].blocked_ns[known ? thread->cause : "other"] += thread->debt_ns;
    thread->debt_ns = 0;
  }

  std::optional<std::string> Cause(int64_t pid, const std::string& task) {
    const auto cause = CauseOfWait(pid, task);
    if (cause == "running") return cause;
    return IsStopped(host_->Read(task + "/stat", 512).value_or("")) ? "stopped" : cause;
  }

  std::optional<std::string> CauseOfWait(int64_t pid, const std::string& task) {
    if (!by_function_) {
      const auto text = host_->Read(task + "/syscall", 256);
      if (text) return CauseOfSyscall(*text, [&](int fd) { return KindOf(pid, task, fd); });
    }
    const auto name = host_->Read(task + "/wchan", 256);
    if (!name) return std::nullopt;
    return CauseOfKernelFunction(*name);
  }

  std::string KindOf(int64_t pid, const std::string& task, int fd) {
    char target[256];
    const std::string path = host_->Path(fmt::format("{}/fd/{}", task, fd));
    const ssize_t n = readlink(path.c_str(), target, sizeof target);
    if (n <= 0) return "";
    const std::string_view text(target, static_cast<size_t>(n));
    if (text.starts_with("pipe:")) return "pipe";
    if (text.starts_with("anon_inode:")) return "event";
    if (!text.starts_with("socket:[")) return "file";
    const std::string inode(text.substr(8, text.size() - 9));
    const auto known = sockets_.find(inode);
    if (known != sockets_.end()) return known->second;
    if (sockets_.size() > 4096) sockets_.clear();
    const auto table = host_->Read(fmt::format("/proc/{}/net/unix", pid), 1 << 20);
    const bool is_unix = table && (table->find(" " + inode + " ") != std::string::npos ||
                                   table->find(" " + inode + "\n") != std::string::npos);
    return sockets_[inode] = is_unix ? "unix" : "socket";
  }

  const Host* host_ = nullptr;
  const Target* target_ = nullptr;
  bool by_function_ = false;
  std::map<std::pair<int64_t, int64_t>, Thread> threads_;     // pid, tid
  std::map<std::pair<int64_t, std::string>, Growth> groups_;  // pid, label
  std::map<std::string, std::string> sockets_;                // by inode
  int64_t most_left_out_ = 0;
};

Availability Check(const Host& host) {
  if (!host.Read("/proc/self/task/" + std::to_string(getpid()) + "/schedstat", 128)) {
    return Availability::Unavailable(
        fmt::format("/proc/self/task/{}/schedstat: {}", getpid(), std::strerror(errno)),
        "a kernel with CONFIG_SCHED_INFO");
  }
  return Availability::Ok();
}

}  // namespace

std::optional<std::string> CauseOfSyscall(std::string_view text, const DescriptorKind& kind_of) {
  const std::string_view word = FirstWord(text);
  if (word == "running") return "running";
  int64_t number = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
  if (word.empty() || parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) {
    return std::nullopt;
  }
  if (number < 0) return "fault";  // blocked outside of every call
  if (IsOneOf(number, kLocks)) return "lock";
  if (IsOneOf(number, kSleeps)) return "sleep";
  if (IsOneOf(number, kPolls)) return "poll";
  if (IsOneOf(number, kChildren)) return "child";
  if (IsOneOf(number, kStorage)) return "storage";
  const bool on_socket = IsOneOf(number, kSockets);
  if (!on_socket && !IsOneOf(number, kReads)) return "other";
  std::string_view rest = text.substr(word.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  std::string_view argument = FirstWord(rest);
  if (argument.starts_with("0x")) argument.remove_prefix(2);
  uint64_t fd = 0;
  const auto with_fd = std::from_chars(argument.data(), argument.data() + argument.size(), fd, 16);
  const bool readable = with_fd.ec == std::errc() && fd < (1u << 30);
  const std::string kind = readable ? kind_of(static_cast<int>(fd)) : "";
  if (kind == "unix" || kind == "pipe") return "pipe";
  if (on_socket || kind == "socket") return "network";
  if (kind == "event") return "poll";
  return kind == "file" ? "storage" : "other";
}

std::string CauseOfKernelFunction(std::string_view name) {
  while (!name.empty() && name.back() == '\n') name.remove_suffix(1);
  if (name.empty() || name == "0") return "running";
  const std::pair<std::string_view, const char*> kParts[] = {
      {"futex", "lock"},           {"nanosleep", "sleep"},     {"pipe_", "pipe"},
      {"lock_inode_wait", "lock"}, {"fcntl_setlk", "lock"},    {"unix_", "pipe"},
      {"do_wait", "child"},        {"ep_poll", "poll"},        {"do_poll", "poll"},
      {"do_sys_poll", "poll"},     {"do_select", "poll"},      {"poll_schedule", "poll"},
      {"epoll", "poll"},           {"io_schedule", "storage"}, {"folio_wait", "storage"},
      {"page_bit", "storage"},     {"blk", "storage"},         {"bio_", "storage"},
      {"_dio_", "storage"},        {"io_cqring", "storage"},   {"tcp_", "network"},
      {"inet_", "network"},        {"skb_", "network"},        {"sk_wait", "network"},
      {"nfs", "network"},          {"rpc_", "network"}};
  for (const auto& [part, cause] : kParts) {
    if (name.find(part) != std::string_view::npos) return cause;
  }
  return "other";
}

bool IsStopped(std::string_view stat) {
  // The name stands in parentheses and may itself contain blanks and parentheses.
  const size_t close = stat.rfind(") ");
  if (close == std::string_view::npos || close + 2 >= stat.size()) return false;
  return stat[close + 2] == 'T' || stat[close + 2] == 't';
}

namespace {

HR_PROBE(
    WaitSampler::kName,
    {.summary = "why threads wait, asked ten times a second (/proc), where BPF may not be used",
     .affects = "why threads of programs without instrumentation wait",
     .level = 0,
     .period_ns = kWaitPeriodNs,
     .check = Check,
     .make = [] { return std::unique_ptr<Probe>(new WaitSampler); }});

}  // namespace
}  // namespace headrace::probes
