#include "analysis/outside/outside.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/outside/activity_findings.h"
#include "analysis/outside/asked.h"
#include "analysis/outside/compute_place.h"
#include "analysis/outside/find_consumer.h"
#include "analysis/outside/findings.h"
#include "analysis/outside/flavour.h"
#include "analysis/outside/judge.h"
#include "analysis/outside/lost_share.h"
#include "analysis/outside/native_place.h"
#include "analysis/outside/ranks_seen.h"
#include "analysis/outside/slices.h"
#include "analysis/outside/steady.h"
#include "analysis/outside/timed_waits.h"
#include "analysis/outside/uneven_processes.h"
#include "analysis/outside/what_decides.h"
#include "analysis/run/interpreter_waits.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// Names of programs that take long to start: they load modules or classes first.
constexpr const char* kSlowToStart[] = {"python", "pt_data_worker", "java", "node"};

// Without causes, the rest of a thread's life is off the CPU for a reason nobody saw.
void AddUnseenWaits(const RunView& run, const Outside& out, Slices* slices) {
  std::vector<double> threads(out.groups.size());
  for (size_t g = 0; g < out.groups.size(); ++g) {
    const ThreadGroup& group = out.groups[g];
    const std::vector<int64_t>& members = out.kinds[group.kind].process_ids;
    for (const MeasurementRow& row : run.measurements) {
      if (row.metric != "threads_count" || !row.value || !row.process_id) continue;
      if (row.thread != group.thread && !(group.main && IsMainThread(row.thread))) continue;
      if (std::find(members.begin(), members.end(), *row.process_id) == members.end()) continue;
      threads[g] += *row.value;
    }
    if (threads[g] <= 0 && group.main) threads[g] = static_cast<double>(members.size());
  }
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  const double slice_s = static_cast<double>(run.course_slice_ns) * 1e-9;
  for (size_t s = 0; s < slices->times.size(); ++s) {
    const double length = std::min(slice_s, seconds - static_cast<double>(s) * slice_s);
    for (size_t g = 0; g < out.groups.size(); ++g) {
      ThreadTimes& time = slices->times[s][g];
      const double rest = length * threads[g] - time.on_cpu_s - time.runnable_s;
      time.blocked_s[Index(WaitCause::kOther)] += std::max(0.0, rest);
    }
  }
}

// The most processes of the kind that lived at the same time.
double MostAtOnce(const RunView& run, const ProcessKind& kind) {
  constexpr int64_t kSeenLateNs = 20'000'000;  // an end, at the next look
  std::vector<std::pair<int64_t, int>> changes;
  for (const ProcessRow& process : run.processes) {
    const std::vector<int64_t>& ids = kind.process_ids;
    if (std::find(ids.begin(), ids.end(), process.process_id) == ids.end()) continue;
    changes.emplace_back(process.started_ns, 1);
    if (process.ended_ns) changes.emplace_back(*process.ended_ns - kSeenLateNs, -1);
  }
  std::sort(changes.begin(), changes.end());
  int alive = 0, most = 1;
  for (const auto& [ns, change] : changes) most = std::max(most, alive += change);
  return most;
}

// Kinds whose threads were stopped for most of the time that was seen of them.
std::vector<size_t> StoppedKinds(const Outside& out) {
  std::vector<double> stopped(out.kinds.size()), total(out.kinds.size());
  for (const ThreadGroup& group : out.groups) {
    stopped[group.kind] += group.time.blocked_s[Index(WaitCause::kStopped)];
    total[group.kind] += group.time.total();
  }
  std::vector<size_t> kinds;
  for (size_t k = 0; k < out.kinds.size(); ++k) {
    if (stopped[k] > kMostlyStopped * total[k]) kinds.push_back(k);
  }
  return kinds;
}

std::string StoppedText(const Outside& out, const std::vector<size_t>& kinds) {
  std::string names, pids;
  size_t processes = 0;
  for (const size_t k : kinds) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", out.kinds[k].name);
    for (const int64_t pid : out.kinds[k].pids) {
      if (processes < 8) pids += fmt::format(" {}", pid);
      if (processes == 8) pids += " ...";
      ++processes;
    }
  }
  const bool whole = out.kinds.size() == 1 && processes == 1;
  return fmt::format("{} stopped (SIGSTOP, job control or a debugger); kill -CONT{}",
                     whole            ? "the process is"
                     : processes == 1 ? fmt::format("process {} is", names)
                                      : fmt::format("{} processes ({}) are", processes, names),
                     pids);
}

// The group that is the main thread of that process alone.
std::optional<size_t> MainThreadOf(const Outside& out, int64_t pid) {
  for (size_t g = 0; g < out.groups.size(); ++g) {
    if (out.groups[g].main && out.kinds[out.groups[g].kind].pids == std::vector{pid}) return g;
  }
  return std::nullopt;
}

// How long `pid` waits in the slices with these numbers if other ranks are not looked at; nothing
// where it is not the one whose main thread was seen.
std::optional<double> WaitOfRank(const RunView& run, const std::vector<int64_t>& ranks, int64_t pid,
                                 const std::set<int64_t>& numbers) {
  RunView part = OfOneRank(run, ranks, pid);
  part.accelerator_use.clear();
  Outside one;
  Slices slices = BuildSlices(part, &one);
  if (one.knowledge == OutsideKnowledge::kCpu) AddUnseenWaits(part, one, &slices);
  std::vector<size_t> judged;
  for (size_t s = 0; s < slices.index.size(); ++s) {
    if (numbers.contains(slices.index[s])) judged.push_back(s);
  }
  const std::optional<size_t> main = MainThreadOf(one, pid);
  const Totals totals = Sum(one, slices, judged);
  if (!main || totals.times[*main].total() <= 0) return std::nullopt;  // nothing of it was seen
  OutsideJudge judge(part, &one);
  if (!judge.FindUnits(totals, main)) return std::nullopt;
  return judge.Stall(totals);
}

// Where several processes take data, as ranks of a job do, the waits of each that computes on a
// device.
std::map<int64_t, double> WaitsByRank(const RunView& run, const std::vector<int64_t>& ranks,
                                      const std::set<int64_t>& numbers) {
  std::map<int64_t, double> waits;
  if (ranks.size() < 2) return waits;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "gpu_processes_count" || waits.contains(row.pid)) continue;
    if (std::find(ranks.begin(), ranks.end(), row.pid) == ranks.end()) continue;
    if (const auto wait = WaitOfRank(run, ranks, row.pid, numbers)) waits[row.pid] = *wait;
  }
  return waits;
}

// The consumer's waits, slice by slice of those that the verdict is about.
TrainerWaits WaitsOf(const OutsideJudge& judge, const RunView& run, const Slices& slices,
                     const std::vector<size_t>& all, const Outside& out) {
  TrainerWaits waits;
  if (run.accelerator_use.empty()) return waits;
  std::set<int64_t> numbers;
  for (const size_t s : all) {
    numbers.insert(slices.index[s]);
    waits.rows.push_back({slices.index[s] * run.course_slice_ns, run.course_slice_ns,
                          judge.Stall(Sum(out, slices, {s}))});
  }
  waits.by_rank = WaitsByRank(run, out.kinds[out.units[0].kind].pids, numbers);
  return waits;
}

double CpuSeconds(const Outside& out) {
  double seconds = 0;
  for (const ThreadGroup& group : out.groups) seconds += group.time.on_cpu_s;
  return seconds;
}

// How busy the cores were, by whom, and what of them is free.
void SayCores(const RunView& run, std::optional<double> tree_cpu_s, Outside* out) {
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  const Real used =
      seconds > 0 ? Real(tree_cpu_s.value_or(CpuSeconds(*out)) / seconds) : std::nullopt;
  out->core_budget = CoreBudgetOf(run, used);
  const HostRow* busy = run.FindHost("host_busy_cores");
  const HostRow* cores = run.FindHost("host_cores");
  if (busy == nullptr || cores == nullptr || !busy->mean_value || !cores->mean_value ||
      *cores->mean_value <= 0) {
    return;
  }
  out->cores_used = used;
  if (used) out->cores_others = std::max(0.0, *busy->mean_value - *used);
  constexpr double kSame = 0.01;
  const double all = *cores->mean_value, allowed = out->core_budget.cores.value_or(all);
  if (allowed >= all - kSame) {
    out->cores_busy_ratio = std::min(1.0, *busy->mean_value / all);
    out->cores_free = std::max(0.0, all - *busy->mean_value);
  } else if (out->cores_used && allowed > 0) {
    out->cores_busy_ratio = std::min(1.0, *out->cores_used / allowed);
  }
}

void FindUnevenUnits(const RunView& run, const Slices& slices, const std::vector<size_t>& all,
                     Outside* out) {
  std::set<int64_t> numbers;
  for (const size_t s : all) numbers.insert(slices.index[s]);
  for (OutsideUnit& unit : out->units) {
    if (unit.role != UnitRole::kProducer || unit.distance > 1) continue;
    unit.uneven = FindUnevenProcesses(run, *out, unit, numbers, slices.prefix);
    if (out->groups[unit.key_group].main)
      unit.idle_processes = CountIdleProcesses(run, out->kinds[unit.kind]);
  }
}

// Whether the threads of a multiprocessing.Pool, which hand over tasks and results, are most of
// what the other threads of the consumer's process do.
bool PoolThreadsAreMost(const Outside& out) {
  const auto& seen = out.home_activity;
  return seen && seen->samples_count >= kFewestSamples && seen->pool_ratio >= kClearlyMost &&
         seen->works_beside_pool < kThreadsAtOneThing;
}

// Whether workers of PyTorch end and others take their places, as they do in each epoch.
bool WorkersFollow(const Outside& out) {
  return std::any_of(out.groups.begin(), out.groups.end(), [&](const ThreadGroup& group) {
    const ProcessKind& kind = out.kinds[group.kind];
    const auto processes = static_cast<double>(kind.pids.size());
    return group.main && kind.name.starts_with("pt_data_worker") &&
           group.threads_count < kFollowOthers * processes;
  });
}

// Whether a program was recorded that had not begun: samples may have stopped before it did.
bool OnlyImports(const PythonActivity& seen, double recorded_s) {
  const double all_s = seen.imports_s + seen.sampled_s;
  return all_s >= std::max(kImportsSeenSeconds, kImportsSeenRatio * recorded_s) &&
         seen.imports_s >= kOnlyImports * all_s;
}

// Why there is no verdict; empty where there is one. `stopped_text`: that the consumer was stopped,
// else empty.
std::string WhyWithheld(const RunView& run, const Slices& slices, const Outside& out,
                        double lost_share, const std::string& lost_text,
                        const std::string& stopped_text) {
  const auto duration_ns = static_cast<double>(run.run.duration_ns);
  if (lost_share > kMostLostOfVerdict) {
    return lost_text + ": what is left does not stand for the whole";
  }
  if (out.knowledge == OutsideKnowledge::kNothing) {
    return "no thread was seen: nothing is known of where its time went";
  }
  if (!stopped_text.empty()) return stopped_text;
  if (duration_ns < kOutsideShortestNs) {
    return fmt::format("too short for a verdict ({:.1f} s; {:g} s are needed)", duration_ns * 1e-9,
                       kOutsideShortestNs * 1e-9);
  }
  if (slices.is_part) {
    return fmt::format(
        "threads were watched for {:.1f} of {:.1f} s, which says nothing of the rest; --level 3 "
        "goes on watching (section probes)",
        slices.seen_s, duration_ns * 1e-9);
  }
  return "";
}

}  // namespace

MoreProducers RoomForMore(double now, double stall, double each, double free_cores) {
  each = std::max(kLeastOfAProducer, each);
  const double wanted = std::ceil(now / std::max(kLeastOfAProducer, 1 - stall));
  const double room = now + std::round(free_cores / each);
  MoreProducers more;
  more.count = std::max(now, std::min(wanted, room));
  more.at_most = std::min(
      {more.count / now, 1 + free_cores / (now * each), 1 / std::max(kLeastLeftOfStep, 1 - stall)});
  return more;
}

bool HasIdleThreads(const Outside& out) {
  if (out.findings.empty() || out.findings[0].limit != OutsideLimit::kProducers) return false;
  const OutsideUnit& unit = out.units[out.culprit];
  const UnitShares& shares = unit.shares;
  const bool waits_for_known = shares.storage + shares.network > kWaitsForKnown ||
                               shares.wait_consumer + shares.wait_input > kWaitsForKnown;
  return out.culprit != 0 && unit.kind == out.units[0].kind && unit.threads_count >= 2 &&
         shares.on_cpu + shares.runnable < kIdleThreads && !waits_for_known;
}

bool RunPythonInTurn(const Outside& out) {
  if (out.findings.empty() || out.findings[0].limit != OutsideLimit::kProducers) return false;
  const OutsideUnit& unit = out.units[out.culprit];
  const std::string& name = out.kinds[unit.kind].name;
  const bool has_lock = name.starts_with("python") && !name.ends_with("t");  // python3.13t has none
  if (out.culprit == 0 || unit.kind != out.units[0].kind || !has_lock) return false;
  if (out.flavour != OutsideFlavour::kPlain || out.is_busy_thread) return false;
  const UnitShares& shares = unit.shares;
  const double cores = unit.threads_count * shares.on_cpu;
  return out.home_activity && out.home_activity->Others(Activity::kWorks) > kOneThreadsTime &&
         cores > kOneCore && cores < 2 - kOneCore && out.cores_free.value_or(0) > kAFreeCore &&
         shares.storage + shares.network + shares.sleep <= kWaitsForKnown;
}

bool IsCulpritShortLived(const Outside& out) {
  const OutsideUnit& unit = out.units[out.culprit];
  const std::string& name = out.kinds[unit.kind].name;
  // A function that takes most of the time of a tool is its work: such a tool starts at once.
  const bool loads_long = name == out.kinds[out.units[0].kind].name ||
                          out.compute_place.find(".py:") != std::string::npos ||
                          std::any_of(std::begin(kSlowToStart), std::end(kSlowToStart),
                                      [&](const char* each) { return name.starts_with(each); });
  return out.IsShortLived(unit) && (out.compute_place.empty() || loads_long);
}

bool PoolTakesInterpreter(const Outside& out) {
  const bool has_processes =
      std::any_of(out.units.begin() + 1, out.units.end(),
                  [&](const OutsideUnit& unit) { return unit.kind != out.units[0].kind; });
  return !out.findings.empty() && out.findings[0].limit == OutsideLimit::kInterpreter &&
         has_processes && PoolThreadsAreMost(out);
}

bool ExchangeWithPool(const Outside& out) {
  if (out.findings.empty() || out.findings[0].limit != OutsideLimit::kProducers) return false;
  const OutsideUnit& unit = out.units[out.culprit];
  if (out.culprit == 0 || unit.kind != out.units[0].kind || out.is_busy_thread) return false;
  // Threads before CPython 3.14 have the process's name, later ones Python's.
  const std::string& thread = out.groups[unit.key_group].thread;
  const bool may_be = thread == out.kinds[unit.kind].name || thread.find("_handle_") != thread.npos;
  return may_be && unit.threads_count <= kThreadsOfPool && PoolThreadsAreMost(out);
}

std::string WhyMoreDoNotHelp(const Outside& out, const std::string& what) {
  if (ExchangeWithPool(out)) {
    return what +
           " hand tasks to a Pool and take its results: a Pool has one thread that sends tasks and "
           "one that takes results";
  }
  if (const size_t idle = out.units[out.culprit].idle_processes; idle > 0) {
    const ProcessKind& kind = out.kinds[out.units[out.culprit].kind];
    return fmt::format(
        "{} of {} processes {} had nothing to do: divide the data into as many shards first", idle,
        kind.pids.size(), kind.name);
  }
  if (RunPythonInTurn(out)) {
    return fmt::format(
        "{} use one core together: one thread of a process runs Python at a time, so more of them "
        "do not help",
        what);
  }
  if (HasIdleThreads(out)) {
    return fmt::format("{} compute {} of their time: more of them may be idle, too", what,
                       FormatPercent(out.units[out.culprit].shares.on_cpu));
  }
  if (IsCulpritShortLived(out)) {
    return what + " end soon and are followed by others: let each do more first";
  }
  return "";
}

bool MayUnpickle(const Outside& out) {
  return out.flavour == OutsideFlavour::kTorch && MayLoad(out) &&
         std::any_of(out.units.begin(), out.units.end(), [&](const OutsideUnit& unit) {
           return unit.role == UnitRole::kProducer && unit.kind != out.units[0].kind;
         });
}

bool MayLoad(const Outside& out) {
  if (out.units.empty() || out.OwnWork()) return false;
  const OutsideUnit& consumer = out.units[0];
  if (consumer.role != UnitRole::kConsumer) return false;
  if (consumer.shares.on_cpu < kUnpicklerComputes) return false;
  // tf.data makes batches in threads of its own.
  return out.flavour != OutsideFlavour::kTensorflow;
}

namespace {

// One of several ranks, where `run` is a part of what was recorded.
struct OneRank {
  int64_t pid = 0;
  double tree_cpu_s = 0;  // of all processes that were recorded
};

// What the groups of threads did, and who ended whose waits.
void CountTime(const RunView& run, const Slices& slices, const Totals& totals, Outside* out) {
  for (size_t g = 0; g < out->groups.size(); ++g) {
    ThreadGroup& group = out->groups[g];
    group.time = totals.times[g];
    group.threads_count = slices.seen_s > 0 ? totals.times[g].total() / slices.seen_s : 0;
    if (!group.main) continue;
    // With causes a thread's whole life is seen; a group of first threads has one a process, of
    // which some may follow others.
    const double processes = static_cast<double>(out->kinds[group.kind].pids.size());
    const double at_once = MostAtOnce(run, out->kinds[group.kind]);
    group.threads_count = at_once < kFollowOthers * processes ? at_once : processes;
  }
  for (size_t e = 0; e < out->edges.size(); ++e) out->edges[e].wait_s = totals.waits[e];
}

// What its main thread is in, as far as stacks say; `seen`: all its time of which causes are known.
void LookIntoConsumer(const RunView& run, const ThreadTimes& seen, Outside* out) {
  const std::vector<int64_t>& ids = out->kinds[out->units[0].kind].process_ids;
  out->python = LookAtPython(run, ids, WorkersFollow(*out));
  out->beside_training = LookBesideTraining(run, ids);
  const UnitShares& own = out->units[0].shares;
  const double blocked = 1 - own.on_cpu - own.runnable;
  if (out->python) CountReceiving(blocked, &*out->python);
  out->native = LookAtNative(run, ids);
  out->goroutines = LookAtGoroutines(run, ids);
  if (out->goroutines) {
    out->unknown.push_back(
        "how long a goroutine waits: Go moves them from thread to thread, and the waits are "
        "those of threads");
  }
  if (ids.size() == 1) out->python_threads = LookAtPythonThreads(run, ids[0]);
  if (const auto waits = WaitsForInterpreter(run, ids); waits && seen.blocked() > 0) {
    out->interpreter_ratio = blocked * std::min(1.0, waits->seconds / seen.blocked());
    out->is_interpreter_all = waits->is_all;
  }
  InferInterpreterWaits(out);
}

// What the culprit does, once it is known.
void LookIntoCulprit(const RunView& run, Outside* out) {
  const ProcessKind& kind = out->kinds[out->units[out->culprit].kind];
  if (out->flavour != OutsideFlavour::kTorch || !kind.name.starts_with("pt_data_worker")) return;
  out->workers = LookAtWorkers(run, kind.process_ids);
  if (out->workers && !WorkersFollow(*out)) out->workers->start_ratio = 0;  // once, and no more
}

// The unit that findings[0] is about; `limit`, `culprit`: by the whole run, which may differ.
size_t CulpritOf(const Outside& out, OutsideLimit limit, size_t culprit) {
  const OutsideLimit found = out.findings[0].limit;
  if (found == limit) return culprit;
  return found == OutsideLimit::kCores ? WhoFeedsAtItsCost(out).value_or(0) : 0;
}

// Whether it waits for threads of its own process, which compute for it, and not for data.
// `culprit`: the unit that its waits lead to.
bool IsStepElsewhere(const Outside& out, size_t culprit) {
  const bool of_home = culprit != 0 && out.units[culprit].kind == out.units[0].kind;
  return out.findings[0].limit == OutsideLimit::kConsumer && of_home &&
         out.stall_ratio >= kSmallStall && (StepIsSeen(out) || out.HasStepInRunTime());
}

using FindsConsumer = std::function<std::optional<size_t>(const Totals&)>;

// Whether the consumer is of a kind of processes that was stopped while it was recorded.
bool HasStopped(const RunView& run, const Outside& seen, const std::vector<size_t>& stopped,
                const Totals& totals, const FindsConsumer& consumer) {
  if (stopped.empty()) return false;
  Outside first = seen;
  OutsideJudge look(run, &first);
  return look.FindUnits(totals, consumer(totals)) &&
         std::find(stopped.begin(), stopped.end(), first.groups[look.consumer()].kind) !=
             stopped.end();
}

// Those of `all` in which the consumer takes batches and its device, where it has one, is in use.
// All where no consumer is found.
std::vector<size_t> SteadySlices(const RunView& run, const Slices& slices, const Outside& seen,
                                 std::vector<size_t> all, const FindsConsumer& consumer) {
  Outside first = seen;  // who the consumer is, to see when it began to take batches
  OutsideJudge look(run, &first);
  const Totals totals = Sum(seen, slices, all);
  if (!look.FindUnits(totals, consumer(totals))) return all;
  return WithDevice(run, slices, Steady(seen, slices, look.consumer(), all));
}

// What the processes of the culprit do, where there is one.
void LookAtCulpritsProcesses(const RunView& run, Outside* out) {
  if (out->culprit == 0) return;
  const OutsideUnit& unit = out->units[out->culprit];
  const std::vector<int64_t>& process_ids = out->kinds[unit.kind].process_ids;
  if (unit.kind == out->units[0].kind) {
    out->native_waits = LookAtNativeWaits(run, process_ids, out->groups[unit.key_group].thread);
  }
  out->feeder_activity = LookAtActivity(run, process_ids);
}

// `lost`: of the whole recording.
Outside Look(const RunView& run, const LostShare& lost, const std::optional<OneRank>& rank) {
  Outside out;
  const FindsConsumer consumer = [&](const Totals& totals) {
    const auto main = rank ? MainThreadOf(out, rank->pid) : std::nullopt;
    return main ? main : FindConsumer(out, totals);
  };
  Slices slices = BuildSlices(run, &out);
  JoinTimedWaits(run, out, &slices);
  std::vector<size_t> all(slices.times.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const Totals totals = Sum(out, slices, all);
  CountTime(run, slices, totals, &out);
  out.uses_training_library = UsesTrainingLibrary(run);
  out.flavour = FlavourOf(run, out.groups, out.uses_training_library);
  SayCores(run, rank ? std::optional(rank->tree_cpu_s) : std::nullopt, &out);

  const std::vector<size_t> stopped = StoppedKinds(out);
  const bool consumer_stopped = HasStopped(run, out, stopped, totals, consumer);
  const std::string lost_text =
      fmt::format("{:.0f} % of {} were lost (see LOST)", 100 * lost.share, lost.words);
  out.withheld = WhyWithheld(run, slices, out, lost.share, lost_text,
                             consumer_stopped ? StoppedText(out, stopped) : "");
  SayUnknown(&out);
  if (!out.withheld.empty()) {
    SayUnseenAccelerator(&out);
    return out;
  }
  if (lost.share >= kLossTold) out.unknown.push_back("what was lost: " + lost_text);
  if (!stopped.empty()) out.unknown.push_back(StoppedText(out, stopped));
  if (out.knowledge == OutsideKnowledge::kCpu) AddUnseenWaits(run, out, &slices);
  all = SteadySlices(run, slices, out, std::move(all), consumer);
  out.steady_slices = all.size();
  const Totals whole = Sum(out, slices, all);
  OutsideJudge judge(run, &out);
  if (!judge.FindUnits(whole, consumer(whole))) {
    out.withheld = "no process of the tree could be followed";
    return out;
  }
  FindUnevenUnits(run, slices, all, &out);
  out.stall_ratio = judge.Stall(whole);
  out.stall_assumed = out.knowledge < OutsideKnowledge::kCounts;
  out.accelerators = LookAtAccelerators(run, WaitsOf(judge, run, slices, all, out));

  out.steady_s = whole.times[judge.consumer()].total();
  const ThreadTimes& seen = totals.times[judge.consumer()];
  out.home_activity = LookAtActivity(run, out.kinds[out.units[0].kind].process_ids);
  if (out.groups[judge.consumer()].main) LookIntoConsumer(run, seen, &out);
  SayUnseenAccelerator(&out);
  AddFindings(judge, slices, all, lost.share, &out);
  const auto [limit, culprit] = judge.Decide(whole);
  out.culprit = CulpritOf(out, limit, culprit);
  if (out.home_activity && OnlyImports(*out.home_activity, seen.total())) {
    out.withheld = fmt::format(
        "{} loaded its modules nearly all the time that its functions were seen; "
        "record longer",
        out.kinds[out.units[0].kind].name);
    return out;
  }
  LookAtCulpritsProcesses(run, &out);
  AskActivity(judge, whole, lost.share, &out);
  FindBusyThread(lost.share, &out);
  LookIntoCulprit(run, &out);
  // They mostly wait, and nobody saw for what. Goroutines move between threads.
  OutsideFinding& first = out.findings[0];
  const bool is_named = out.is_busy_thread || out.goroutines;
  if (first.limit == OutsideLimit::kProducers && !is_named && HasIdleThreads(out)) {
    first.probability = std::min(first.probability, kMostOfIdleThreads);
  }
  out.is_step_elsewhere = IsStepElsewhere(out, culprit);
  out.compute_place = ComputePlace(run, out);
  out.new_memory_ratio = NewMemoryRatio(run, out);
  out.is_asked_over_network = IsAskedOverNetwork(run, out);
  // What its thread does beside its step may be in functions that say nothing of it.
  const bool is_python = out.kinds[out.units[0].kind].name.starts_with("python");
  const bool is_known = MayLoad(out) || (out.beside_training && out.beside_training->IsMost());
  if (first.limit == OutsideLimit::kConsumer && is_python && !is_known) {
    first.probability = std::min(first.probability, kTrainersStep);
  }
  if (MayBeBesideServices(out)) first.probability = std::min(first.probability, kBesideServices);
  out.decided = out.findings[0].limit != OutsideLimit::kNone &&
                out.findings[0].limit != OutsideLimit::kAlone &&
                out.findings[0].probability >= kSureOfRow;
  if (!out.decided)
    out.measure = WhatDecides(run, out, lost.share > 1 - kSureOfRow ? lost_text : "",
                              stopped.empty() ? "" : StoppedText(out, stopped));
  return out;
}

}  // namespace

Outside LookFromOutside(const RunView& run) {
  const std::optional<RanksSeen> ranks = FindRanks(run);
  return ranks ? LookAtRank(run, ranks->pids, ranks->seen)
               : Look(run, ShareLost(run), std::nullopt);
}

Outside LookAtRank(const RunView& run, const std::vector<int64_t>& pids, const RankSeen& rank) {
  Outside all;
  double tree_cpu_s = 0;
  for (const auto& slice : BuildSlices(run, &all).times) {
    for (const ThreadTimes& time : slice) tree_cpu_s += time.on_cpu_s;
  }
  Outside out = Look(OfOneRank(run, pids, rank.pid), ShareLost(run), OneRank{rank.pid, tree_cpu_s});
  out.rank = rank;
  out.beside_training =
      Larger(std::move(out.beside_training), Exchanging(ExchangeRatio({rank, pids}).value_or(0)));
  return out;
}

}  // namespace headrace::analysis
