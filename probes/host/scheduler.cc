// The scheduler's account of the target's threads, by process and thread name: on a CPU, runnable
// but not running, switches. The fallback of the off-CPU program, which knows the causes too.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/error.h"
#include "probes/host/host_probe.h"
#include "probes/host/process_age.h"
#include "probes/process.h"

namespace headrace::probes {
namespace {

constexpr size_t kMaxThreads = 16384;

class Scheduler : public HostProbe {
  void Sample(const Host& host, const Target& target, Reading& out) override {
    const std::string fix = "a kernel built with CONFIG_SCHED_INFO, and /proc mounted";
    if (starting()) age_.Begin(host);
    size_t threads = 0;
    std::map<Thread, Times> seen;
    std::map<Group, int64_t> sizes;
    for (const int64_t pid : target.pids) {
      const std::string folder = fmt::format("/proc/{}/task", pid);
      // A process that is older than the start, but new to us, has done its past work before it.
      const bool past_counts = !starting() && !age_.IsOlder(host, pid);
      for (const std::string& name : host.List(folder)) {
        const auto tid = Count(name);
        if (!tid || ++threads > kMaxThreads) continue;
        const std::string task = folder + "/" + name;
        const auto comm = ReadWord(host, task + "/comm");
        const auto times = ReadTimes(host, task, out, fix);
        if (!comm || !times) continue;
        const Thread thread{pid, *tid};
        const auto before = last_.find(thread);
        const bool known_process = pids_.contains(pid);
        const bool from_zero = before == last_.end() && (past_counts || known_process);
        const Times base = before != last_.end() ? before->second : from_zero ? Times{} : *times;
        const Group group{pid, ThreadGroupLabel(Printable(*comm, 64), *tid == pid)};
        totals_[group].AddGrowth(base, *times);
        seen.emplace(thread, *times);
        sizes[group]++;
      }
      processes_.insert({pid, true});
    }
    pids_ = std::exchange(processes_, {});
    last_ = std::move(seen);
    for (const auto& [group, total] : totals_) {
      Labels labels = OfProcess(group.first);
      labels.thread = group.second;
      out.Total("thread_on_cpu_ns", labels, static_cast<double>(total.on_cpu_ns));
      out.Total("thread_runnable_ns", labels, static_cast<double>(total.runnable_ns));
      if (has_switches_) {
        labels.cause = "voluntary";
        out.Total("thread_switches_count", labels, static_cast<double>(total.voluntary));
        labels.cause = "involuntary";
        out.Total("thread_switches_count", labels, static_cast<double>(total.involuntary));
        labels.cause.clear();
      }
      const auto size = sizes.find(group);
      if (size != sizes.end()) {
        out.Gauge("threads_count", labels, static_cast<double>(size->second));
      }
    }
    if (threads > kMaxThreads) {
      out.Missing(
          fmt::format("the target has more than {} threads: the rest is not read", kMaxThreads),
          "level 3, which counts in the kernel");
    }
    if (out.empty()) out.Missing("no thread of the target could be read below /proc", fix);
  }

  struct Times {
    int64_t on_cpu_ns = 0, runnable_ns = 0, voluntary = 0, involuntary = 0;
    void AddGrowth(const Times& from, const Times& to) {
      const auto add = [](int64_t* sum, int64_t a, int64_t b) {
        *sum += b >= a ? b - a : b;  // smaller: another thread has got the number
      };
      add(&on_cpu_ns, from.on_cpu_ns, to.on_cpu_ns);
      add(&runnable_ns, from.runnable_ns, to.runnable_ns);
      add(&voluntary, from.voluntary, to.voluntary);
      add(&involuntary, from.involuntary, to.involuntary);
    }
  };
  using Thread = std::pair<int64_t, int64_t>;     // pid, tid
  using Group = std::pair<int64_t, std::string>;  // pid, name

  std::optional<Times> ReadTimes(const Host& host, const std::string& task, Reading& out,
                                 const std::string& fix) {
    const auto text = ReadWord(host, task + "/schedstat");  // "on-CPU ns, runnable ns, slices"
    if (!text) {
      if (starting()) out.MissingFile(task + "/schedstat", fix);
      return std::nullopt;
    }
    const auto fields = Fields(*text);
    if (fields.size() < 3) return std::nullopt;
    const auto on_cpu = Count(fields[0]), runnable = Count(fields[1]);
    if (!on_cpu || !runnable) return std::nullopt;
    Times times{*on_cpu, *runnable, 0, 0};
    const auto status = host.Read(task + "/status", 16384);
    const auto voluntary = status ? KeyedCount(*status, "voluntary_ctxt_switches") : std::nullopt;
    const auto involuntary =
        status ? KeyedCount(*status, "nonvoluntary_ctxt_switches") : std::nullopt;
    if (!voluntary || !involuntary) return has_switches_ ? std::nullopt : std::optional(times);
    has_switches_ = true;
    times.voluntary = *voluntary;
    times.involuntary = *involuntary;
    return times;
  }

  ProcessAge age_;
  bool has_switches_ = false;
  std::map<Thread, Times> last_;
  std::map<Group, Times> totals_;
  std::map<int64_t, bool> pids_, processes_;
};

HR_PROBE("scheduler", {.summary = "on-CPU, run-queue time and switches of the target's threads",
                       .affects = "time runnable but not running is then counted as blocked",
                       .level = 1,
                       .period_ns = kSecondNs,
                       .check = CheckHostProbe<Scheduler>,
                       .make = MakeProbe<Scheduler>});

}  // namespace
}  // namespace headrace::probes
