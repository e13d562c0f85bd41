#include "dashboards/report/outside_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/outside/activity_findings.h"
#include "analysis/outside/file_locks.h"
#include "analysis/outside/findings.h"
#include "analysis/thresholds.h"
#include "base/units.h"
#include "dashboards/report/outside_names.h"
#include "dashboards/report/own_work_words.h"
#include "dashboards/report/page_words.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Outside;
using analysis::OutsideFlavour;
using analysis::OutsideLimit;
using analysis::OutsideUnit;
using analysis::RunView;

bool IsTorch(const Outside& seen) { return seen.flavour == OutsideFlavour::kTorch; }

// Requests to devices of one direction by the program's own processes: how many, and of what size
// and latency together.
struct Requests {
  double count = 0, bytes = 0, latency_ns = 0;
};

Requests RequestsOf(const RunView& run, const char* direction) {
  Requests sum;
  for (const analysis::MeasurementRow& row : run.measurements) {
    if (row.cause != direction || !row.value || !row.process_id || row.bucket) continue;
    if (row.metric == "block_requests_count") sum.count += *row.value;
    if (row.metric == "block_bytes") sum.bytes += *row.value;
    if (row.metric == "block_latency_ns") sum.latency_ns += *row.value;
  }
  return sum;
}

bool IsMostlyWriting(const RunView& run) {
  constexpr double kMostly = 4;    // times
  constexpr double kSeveral = 20;  // requests
  const Requests reads = RequestsOf(run, "read"), writes = RequestsOf(run, "write");
  return writes.count >= kSeveral && writes.latency_ns > kMostly * reads.latency_ns;
}

// With what the requests look like, if that was measured: "; a read is 4.00 KiB long and takes 95
// us". A program that hardly reads waits for what it writes.
std::string AdviceForStorage(const RunView& run) {
  const bool is_writing = IsMostlyWriting(run);
  const Requests requests = RequestsOf(run, is_writing ? "write" : "read");
  std::string text =
      is_writing ? "write fewer and larger pieces, and force them to the disk less often (fsync)"
                 : "larger or fewer reads, more of them at once, or data on a faster device";
  if (requests.count <= 0) return text;
  text += fmt::format("; a {} is {} long", is_writing ? "write" : "read",
                      FormatBytes(requests.bytes / requests.count));
  if (requests.latency_ns > 0) {
    text += fmt::format(" and takes {}", FormatDuration(requests.latency_ns / requests.count));
  }
  return text;
}

// Of one thread that does everything; empty where nothing beside it could be faster.
std::string AdviceAlone(const Outside& seen) {
  constexpr double kLeastFree = 0.2;  // cores
  double most = 2;                    // with one beside it
  if (seen.accelerators) most = std::min(most, seen.accelerators->MostGain().value_or(most));
  const bool computes = !seen.WaitsAlone();
  if (most < 1 + analysis::kWorthwhileGain) return "";
  if (computes && seen.cores_free.value_or(1) < kLeastFree) return "";
  const bool is_python = seen.kinds[seen.units[0].kind].name.starts_with("python");
  const char* ahead = IsTorch(seen)
                          ? "num_workers 0 -> 1 or more, so that loading runs beside the step"
                      : is_python ? "load ahead in another process (multiprocessing)"
                                  : "load ahead in another thread";
  return fmt::format("{}{}; one brings at most {:.2g} times the rate",
                     seen.IsByFunctions() ? "" : "if it loads data: ", ahead, most);
}

double ThreadsNow(const OutsideUnit& unit) { return std::max(1.0, std::round(unit.threads_count)); }

// How many of the workers that limit there is room for; nothing: others limit, their number does
// not help, or it is not known how many cores are free.
std::optional<analysis::MoreProducers> MoreOf(const Outside& seen) {
  const OutsideUnit& unit = seen.units[seen.culprit];
  if (seen.findings[0].limit != OutsideLimit::kProducers || unit.uneven ||
      unit.idle_processes > 0 || seen.is_busy_thread || analysis::ExchangeWithPool(seen) ||
      analysis::RunPythonInTurn(seen) || !seen.cores_free ||
      seen.core_budget.cores.value_or(0) <= 0) {
    return std::nullopt;
  }
  return analysis::RoomForMore(ThreadsNow(unit), seen.stall_ratio, unit.shares.on_cpu,
                               *seen.cores_free);
}

// Whether those that limit are the main threads of other processes.
bool AreProcesses(const Outside& seen) {
  const OutsideUnit& unit = seen.units[seen.culprit];
  return unit.kind != seen.units[0].kind && seen.groups[unit.key_group].main;
}

// What is said of the number of threads or processes that limit: "num_workers 1 -> 2".
std::string NumberChange(const Outside& seen, double to) {
  const OutsideUnit& unit = seen.units[seen.culprit];
  const std::string what = !AreProcesses(seen) ? UnitWord(seen, seen.culprit)
                           : IsTorch(seen)     ? "num_workers"
                                               : "processes " + seen.kinds[unit.kind].name;
  return fmt::format("{} {:.0f} -> {:.0f}", what, ThreadsNow(unit), to);
}

// What brings more where the number of workers does not.
std::string CheaperWork(const Outside& seen) {
  if (!seen.compute_place.empty()) return "a cheaper " + seen.compute_place;
  return IsTorch(seen) ? "a cheaper __getitem__ or collate_fn" : "less work per element";
}

// Of processes that end soon: how much of their time their start takes nobody saw.
constexpr const char* kLiveLonger =
    "let each process do more before it ends, so that fewer are started (maxtasksperchild of a "
    "Pool; one process for many items)";

constexpr const char* kExchangeLess =
    "exchange less with the pool's processes: several items for each task (chunksize of imap and "
    "map), or memory shared with them (multiprocessing.shared_memory). More processes do not help";

constexpr const char* kShareMemory =
    "send a few arrays or tensors in place of many objects, and share their memory "
    "(multiprocessing.shared_memory, torch tensors) instead of pickling them into a pipe. More "
    "processes hardly help";

constexpr const char* kSendOnce =
    "send less with each task: its arguments, and what functools.partial holds, are pickled for "
    "each. Give large data once, by the Pool's initializer, or share memory. More processes do not "
    "help";

constexpr const char* kAskMore =
    "more requests at once, unless the server limits their rate; or find what the server waits for";

constexpr const char* kDatabaseAdvice =
    "let readers go on beside the one that writes (PRAGMA journal_mode=WAL), or hold the lock for "
    "less time: shorter transactions";

constexpr double kAtMostOneCore = 1.1;

// Whether it is one process of Python whose threads do for several others what these wait for.
bool ServesOthers(const Outside& seen) {
  const OutsideUnit& unit = seen.units[seen.culprit];
  const analysis::ProcessKind& process = seen.kinds[unit.kind];
  if (unit.kind == seen.units[0].kind || process.pids.size() != 1) return false;
  if (!process.name.starts_with("python") || seen.groups[unit.key_group].main) return false;
  size_t most = 0;  // processes of one kind that wait for it
  for (const analysis::WakeEdge& edge : seen.edges) {
    const size_t waits = seen.groups[edge.wakee].kind;
    if (!edge.waker || seen.groups[*edge.waker].kind != unit.kind || waits == unit.kind) continue;
    most = std::max(most, seen.kinds[waits].pids.size());
  }
  return most >= 2;
}

// Whether threads of the trainer's process beside its main one mostly run Python, as tf.data's do
// for a generator.
bool RunsPythonBeside(const Outside& seen) {
  return seen.home_activity &&
         seen.home_activity->Others(analysis::Activity::kWorks) >= analysis::kThreadsAtOneThing;
}

// Where workers of PyTorch that live for moments follow each other: to keep them, before other
// advice, as what each loads at its first item is no part of its start. Else empty.
std::string KeepWorkers(const Outside& seen) {
  constexpr double kMoments = 3;  // seconds
  const OutsideUnit& unit = seen.units[seen.culprit];
  const analysis::ProcessKind& kind = seen.kinds[unit.kind];
  const double started = static_cast<double>(kind.pids.size());
  const double at_once = std::max(1.0, ThreadsNow(unit));
  if (!kind.name.starts_with("pt_data_worker") || started < 3 * at_once) return "";
  if (seen.steady_s * at_once > kMoments * started) return "";
  return fmt::format(
      "persistent_workers=True in the DataLoader, made once for all epochs: {:.0f} workers were "
      "started, {:.0f} at a time, and what each loads first it loads again; or ",
      started, at_once);
}

std::string AdviceForProducers(const Outside& seen) {
  const OutsideUnit& unit = seen.units[seen.culprit];
  const std::string cheaper = CheaperWork(seen);
  if (UnpicklesTasks(seen)) {
    return "send less with each task: what all of them need (a bound method sends its object) is "
           "given to the processes once, by an initializer";
  }
  if (Unpickles(seen)) {
    return "send fewer and larger objects, as arrays or tensors: more processes do not help, as "
           "one thread unpickles what all of them send";
  }
  if (analysis::ExchangeWithPool(seen) || !PoolThreadDoes(seen).empty()) return kExchangeLess;
  if (seen.is_busy_thread) {
    return fmt::format("make {} cheaper, or divide its work among several processes",
                       seen.python_threads->busy_function);
  }
  const bool at_home = unit.kind == seen.units[0].kind;
  if (at_home && seen.goroutines && !seen.goroutines->busiest.empty()) {
    const bool is_one = seen.goroutines->busiest_cores < kAtMostOneCore;
    return fmt::format("make {} cheaper, or divide its work among {} goroutines",
                       seen.goroutines->busiest, is_one ? "several" : "more");
  }
  if (StartsWorkers(seen)) {
    return "persistent_workers=True in the DataLoader, so that workers are started once; or a "
           "cheaper worker_init_fn";
  }
  if (unit.uneven) {
    return fmt::format(
        "give each of {} as much work as the others: mix long and short items in every shard",
        UnitWord(seen, seen.culprit));
  }
  if (AreProcessesShortLived(seen)) return fmt::format("{}; or {}", kLiveLonger, cheaper);
  const double used = unit.threads_count * unit.shares.on_cpu;
  if (used < kAtMostOneCore && ServesOthers(seen)) {
    return fmt::format(
        "do {} in each process that asks for it: the threads of this one process run Python one at "
        "a time",
        seen.activity_place.empty() ? "this work" : seen.activity_place);
  }
  if (analysis::RunPythonInTurn(seen)) {
    return fmt::format(
        "do this in processes instead of threads: one thread of a process runs Python at a time, "
        "and these use {:.1f} cores together; or {}",
        used, cheaper);
  }
  if (analysis::HasIdleThreads(seen)) {
    return fmt::format(
        "{}. These threads compute {} of their time. Something may run one at a time, such as a "
        "generator of Python: more threads would not help then",
        cheaper, FormatPercent(unit.shares.on_cpu));
  }
  if (at_home && seen.flavour == OutsideFlavour::kTensorflow && used < kAtMostOneCore &&
      !RunsPythonBeside(seen)) {
    return fmt::format(
        "num_parallel_calls=tf.data.AUTOTUNE in every map(): without it one thread makes all "
        "elements (its threads compute {:.1f} of {:.1f} cores); or {}",
        used, seen.core_budget.cores.value_or(0), cheaper);
  }
  const double cores = seen.core_budget.cores.value_or(0);
  if (unit.idle_processes > 0) {
    return fmt::format(
        "divide the data into as many shards as there are workers ({} of {} had nothing to do: "
        "more "
        "of them do not help); or {}",
        unit.idle_processes, seen.kinds[unit.kind].pids.size(), cheaper);
  }
  const std::string keep = KeepWorkers(seen);
  if (!keep.empty() && analysis::IsCulpritShortLived(seen)) return keep + cheaper;
  const auto more = MoreOf(seen);
  const auto asked = AskedProcess(seen);
  const std::string exchange =
      asked ? "fewer and larger exchanges with " + asked->name + "; or " : "";
  if (!more) {
    return fmt::format("{}{}more of {}, while cores are left; or {}", keep, exchange,
                       UnitWord(seen, seen.culprit, UnitNumber::kMany), cheaper);
  }
  const double now = ThreadsNow(unit), to = more->count, free = *seen.cores_free;
  if (to <= now) {
    return fmt::format("{}{}{}: no core is left for more of them", keep, exchange, cheaper);
  }
  return fmt::format("{}{}{} ({:.1f} of {:.1f} cores are free, each takes {:.2f}); or {}", keep,
                     exchange, NumberChange(seen, to), free, cores, unit.shares.on_cpu, cheaper);
}

std::string AdviceForCores(const Outside& seen) {
  const std::string cheaper = CheaperWork(seen);
  if (seen.core_budget.quota) {
    return fmt::format("raise {}, or {}: more threads or processes do not help", QuotaWord(seen),
                       cheaper);
  }
  if (seen.IsHeldBack()) {
    return "look for a quota (cpu.max of its control group, the container's limit) or an "
           "affinity (taskset, cpuset), and widen it: cores are idle";
  }
  if (seen.cores_free && seen.cores_others &&
      *seen.cores_others > analysis::kOthersTakeCores * seen.core_budget.cores.value_or(1)) {
    const bool more = seen.GetsAnotherShare() && !Unpickles(seen) && !StartsWorkers(seen) &&
                      !AreProcessesShortLived(seen);
    return fmt::format(
        "keep other programs off these cores: they use {:.1f}{}; else {}", *seen.cores_others,
        more ? fmt::format("; until then {} takes another share of the cores",
                           NumberChange(seen, ThreadsNow(seen.units[seen.culprit]) + 1))
             : "",
        cheaper);
  }
  if (const auto taker = analysis::TakesCores(seen)) {
    return fmt::format("keep {} off these cores, or start them later; or more cores",
                       seen.units[*taker].name);
  }
  if (AreProcessesShortLived(seen)) {
    return fmt::format("{}; or {}; or more cores. More threads or processes do not help",
                       kLiveLonger, cheaper);
  }
  return fmt::format("{}, or more cores: more threads or processes do not help", cheaper);
}

// For a consumer that limits by all that it does.
std::string AdviceForAllItDoes(const Outside& seen) {
  const OutsideUnit& unit = seen.units[seen.culprit];
  const bool starts = std::any_of(seen.units.begin(), seen.units.end(), [&](const auto& each) {
    return each.role == analysis::UnitRole::kProducer && seen.IsShortLived(each) &&
           seen.kinds[each.kind].name.starts_with("pt_data_worker");
  });
  if (starts && !analysis::StepIsSeen(seen)) {
    return "persistent_workers=True in the DataLoader, made once for all epochs: starting and "
           "ending workers takes time of the trainer's thread, too. Or a cheaper step";
  }
  if (seen.stall_ratio >= analysis::kSmallStall && !seen.is_step_elsewhere) {
    if (seen.native_waits.AreConditions()) {
      return fmt::format("a cheaper step of {}: the threads beside it mostly wait",
                         seen.ConsumerWord());
    }
    return fmt::format(
        "a cheaper step of {}; its waits come in bursts, which a longer queue may remove",
        seen.ConsumerWord());
  }
  if (!seen.HasProducers() && seen.OwnTimes()) return AdviceForStep(seen);
  std::string text = "nothing in the loading: it keeps up";
  if (analysis::MayUnpickle(seen)) {
    text =
        "find out what that thread does: record again with py-spy (pip install py-spy), or "
        "start the program by 'headrace profile --'. If it trains, nothing in the loading "
        "helps";
  } else if (analysis::MayLoad(seen)) {
    text =
        "what feeds it keeps up. Look what this thread computes: its step, or part of the "
        "loading";
  }
  if (unit.role == analysis::UnitRole::kConsumer && seen.units.size() > 1) {
    for (const OutsideUnit& other : seen.units) {
      if (other.role != analysis::UnitRole::kProducer || other.distance > 1) continue;
      if (other.kind == seen.units[0].kind) break;  // threads of a library's, perhaps
      const double now = std::round(other.threads_count);
      const double enough = std::max(1.0, std::ceil(now * (1 - other.shares.wait_consumer)));
      if (now >= 2 && enough < now) {
        text += fmt::format("; {:.0f} of the {:.0f} {} would be enough", enough, now,
                            IsTorch(seen) ? "workers" : "processes");
      }
      break;
    }
  }
  return text;
}

std::string AdviceForConsumer(const Outside& seen) {
  const auto& beside = seen.beside_training;
  if (!beside) return AdviceForAllItDoes(seen);
  if (beside->IsMost()) return std::string(beside->advice);
  return fmt::format("{}: {} is {} of what the trainer does. Beside that, {}", beside->advice,
                     beside->noun, beside->Share(), AdviceForAllItDoes(seen));
}

std::string AdviceForPauses(const Outside& seen) {
  const bool torch = IsTorch(seen);
  if (AreWorkersShortLived(seen)) {
    return fmt::format(
        "persistent_workers=True in the DataLoader, so that workers are started once: at most "
        "{:.1f} times the rate",
        1 / std::max(0.1, 1 - seen.stall_ratio));
  }
  return fmt::format(
      "a longer queue may bridge the pauses{}: at most {:.1f} times the rate. Or find the "
      "cause: a slow item that others wait for, a file being opened, a retry{}",
      torch ? " (prefetch_factor; in_order=False where order does not matter)" : "",
      1 / std::max(0.1, 1 - seen.stall_ratio),
      torch ? ", workers that are started again for each epoch (persistent_workers=True)" : "");
}

// Threads that mostly have nothing to ask are enough of them: what is asked next waits for an
// answer that is slow, or that is not taken yet.
std::string AdviceForNetwork(const Outside& seen) {
  if (seen.is_asked_over_network) return kAskMore;
  constexpr double kSomeThreads = 4;    // so many could have as many requests under way
  constexpr double kMostlyWaits = 0.6;  // of their time, for each other and for what is to be done
  const OutsideUnit& unit = seen.units[seen.culprit];
  const double waits = unit.shares.lock + unit.shares.wait_consumer + unit.shares.wait_input;
  const double asked = unit.threads_count * unit.shares.network;
  if (ThreadsNow(unit) < kSomeThreads || waits < kMostlyWaits || asked < 0.5) {
    return "more requests at once, larger ones, or a copy nearby";
  }
  return fmt::format(
      "only {:.1f} requests of {:.0f} threads are under way at a time: ask further ahead, or take "
      "answers as they come instead of in order; or a copy nearby",
      asked, ThreadsNow(unit));
}

std::string AdviceOf(const RunView& run, const Outside& seen) {
  switch (seen.findings[0].limit) {
    case OutsideLimit::kProducers:
      return AdviceForProducers(seen);
    case OutsideLimit::kCores:
      return AdviceForCores(seen);
    case OutsideLimit::kStorage:
      return AdviceForStorage(run);
    case OutsideLimit::kNetwork:
      return AdviceForNetwork(seen);
    case OutsideLimit::kInterpreter:
      if (analysis::PoolTakesInterpreter(seen)) return kExchangeLess;
      return "processes instead of threads: one thread of a process runs Python at a time";
    case OutsideLimit::kLock:
      if (analysis::StandsAtADatabase(seen.units[seen.culprit].shares)) return kDatabaseAdvice;
      return fmt::format("hold the lock for less time or split it: more {} only wait for it",
                         AreProcesses(seen) ? "processes" : "threads");
    case OutsideLimit::kCollector:
      return "allocate less in each step (use objects again, larger arrays in place of many small "
             "objects), a larger heap (-Xmx), and no System.gc()";
    case OutsideLimit::kHandOver:
      return analysis::HandsOverTasks(seen) ? kSendOnce : kShareMemory;
    case OutsideLimit::kSleep:
      if (seen.is_asked_over_network) return kAskMore;
      return "find what sleeps: a retry, a rate limit, or polling, where waiting for a condition "
             "is faster (stacks off the CPU name it)";
    case OutsideLimit::kConsumer:
      return AdviceForConsumer(seen);
    case OutsideLimit::kPauses:
      return AdviceForPauses(seen);
    case OutsideLimit::kOwnWork:
      return AdviceForOwnWork(seen);
    case OutsideLimit::kAlone: {
      const std::string ahead = AdviceAlone(seen);
      if (!seen.beside_training) return ahead;
      const std::string beside(seen.beside_training->advice);
      if (ahead.empty()) return beside;
      return seen.beside_training->IsMost() ? beside + "; or, " + ahead : ahead + "; or " + beside;
    }
    case OutsideLimit::kNone:
      break;
  }
  return "";
}

}  // namespace

std::string QuotaWord(const Outside& seen) {
  return fmt::format("the CPU quota of {:.2f} cores", seen.core_budget.quota->cores);
}

std::string WaitsAlone(const Outside& seen) {
  if (!seen.WaitsAlone()) return "";
  const analysis::UnitShares& shares = seen.units[0].shares;
  switch (seen.findings[0].limit) {
    case OutsideLimit::kSleep:
      return fmt::format("it sleeps {} of its time", FormatPercent(shares.sleep));
    case OutsideLimit::kStorage:
      return fmt::format("it waits for storage {} of its time", FormatPercent(shares.storage));
    case OutsideLimit::kNetwork:
      return fmt::format("it waits for the network {} of its time", FormatPercent(shares.network));
    default:
      return "";
  }
}

bool IsOneThread(const Outside& seen) {
  return seen.findings[0].limit == OutsideLimit::kAlone || seen.WaitsAlone() ||
         (!seen.decided && !seen.HasProducers() && !WaitsForUnseen(seen));
}

std::optional<double> WaitsForUnseen(const Outside& seen) {
  const bool undecided = !seen.decided && seen.findings[0].limit == OutsideLimit::kNone;
  if (!undecided || seen.HasProducers() || !seen.OwnTimes()) return std::nullopt;
  // Samples are of the whole run; in its steady part the thread may compute longer.
  const analysis::UnitShares& shares = seen.units[0].shares;
  const double waits = std::min(seen.python->waits_s / std::max(seen.python->seconds, 1e-9),
                                1 - shares.on_cpu - shares.runnable);
  return waits > 0.5 ? std::optional(waits) : std::nullopt;
}

namespace {

std::string AdviceForLimit(const RunView& run, const Outside& seen) {
  // Whether it loads or trains is not decided: advice for one of them would say that it is.
  if (!seen.decided && !seen.HasProducers() && !seen.WaitsAlone()) return AdviceAlone(seen);
  const std::string advice = AdviceOf(run, seen);
  const bool writes =
      seen.findings[0].limit == OutsideLimit::kStorage && IsMostlyWriting(run);  // it loads nothing
  const std::string ahead = seen.WaitsAlone() && !writes ? AdviceAlone(seen) : "";
  return ahead.empty()
             ? advice
             : fmt::format("{}. More of them let such waits overlap. Or {}", ahead, advice);
}

}  // namespace

std::string Advice(const RunView& run, const Outside& seen) {
  const std::string advice = AdviceForLimit(run, seen);
  if (!seen.new_memory_ratio) return advice;
  constexpr const char* kKeep =
      "keep memory for the next batch instead of allocating it again: the kernel clears it "
      "whenever it is first touched";
  const bool beside = seen.beside_training && seen.beside_training->IsMost();
  if (seen.culprit != 0 || beside || advice.empty()) {
    return advice.empty() ? kKeep : fmt::format("{}. Also {}", advice, kKeep);
  }
  return fmt::format("{}. Or, {}", kKeep, advice);
}

std::optional<double> MostGain(const Outside& seen) {
  if (seen.findings[0].limit == OutsideLimit::kConsumer || !seen.HasProducers())
    return std::nullopt;
  if (seen.goroutines && seen.culprit == 0) return std::nullopt;  // its threads' waits tell nothing
  // What holds all of it back holds back its step, too.
  const bool is_held = seen.core_budget.quota || seen.IsHeldBack();
  if (seen.findings[0].limit == OutsideLimit::kCores && is_held) return std::nullopt;
  const bool own = seen.findings[0].limit == OutsideLimit::kOwnWork;
  double loads = own ? seen.InLoader().value_or(0) : seen.stall_ratio;
  if (seen.findings[0].limit == OutsideLimit::kInterpreter) {
    // The step waits for its turn, too: an upper bound, as other waits may hold a part of that.
    const analysis::UnitShares& step = seen.units[0].shares;
    loads = std::max(loads, std::min(loads + seen.interpreter_ratio.value_or(0),
                                     1 - step.on_cpu - step.runnable));
  }
  if (loads <= 0.02 || loads >= 0.98) return std::nullopt;
  const double gain = 1 / (1 - loads);
  if (!seen.accelerators) return gain;
  return std::min(gain, seen.accelerators->MostGain().value_or(gain));
}

std::string NextLine(const Outside& seen, double gain) {
  constexpr double kTold = 0.95;  // of the gain: less of it is another figure
  const OutsideUnit& unit = seen.units[seen.culprit];
  const auto workers = static_cast<double>(seen.kinds[unit.kind].pids.size());
  const double times = workers / std::max(1.0, workers - static_cast<double>(unit.idle_processes));
  if (unit.idle_processes > 0 && times < kTold * gain) {
    return fmt::format("{} will still limit it, at some {:.1f} times this rate",
                       UnitWord(seen, seen.culprit), times);
  }
  const auto more = MoreOf(seen);
  const bool cores =
      more && more->count > ThreadsNow(seen.units[seen.culprit]) && more->at_most < kTold * gain;
  if (!cores) {
    const bool own = seen.findings[0].limit == OutsideLimit::kOwnWork;
    return fmt::format(
        "{} will limit it, at some {:.1f} times this rate; later if its own work gets less",
        own ? "its step" : seen.ConsumerWord(), gain);
  }
  return fmt::format(
      "the CPU cores will limit it, at some {:.1f} times this rate if a batch takes as much CPU "
      "time as now; with more cores {} would, at some {:.1f} times",
      more->at_most, seen.ConsumerWord(), gain);
}

}  // namespace headrace::dashboards
