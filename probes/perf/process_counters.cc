#include "probes/perf/process_counters.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace headrace::probes::perf {
namespace {

constexpr size_t kMostThreads = 4096;  // of one process, looked at in one reading

std::vector<int64_t> ThreadsOf(const Host& host, int64_t pid) {
  std::vector<int64_t> tids;
  for (const std::string& name : host.List(fmt::format("/proc/{}/task", pid))) {
    int64_t tid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), tid);
    if (error == std::errc() && end == name.data() + name.size() && tid > 0) tids.push_back(tid);
    if (tids.size() >= kMostThreads) break;
  }
  return tids;
}

}  // namespace

size_t AffordableHandles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  const size_t used = Host().List("/proc/self/fd").size();
  const size_t most = std::min<size_t>(limit.rlim_cur, 1 << 20);
  return most <= used ? 0 : std::min<size_t>((most - used) / 2, 8192);
}

ProcessCounters::ProcessCounters(PerfBackend& backend, EventPlan plan, Options options)
    : backend_(backend), plan_(std::move(plan)), options_(options) {
  active_ = plan_.groups.size() > 1 ? 1 : 0;
}

void ProcessCounters::Attach(int64_t tid, Process* process) {
  size_t all = 0;
  for (const EventPlan::Group& group : plan_.groups) all += group.codes.size();
  const size_t base = plan_.groups[0].codes.size();
  const size_t room = options_.most_handles - std::min(options_.most_handles, num_handles_);
  if (base > room) {
    ++without_room_;
    return;
  }
  OpenRequest where;
  where.tid = tid;
  where.inherit = where.threads_only = plan_.inherit;
  where.exclude_kernel = options_.exclude_kernel;
  ThreadCounters counters(backend_, plan_, options_.counting);
  int error = counters.Open(where, all > room);
  if (error == ESRCH) return;  // it ended meanwhile
  if (error == EMFILE || error == ENFILE) {
    ++without_room_;
    last_error_ = error;
    return;
  }
  if (error != 0) {
    ++refused_;
    last_error_ = error;
    return;
  }
  if (all > room) ++without_room_;
  counters.Rotate(active_);
  num_handles_ += counters.num_handles();
  ++threads_attached_;
  process->threads.push_back(std::move(counters));
}

void ProcessCounters::Follow(const Host& host, const Target& target) {
  for (const int64_t pid : target.pids) {
    const auto [it, fresh] = processes_.try_emplace(pid);
    Process& process = it->second;
    if (fresh) process.totals = MakeTotals(plan_);
    if (process.ended) continue;  // read first; then a process of the same number is another one
    if (!fresh && plan_.inherit) continue;
    const std::vector<int64_t> tids = ThreadsOf(host, pid);
    if (fresh && tids.empty()) {
      processes_.erase(it);
      continue;
    }
    for (const int64_t tid : tids) {
      if (process.tids.insert(tid).second) Attach(tid, &process);
    }
    if (plan_.inherit) continue;
    std::erase_if(process.tids, [&](int64_t tid) {
      return std::find(tids.begin(), tids.end(), tid) == tids.end();
    });
  }
  for (auto& [pid, process] : processes_) {
    process.ended = process.ended ||
                    std::find(target.pids.begin(), target.pids.end(), pid) == target.pids.end();
  }
}

void ProcessCounters::Read() {
  // What ended before the last reading has been seen by everyone.
  std::erase_if(processes_, [&](const auto& entry) {
    return entry.second.ended && entry.second.threads.empty();
  });
  const size_t num_turns = plan_.groups.size();
  const size_t next = num_turns > 2 ? active_ % (num_turns - 1) + 1 : active_;
  num_handles_ = 0;
  for (auto& [pid, process_of_pid] : processes_) {
    auto& process = process_of_pid;
    BeginInterval(&process.totals);
    std::erase_if(process.threads, [&](ThreadCounters& thread) {
      if (thread.Read(&process.totals)) return false;
      ++lost_;
      return true;
    });
    // What has ended was read a last time; its files are closed.
    std::erase_if(process.threads, [&](const ThreadCounters& thread) {
      return process.ended || process.tids.count(thread.tid()) == 0;
    });
    for (ThreadCounters& thread : process.threads) {
      thread.Rotate(next);
      num_handles_ += thread.num_handles();
    }
  }
  active_ = next;
}

void ProcessCounters::Close() {
  processes_.clear();
  num_handles_ = 0;
}

}  // namespace headrace::probes::perf
