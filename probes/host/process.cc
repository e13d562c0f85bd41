// The target's processes: memory (resident, proportional, shared), threads, page faults, CPU, IO.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "probes/host/host_probe.h"
#include "probes/host/process_age.h"

namespace headrace::probes {
namespace {

constexpr size_t kMaxProcesses = 4096;
// smaps_rollup walks the page tables, with a lock that the process's page faults need: it is read
// at most so often, and its cost kept below one in 5000.
constexpr int64_t kRollupPeriodNs = 5 * kSecondNs;
constexpr int64_t kRollupCostShare = 5000;

struct IoCounter {
  const char* key;
  const char* metric;
};
constexpr IoCounter kIo[] = {
    {"read_bytes", "process_read_bytes"},  {"write_bytes", "process_written_bytes"},
    {"rchar", "process_read_call_bytes"},  {"wchar", "process_written_call_bytes"},
    {"syscr", "process_read_calls_count"}, {"syscw", "process_write_calls_count"},
};

class ProcessProbe : public HostProbe {
  void Sample(const Host& host, const Target& target, Reading& out) override {
    const std::string fix = "run where the target's /proc is visible (in a container: --pid=host)";
    if (starting()) age_.Begin(host);
    size_t processes = 0;
    for (const int64_t pid : target.pids) {
      if (++processes > kMaxProcesses) break;
      if (!AddStat(host, pid, out, fix)) continue;
      AddIo(host, pid, out);
      AddRollup(host, pid, out);
    }
    std::erase_if(rollups_, [&](const auto& entry) {
      return std::find(target.pids.begin(), target.pids.end(), entry.first) == target.pids.end();
    });
    if (out.empty()) out.Missing("no process of the target could be read below /proc", fix);
  }

  // What an old process did before it came to be ours is the base; a new one began at 0.
  void AddCounter(const Host& host, std::string_view metric, const Labels& labels, int64_t now,
                  Reading& out) {
    const auto [it, is_new] = counters_.try_emplace({metric, labels});
    Counted& counted = it->second;
    if (is_new) {
      counted.base = starting() || age_.IsOlder(host, labels.pid) ? now : 0;
      counted.grown = 0;
    }
    counted.grown = std::max(counted.grown, now - counted.base);
    out.Total(metric, labels, static_cast<double>(counted.grown));
  }

  bool AddStat(const Host& host, int64_t pid, Reading& out, const std::string& fix) {
    const std::string path = fmt::format("/proc/{}/stat", pid);
    const auto text = ReadWord(host, path);
    if (!text) {
      if (starting()) out.MissingFile(path, fix);
      return false;
    }
    const size_t close = text->rfind(')');
    if (close == std::string::npos) return false;
    // proc(5): the first field after the name is number 3, the state.
    const auto fields = Fields(std::string_view(*text).substr(close + 1));
    const auto field = [&](size_t number) {
      return number - 3 < fields.size() ? Count(fields[number - 3]) : std::nullopt;
    };
    if (fields.size() < 22 || fields[0] == "Z" || fields[0] == "X") return false;
    static const int64_t tick_ns = 1'000'000'000 / sysconf(_SC_CLK_TCK);
    if (const auto minor = field(10)) {
      AddCounter(host, "process_page_faults_count", OfProcess(pid, "minor"), *minor, out);
    }
    if (const auto major = field(12)) {
      AddCounter(host, "process_page_faults_count", OfProcess(pid, "major"), *major, out);
    }
    const auto user = field(14), system = field(15);
    if (user && system) {
      AddCounter(host, "process_cpu_ns", OfProcess(pid), (*user + *system) * tick_ns, out);
    }
    if (const auto threads = field(20)) {
      out.Gauge("process_threads_count", OfProcess(pid), static_cast<double>(*threads));
    }
    if (const auto pages = field(24)) {
      out.Gauge("process_rss_bytes", OfProcess(pid),
                static_cast<double>(*pages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
    }
    return true;
  }

  void AddIo(const Host& host, int64_t pid, Reading& out) {
    const std::string path = fmt::format("/proc/{}/io", pid);
    const auto text = host.Read(path, 4096);
    if (!text) {
      out.MissingFile(path, "the same user as the target, or CAP_SYS_PTRACE");
      return;
    }
    for (const IoCounter& m : kIo) {
      if (const auto value = KeyedCount(*text, m.key)) {
        AddCounter(host, m.metric, OfProcess(pid), *value, out);
      }
    }
  }

  void AddRollup(const Host& host, int64_t pid, Reading& out) {
    Rollup& rollup = rollups_[pid];
    const int64_t begin = MonotonicNs();
    if (begin < rollup.next_ns) return;
    const std::string path = fmt::format("/proc/{}/smaps_rollup", pid);
    const auto text = host.Read(path, 8192);
    const int64_t end = MonotonicNs();
    // Start's own reading is not stored: the first Read follows at once.
    rollup.next_ns =
        starting() ? 0 : end + std::max(kRollupPeriodNs, (end - begin) * kRollupCostShare);
    if (!text) {
      out.MissingFile(path, "the same user as the target, or CAP_SYS_PTRACE");
      return;
    }
    if (const auto kib = KeyedCount(*text, "Pss")) {
      out.Gauge("process_pss_bytes", OfProcess(pid), static_cast<double>(*kib) * 1024);
    }
    const auto clean = KeyedCount(*text, "Shared_Clean"), dirty = KeyedCount(*text, "Shared_Dirty");
    if (clean && dirty) {
      out.Gauge("process_shared_bytes", OfProcess(pid),
                static_cast<double>(*clean + *dirty) * 1024);
    }
    if (const auto kib = KeyedCount(*text, "Pss_Shmem")) {
      out.Gauge("process_pss_bytes", OfProcess(pid, "shared memory"),
                static_cast<double>(*kib) * 1024);
    }
  }

  struct Counted {
    int64_t base = 0, grown = 0;
  };
  struct Rollup {
    int64_t next_ns = 0;
  };
  ProcessAge age_;
  std::map<std::pair<std::string_view, Labels>, Counted> counters_;
  std::map<int64_t, Rollup> rollups_;
};

HR_PROBE("process", {.summary = "memory, threads, faults, CPU and IO of the target's processes",
                     .affects = "memory and IO by process, and which worker is the large one",
                     .level = 1,
                     .period_ns = kSecondNs,
                     .check = CheckHostProbe<ProcessProbe>,
                     .make = MakeProbe<ProcessProbe>});

}  // namespace
}  // namespace headrace::probes
