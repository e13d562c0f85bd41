#include "analysis/outside/slices.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/thresholds.h"
#include "base/library_processes.h"

namespace headrace::analysis {
namespace {

std::string WithoutNumber(const std::string& name) {
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

// Builds the groups, edges and slices of a run.
class Builder {
 public:
  Builder(const RunView& run, SeenThreads* seen) : run_(run), seen_(seen) {}

  Slices Build() {
    FindKinds();
    const bool is_early = IsGivenUpEarly();
    const bool goes_on = run_.Has("sampled_off_cpu_ns") || run_.Has("thread_on_cpu_ns");
    const bool timed = run_.Has("off_cpu_ns") || run_.Has("on_cpu_ns");
    const bool kernel = timed && !((is_early || IsPartly()) && goes_on);
    const bool sampled = !kernel && run_.Has("sampled_off_cpu_ns");
    const std::string blocked = sampled ? "sampled_off_cpu_ns" : kernel ? "off_cpu_ns" : "";
    // Without the off-CPU program the scheduler's own account stands in for it.
    const std::string prefix = kernel ? "" : sampled ? "sampled_" : "thread_";
    const std::string on_cpu = prefix + "on_cpu_ns", runnable = prefix + "runnable_ns";
    std::set<int64_t> slices;
    for (const CourseRow& row : run_.course) slices.insert(row.slice);
    Position position;
    for (const int64_t slice : slices) position.emplace(slice, position.size());
    Slices result;
    result.is_part = is_early && kernel;
    result.slice_s = static_cast<double>(run_.course_slice_ns) * 1e-9;
    result.prefix = prefix;
    result.index.assign(slices.begin(), slices.end());
    const auto seen = run_.course_seen_ns.find(on_cpu);
    result.seen_s = static_cast<double>(seen != run_.course_seen_ns.end() ? seen->second
                                                                          : run_.run.duration_ns) *
                    1e-9;
    result.times.resize(slices.size());
    const Metrics metrics{on_cpu, runnable, blocked};
    const bool causes = AddTimes(metrics, position, &result);
    const auto [counts, waits] = AddEdges(metrics, position, &result);
    result.num_groups = seen_->groups.size();
    result.num_edges = seen_->edges.size();
    for (auto& slice : result.times) slice.resize(result.num_groups);
    result.counts.resize(slices.size());
    for (auto& slice : result.counts) slice.resize(result.num_edges);
    if (waits) result.waits.resize(slices.size());
    for (auto& slice : result.waits) slice.resize(result.num_edges);
    // The off-CPU program tells times on the CPU too; what never waited has no waits to show.
    if (!result.num_groups) {
      seen_->knowledge = OutsideKnowledge::kNothing;
    } else if (kernel && run_.Has("on_cpu_ns") && (waits || !counts)) {
      seen_->knowledge =
          waits || !HasThreadWaits(result) ? OutsideKnowledge::kWakers : OutsideKnowledge::kCauses;
    } else if (causes) {
      seen_->knowledge = counts ? OutsideKnowledge::kCounts : OutsideKnowledge::kCauses;
    } else {
      seen_->knowledge = OutsideKnowledge::kCpu;
    }
    return result;
  }

 private:
  // By which the course has the times of threads; `blocked` may be "".
  struct Metrics {
    std::string on_cpu, runnable, blocked;
  };
  using Position = std::map<int64_t, size_t>;  // of slices, in their order

  // True where there are times of waits by their causes.
  bool AddTimes(const Metrics& metrics, const Position& position, Slices* result) {
    bool causes = false;
    for (const CourseRow& row : run_.course) {
      const auto group = GroupOf(row.process_id, row.thread);
      if (!group) continue;
      std::vector<ThreadTimes>& slice = result->times[position.at(row.slice)];
      if (slice.size() <= *group) slice.resize(*group + 1);
      const double seconds = row.value * 1e-9;
      if (row.metric == metrics.on_cpu) {
        slice[*group].on_cpu_s += seconds;
      } else if (row.metric == metrics.runnable) {
        slice[*group].runnable_s += seconds;
      } else if (row.metric == "poll_timed_out_ns") {
        slice[*group].timed_out_s += seconds;
      } else if (row.metric == metrics.blocked) {
        causes = true;
        slice[*group].blocked_s[Index(WaitCauseOf(row.cause))] += seconds;
      }
    }
    return causes;
  }

  // Who ends whose waits. Whether there are counts of them, and whether their times.
  std::pair<bool, bool> AddEdges(const Metrics& metrics, const Position& position, Slices* result) {
    bool counts = false, waits = false;
    std::map<std::tuple<int64_t, size_t, size_t>, size_t> edges;  // waker or -1, wakee, cause
    for (const CourseRow& row : run_.course) {
      const bool is_count = row.metric == "wakeups_count", is_wait = row.metric == "wakeup_wait_ns";
      if ((!is_count && !is_wait) || metrics.blocked.empty()) continue;
      const auto wakee = GroupOf(row.process_id, row.thread);
      if (!wakee) continue;
      const std::optional<size_t> waker = WakerOf(row.subject);
      const WaitCause cause = WaitCauseOf(row.cause);
      const auto key = std::tuple(waker ? static_cast<int64_t>(*waker) : -1, *wakee, Index(cause));
      const auto [it, added] = edges.emplace(key, edges.size());
      if (added) seen_->edges.push_back({waker, *wakee, cause, 0, 0});
      const size_t slice = position.at(row.slice);
      auto& values = is_count ? result->counts : result->waits;
      if (values.size() <= slice) values.resize(slice + 1);
      if (values[slice].size() <= it->second) values[slice].resize(it->second + 1);
      values[slice][it->second] += is_count ? row.value : row.value * 1e-9;
      if (is_count) {
        seen_->edges[it->second].wakeups_count += static_cast<int64_t>(row.value);
        counts = true;
      }
      waits = waits || is_wait;
    }
    return {counts, waits};
  }

  // Whether the off-CPU program was given up so early that what it saw, a program that loads its
  // libraries, is not like the rest.
  bool IsGivenUpEarly() const {
    const bool is_given_up =
        std::any_of(run_.probes.begin(), run_.probes.end(), [](const ProbeRow& probe) {
          return probe.probe == "off-CPU time" && probe.is_stopped_early();
        });
    const auto seen = run_.course_seen_ns.find("on_cpu_ns");
    return is_given_up && seen != run_.course_seen_ns.end() &&
           static_cast<double>(seen->second) <
               kMostlySeen * static_cast<double>(run_.run.duration_ns);
  }

  // Whether the waits that operators account are in no thread's times, as in older recordings of
  // programs that keep accounts.
  bool IsPartly() const {
    if (run_.Has("off_cpu_inside_ns") || run_.Has("runnable_inside_ns")) return false;
    return std::any_of(run_.measurements.begin(), run_.measurements.end(),
                       [](const MeasurementRow& row) {
                         return !row.operator_name.empty() &&
                                (row.metric == "off_cpu_ns" || row.metric == "off_cpu_wait_ns");
                       });
  }

  static bool HasThreadWaits(const Slices& slices) {
    for (const auto& slice : slices.times) {
      for (const ThreadTimes& time : slice) {
        for (size_t c = 0; c < kNumWaitCauses; ++c) {
          if (EndedByThreads(static_cast<WaitCause>(c)) && time.blocked_s[c] > 0) return true;
        }
      }
    }
    return false;
  }

  // Of names, by the time that each was used for; `name` where there are none.
  static std::string MostUsed(const std::map<std::string, double>& names, std::string name) {
    double most = 0;
    for (const auto& [candidate, time] : names) {
      if (time <= most) continue;
      most = time;
      name = candidate;
    }
    return name;
  }

  // Processes are of one kind when they have one name and their parents are of one kind. The name
  // is that of the first thread where it is known: a forked worker renames itself after it began.
  void FindKinds() {
    constexpr double kLoadsModulesS = 3;  // the most that an idle worker of Ray computes
    constexpr double kIdleAtMost = 0.25;  // of the run
    std::map<int64_t, std::map<std::string, double>> main_names;
    std::map<int64_t, std::map<std::string, double>> main_cpu_s;  // by process and metric
    for (const CourseRow& row : run_.course) {
      if (IsMainThread(row.thread) && row.metric != "wakeups_count") {
        main_names[row.process_id][WithoutMain(row.thread)] += row.value;
      }
      // Several probes may tell of it; each is an account of all of its time.
      if (IsMainThread(row.thread) && row.metric.ends_with("on_cpu_ns")) {
        main_cpu_s[row.process_id][row.metric] += row.value * 1e-9;
      }
    }
    const double seconds = static_cast<double>(run_.run.duration_ns) * 1e-9;
    std::map<int64_t, const ProcessRow*> by_pid;
    for (const ProcessRow& process : run_.processes) by_pid[process.pid] = &process;
    std::map<std::pair<int64_t, std::string>, size_t> kinds;
    // Names of threads end where their numbers begin; a program may be called so: bzip2.
    std::map<size_t, std::set<std::string>> numbered;
    // Parents come before children in the order of their start.
    std::vector<const ProcessRow*> order;
    for (const ProcessRow& process : run_.processes) order.push_back(&process);
    std::map<int64_t, int> depth;
    const auto depth_of = [&](const ProcessRow* process) {
      int steps = 0;
      while (steps < 64) {
        const auto parent = by_pid.find(process->parent_pid);
        if (parent == by_pid.end() || parent->second == process) break;
        process = parent->second;
        ++steps;
      }
      return steps;
    };
    for (const ProcessRow* process : order) depth[process->process_id] = depth_of(process);
    std::stable_sort(order.begin(), order.end(), [&](const ProcessRow* a, const ProcessRow* b) {
      return depth[a->process_id] < depth[b->process_id];
    });
    for (const ProcessRow* process : order) {
      const std::map<std::string, double>& names = main_names[process->process_id];
      std::string name = MostUsed(names, process->process);
      // Between tasks a worker of Ray is called idle, also one that has had tasks all the time.
      double busy_s = 0;
      for (const auto& [metric, cpu_s] : main_cpu_s[process->process_id]) {
        busy_s = std::max(busy_s, cpu_s);
      }
      if (IsIdleRayWorker(name) && busy_s > std::max(kLoadsModulesS, kIdleAtMost * seconds)) {
        std::map<std::string, double> tasks = names;
        std::erase_if(tasks, [](const auto& each) { return !IsRayWorker(each.first); });
        name = MostUsed(tasks, "ray::worker");
      }
      // A library's own is of another kind than processes of the program that have its name.
      const std::string service = ServiceName(name, process->command);
      if (!service.empty()) name = service;
      const auto parent = by_pid.find(process->parent_pid);
      std::optional<size_t> parent_kind;
      if (parent != by_pid.end() && parent->second != process) {
        const auto known = kind_of_.find(parent->second->process_id);
        if (known != kind_of_.end()) parent_kind = known->second;
      }
      const auto key = std::pair(parent_kind ? static_cast<int64_t>(*parent_kind) : -1, name);
      const auto [it, added] = kinds.emplace(key, seen_->kinds.size());
      if (added) seen_->kinds.push_back({name, {}, {}, parent_kind, !service.empty()});
      if (process->process != name && WithoutNumber(process->process) == name) {
        numbered[it->second].insert(process->process);
      }
      seen_->kinds[it->second].process_ids.push_back(process->process_id);
      seen_->kinds[it->second].pids.push_back(process->pid);
      kind_of_[process->process_id] = it->second;
      process_of_pid_[process->pid] = process->process_id;
    }
    for (const auto& [kind, names] : numbered) {
      if (names.size() == 1) seen_->kinds[kind].name = *names.begin();
    }
  }

  std::optional<size_t> GroupOf(int64_t process_id, const std::string& thread) {
    const auto kind = kind_of_.find(process_id);
    if (kind == kind_of_.end()) return std::nullopt;
    // All first threads of a kind are one group, whatever they were called before.
    const bool main = IsMainThread(thread);
    const std::string name = main ? seen_->kinds[kind->second].name + kMainSuffix : thread;
    const auto [it, added] = groups_.emplace(std::pair(kind->second, name), seen_->groups.size());
    if (added) {
      ThreadGroup group;
      group.kind = kind->second;
      group.thread = name;
      group.main = main;
      seen_->groups.push_back(std::move(group));
    }
    return it->second;
  }

  // "PID/THREAD"; a waker in none of the recorded processes is no group.
  std::optional<size_t> WakerOf(const std::string& subject) {
    const size_t slash = subject.find('/');
    if (slash == std::string::npos || slash == 0 || slash > 18) return std::nullopt;
    int64_t pid = 0;
    for (size_t i = 0; i < slash; ++i) {
      if (subject[i] < '0' || subject[i] > '9') return std::nullopt;
      pid = pid * 10 + (subject[i] - '0');
    }
    const auto process = process_of_pid_.find(pid);
    if (process == process_of_pid_.end()) return std::nullopt;
    return GroupOf(process->second, subject.substr(slash + 1));
  }

  const RunView& run_;
  SeenThreads* seen_;
  std::map<int64_t, size_t> kind_of_;          // by process_id
  std::map<int64_t, int64_t> process_of_pid_;  // the last one of that pid
  std::map<std::pair<size_t, std::string>, size_t> groups_;
};

}  // namespace

Slices BuildSlices(const RunView& run, SeenThreads* seen) { return Builder(run, seen).Build(); }

Totals Sum(const SeenThreads& seen, const Slices& slices, const std::vector<size_t>& drawn) {
  Totals totals;
  totals.times.resize(slices.num_groups);
  totals.waits.resize(slices.num_edges);
  std::vector<double> counts(slices.num_edges);
  for (const size_t s : drawn) {
    for (size_t g = 0; g < slices.num_groups; ++g) {
      const ThreadTimes& from = slices.times[s][g];
      ThreadTimes& to = totals.times[g];
      to.on_cpu_s += from.on_cpu_s;
      to.runnable_s += from.runnable_s;
      to.timed_out_s += from.timed_out_s;
      for (size_t c = 0; c < kNumWaitCauses; ++c) to.blocked_s[c] += from.blocked_s[c];
    }
    for (size_t e = 0; e < slices.num_edges; ++e) {
      counts[e] += slices.counts[s][e];
      if (!slices.waits.empty()) totals.waits[e] += slices.waits[s][e];
    }
  }
  std::map<std::pair<size_t, WaitCause>, double> sums;
  for (size_t e = 0; e < slices.num_edges; ++e) {
    sums[{seen.edges[e].wakee, seen.edges[e].cause}] +=
        slices.waits.empty() ? counts[e] : totals.waits[e];
  }
  for (size_t e = 0; e < slices.num_edges; ++e) {
    const WakeEdge& edge = seen.edges[e];
    const double sum = sums[{edge.wakee, edge.cause}];
    const double blocked = totals.times[edge.wakee].blocked_s[Index(edge.cause)];
    if (slices.waits.empty()) {
      totals.waits[e] = sum > 0 ? blocked * counts[e] / sum : 0;
    } else if (sum > blocked && sum > 0) {
      totals.waits[e] *= blocked / sum;  // a wait that ends in a slice may have begun before it
    }
  }
  return totals;
}

}  // namespace headrace::analysis
