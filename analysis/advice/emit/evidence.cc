#include "analysis/advice/emit/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
size_t AliveAtOnce(const RunView& run, const std::vector<int64_t>& processes) {
  std::vector<std::pair<int64_t, int>> changes;  // ends before starts at the same time
  for (const ProcessRow& process : run.processes) {
    if (std::find(processes.begin(), processes.end(), process.process_id) == processes.end()) {
      continue;
    }
    changes.push_back({process.started_ns, 1});
    if (process.ended_ns) changes.push_back({std::max(*process.ended_ns, process.started_ns), -1});
  }
  std::sort(changes.begin(), changes.end());
  int alive = 0, most = 0;
  for (const auto& [at, change] : changes) {
    alive += change;
    most = std::max(most, alive);
  }
  return static_cast<size_t>(most);
}

WorkerProcesses ResidentOf(const RunView& run, const std::vector<int64_t>& workers) {
  WorkerProcesses found;
  double sum = 0, others = 0;
  size_t measured = 0;
  for (const ProcessRow& process : run.processes) {
    const bool is_worker =
        std::find(workers.begin(), workers.end(), process.process_id) != workers.end();
    if (is_worker) ++found.started;
    const Real bytes =
        process.maximum_rss_bytes ? process.maximum_rss_bytes : process.mean_rss_bytes;
    if (!bytes) continue;
    if (is_worker) {
      sum += *bytes;
      ++measured;
    } else {
      others += *bytes;
    }
  }
  if (measured > 0) found.mean_bytes = sum / static_cast<double>(measured);
  if (others > 0) found.other_bytes = others;
  return found;
}

std::vector<int64_t> AccountedWorkers(const RunView& run) {
  std::vector<int64_t> workers;
  for (const ProcessRow& child : run.processes) {
    if (!child.has_accounts) continue;
    for (const ProcessRow& parent : run.processes) {
      if (parent.has_accounts && parent.pid == child.parent_pid) {
        workers.push_back(child.process_id);
        break;
      }
    }
  }
  return workers;
}

int WithinMemory(const RunView& run, const Budget& budget, const WorkerProcesses& workers,
                 int count, std::string* note) {
  const bool asked = budget.memory_bytes.has_value();
  if (!asked && !run.run.memory_bytes) return count;
  if (!workers.mean_bytes || *workers.mean_bytes <= 0) return count;
  const double limit = asked ? static_cast<double>(*budget.memory_bytes)
                             : static_cast<double>(*run.run.memory_bytes);
  const double room = kUsableMemory * limit - workers.other_bytes.value_or(0);
  const int most = std::max(0, static_cast<int>(std::min(room / *workers.mean_bytes, 1e6)));
  if (most >= count) return count;
  if (most < 1 && asked) {
    throw Error(
        ExitCode::kInconclusive,
        fmt::format("one worker needs {} beside the {} of the other processes",
                    FormatBytes(*workers.mean_bytes), FormatBytes(workers.other_bytes.value_or(0))),
        "--memory", "give more");
  }
  *note = fmt::format("{} instead of {} fit into {} of {}", std::max(1, most), count,
                      FormatPercent(kUsableMemory), FormatBytes(limit));
  return std::max(1, most);
}

void AddMemory(const WorkerProcesses& workers, double now, int count, Emitted* emitted) {
  if (!workers.mean_bytes) {
    emitted->memory_note = "the resident memory of no worker was measured";
    return;
  }
  emitted->worker_bytes = workers.mean_bytes;
  emitted->workers_now_bytes = now * *workers.mean_bytes;
  emitted->workers_bytes = count * *workers.mean_bytes;
}

LoaderSeen SeeLoader(const RunView& run, const Budget& budget) {
  LoaderSeen seen;
  seen.outside = LookFromOutside(run);
  const Outside& o = seen.outside;
  if (!o.withheld.empty() || o.units.empty()) {
    throw Error(ExitCode::kInconclusive,
                o.withheld.empty() ? "the run shows no threads at work" : o.withheld,
                fmt::format("run {}", run.run.run_id),
                "record it again: headrace profile -d 10s -p PID, with eBPF where that works");
  }
  if (o.decided && !o.findings.empty()) seen.limit = o.findings[0].limit;
  for (const OutsideUnit& unit : o.units) {
    if (unit.role != UnitRole::kProducer) continue;
    const auto work = [](const OutsideUnit& u) { return u.shares.work() * u.threads_count; };
    if (seen.producer == nullptr || work(unit) > work(*seen.producer)) seen.producer = &unit;
  }
  if (seen.producer != nullptr) {
    seen.threads = seen.producer->threads_count;
    // Processes are counted over the run by their first threads.
    if (o.groups[seen.producer->key_group].main) {
      seen.threads =
          static_cast<double>(AliveAtOnce(run, o.kinds[seen.producer->kind].process_ids));
    }
  }
  seen.stall = o.stall_ratio;
  seen.waited = fmt::format("the trainer waits {} of the time", FormatPercent(seen.stall));
  if (o.stall_interval) {
    seen.waited +=
        fmt::format(" [{:.0f}, {:.0f}]", 100 * o.stall_interval->low, 100 * o.stall_interval->high);
  }
  seen.free_cores = o.cores_free;
  if (budget.cores && o.cores_used) seen.free_cores = std::max(0.0, *budget.cores - *o.cores_used);
  return seen;
}

namespace {

// Why more producers would not help, or nothing is known about that. Empty: they may, and
// `free_cores` is known. `reads`: they wait for storage, a network or a timer.
std::string WhyNoMore(const LoaderSeen& seen, const std::string& what, bool reads) {
  if (seen.limit != OutsideLimit::kProducers && !reads) {
    return fmt::format("{}; the limit is {}, not the number of {}", seen.waited,
                       OutsideLimitName(seen.limit), what);
  }
  if (seen.outside.is_busy_thread) {
    return fmt::format("{}; the limit is one thread, {}, not the number of {}", seen.waited,
                       seen.outside.python_threads->busy_thread, what);
  }
  if (const std::string more = WhyMoreDoNotHelp(seen.outside, what); !more.empty()) {
    return fmt::format("{}; {}", seen.waited, more);
  }
  if (!seen.free_cores) {
    return fmt::format("{}; how many cores are free is not known, so not how many more have room",
                       seen.waited);
  }
  if (*seen.free_cores < kNoCoreFree && !reads) {
    return fmt::format("{}, but only {:.1f} cores are free", seen.waited, *seen.free_cores);
  }
  return "";
}

}  // namespace

ProducerCount CountProducers(const LoaderSeen& seen, const std::string& what) {
  ProducerCount result;
  const int now = std::max(1, static_cast<int>(std::lround(seen.threads)));
  result.count = now;
  if (seen.producer == nullptr) return result;
  const UnitShares& shares = seen.producer->shares;
  if (seen.limit == OutsideLimit::kConsumer && seen.stall < kSmallStall) {
    const int enough =
        std::max(1, static_cast<int>(std::ceil(now * (1 - shares.wait_consumer) - 1e-9)));
    result.why = fmt::format("{}, and {} wait for it {} of theirs", seen.waited, what,
                             FormatPercent(shares.wait_consumer));
    if (enough < now) {
      result.count = enough;
      result.changes = true;
      result.why += fmt::format(": {} would do, the rate stays", enough);
    } else {
      result.why += ": just enough of them";
    }
    return result;
  }
  if (seen.limit == OutsideLimit::kCores && seen.outside.GetsAnotherShare()) {
    result.count = now + 1;
    result.changes = true;
    result.why = fmt::format("{}; other programs use {:.1f} cores, of which one more takes a share",
                             seen.waited, *seen.outside.cores_others);
    return result;
  }
  // Waits that no CPU is needed for: more at once may hide them.
  const bool reads = seen.limit == OutsideLimit::kStorage || seen.limit == OutsideLimit::kNetwork ||
                     seen.limit == OutsideLimit::kSleep;
  if (const std::string no_more = WhyNoMore(seen, what, reads); !no_more.empty()) {
    result.why = no_more;
    return result;
  }
  const MoreProducers more = RoomForMore(now, seen.stall, shares.on_cpu, *seen.free_cores);
  if (more.count <= now) {
    result.why = fmt::format("{}; {:.1f} free cores have no room for one more, each takes {:.2f}",
                             seen.waited, *seen.free_cores, shares.on_cpu);
    return result;
  }
  result.count = static_cast<int>(more.count);
  result.changes = true;
  result.at_most = more.at_most;
  result.why = fmt::format(
      "{}; {} of the time of {} is work, each takes {:.2f} cores, and {:.1f} cores are free",
      seen.waited, FormatPercent(shares.work()), what, shares.on_cpu, *seen.free_cores);
  if (reads) {
    result.why +=
        fmt::format("; {} of it waits for {}, which more at once may hide",
                    FormatPercent(shares.storage + shares.network), OutsideLimitName(seen.limit));
  }
  return result;
}

std::optional<double> WaitsInTurn(const LoaderSeen& seen) {
  if (seen.producer == nullptr || seen.outside.knowledge < OutsideKnowledge::kCounts) {
    return std::nullopt;
  }
  if (seen.stall < kSmallStall || seen.producer->shares.wait_consumer < kProducerHasTime) {
    return std::nullopt;
  }
  return seen.producer->shares.wait_consumer;
}

}  // namespace headrace::analysis
