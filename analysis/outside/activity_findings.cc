#include "analysis/outside/activity_findings.h"

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/outside/findings.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// The limit that sampled threads show, and the function in which most of them are at it.
struct ThreadsFinding {
  OutsideLimit limit = OutsideLimit::kNone;
  std::string place;
  bool is_busy_thread = false;
  bool is_consumers = false;  // its own wait, although its threads' times do not show it
};

// Limits that times of threads of one name may show whatever they really wait for.
bool MayBeAnotherWait(OutsideLimit limit) {
  return limit == OutsideLimit::kLock || limit == OutsideLimit::kInterpreter ||
         limit == OutsideLimit::kSleep || limit == OutsideLimit::kNone ||
         limit == OutsideLimit::kPauses;
}

// Whether time limits end most of the polls of the consumer's process, as those of an event loop
// that is paced: the kernel knows it.
bool TimersEndPolls(const Outside& out) {
  const ThreadCounts home = CountsAtHome(out);
  return home.timed_out >= kThreadsAtOneThing / 2 && home.timed_out >= kClearlyMost * home.network;
}

// Whether the threads of a run-time of C++ wait for each other at no lock, but for something to do,
// while the consumer's thread computes more than all of them.
bool OnlyConsumerWorks(const Outside& out) {
  return out.findings[0].limit == OutsideLimit::kLock && out.native_waits.AreConditions() &&
         out.units[0].shares.on_cpu > std::max(kThreadsAtOneThing, CountsAtHome(out).on_cpu);
}

// Threads at work: they compute, or wait in a library that Python does not show.
std::optional<ThreadsFinding> FindAtWork(const Outside& out, const PythonActivity& seen) {
  const double works = seen.Others(Activity::kWorks);
  const ThreadCounts home = CountsAtHome(out);
  const std::string& place = seen.places[static_cast<size_t>(Activity::kWorks)];
  if (home.on_cpu >= kThreadsAtOneThing * works) {
    if (works > kOneThreadsTime) return std::nullopt;  // several: what times say of them stands
    return ThreadsFinding{OutsideLimit::kProducers, place, true};
  }
  const std::pair<double, OutsideLimit> waits[] = {{home.network, OutsideLimit::kNetwork},
                                                   {home.storage, OutsideLimit::kStorage},
                                                   {home.sleep, OutsideLimit::kSleep}};
  const auto* most = std::max_element(std::begin(waits), std::end(waits));
  if (most->first < kThreadsAtOneThing * works) return std::nullopt;
  return ThreadsFinding{most->second, place};
}

// Samples are of the whole run. What is at least of its steady part, of `steady_s`: all else may
// have been before it.
PythonActivity InSteady(PythonActivity seen, double steady_s) {
  const double before_s = std::max(0.0, seen.sampled_s - steady_s);
  if (before_s <= 0 || steady_s <= 0) return seen;
  const auto cut = [&](std::array<double, kNumActivities>& threads) {
    for (double& at : threads) at = std::max(0.0, at * seen.sampled_s - before_s) / steady_s;
  };
  cut(seen.main);
  cut(seen.others);
  return seen;
}

// Of the consumer's process. `receives`: sockets bring bytes to it all the time.
std::optional<ThreadsFinding> FindAtHome(const Outside& out, bool receives) {
  if (!out.home_activity || out.home_activity->samples_count < kFewestSamples) return std::nullopt;
  const PythonActivity seen = InSteady(*out.home_activity, out.steady_s);
  const auto place = [&](Activity activity) { return seen.places[static_cast<size_t>(activity)]; };
  // A loop of events that nobody waits for may be any library's.
  const bool is_awaited = seen.Main(Activity::kWaitsForOthers) >= kThreadsAtOneThing;
  const double events = is_awaited ? seen.Others(Activity::kEvents) : 0;
  const bool by_timers = events > 0 && TimersEndPolls(out);
  const double network = seen.Others(Activity::kNetwork) + (receives && !by_timers ? events : 0);
  const double sleeps = seen.Others(Activity::kSleeps) + (by_timers ? events : 0);
  const double locks = seen.Others(Activity::kLocks);
  const double works = seen.Others(Activity::kWorks);
  const double all = network + sleeps + locks + works;
  // Its main thread asks a server in a library whose threads wait for it.
  if (seen.Main(Activity::kNetwork) >= kThreadsAtOneThing)
    return ThreadsFinding{OutsideLimit::kNetwork, ""};
  if (all < kThreadsAtOneThing) return std::nullopt;
  const double enough = kClearlyMost * all;
  if (network >= enough) {
    // Who is back from a socket may be in its function still, and wait for the interpreter, while
    // another thread computes.
    constexpr double kHardly = 0.2;
    const ThreadCounts home = CountsAtHome(out);
    const double at_sockets = home.network + home.timed_out;
    if (at_sockets < kHardly * network && home.on_cpu >= kThreadsAtOneThing) return std::nullopt;
    const bool in_loop = events > seen.Others(Activity::kNetwork);
    return ThreadsFinding{OutsideLimit::kNetwork, in_loop ? "" : place(Activity::kNetwork)};
  }
  if (sleeps >= enough) return ThreadsFinding{OutsideLimit::kSleep, place(Activity::kSleeps)};
  if (locks >= enough) return ThreadsFinding{OutsideLimit::kLock, place(Activity::kLocks)};
  if (works >= enough) return FindAtWork(out, seen);
  return std::nullopt;
}

// What the threads of one of the culprit's processes compute, of those that live at a time.
double CoresOfEach(const Outside& out) {
  const OutsideUnit& unit = out.units[out.culprit];
  double processes = 1;
  for (const size_t g : unit.groups) {
    if (out.groups[g].main) processes = std::max(processes, out.groups[g].threads_count);
  }
  return unit.threads_count * (unit.shares.on_cpu + unit.shares.runnable) / processes;
}

// Whether processes that feed the consumer hand over what they have made most of the time, while it
// waits for that.
bool MostlyHandOver(const PythonActivity& seen) {
  if (seen.samples_count < kFewestSamples) return false;
  const double has_made = seen.Main(Activity::kWaitsForRoom) + seen.Main(Activity::kIdle);
  return seen.Main(Activity::kHandsOver) >= kThreadsAtOneThing ||
         (has_made >= kThreadsAtOneThing &&
          seen.Others(Activity::kHandsOver) >= kThreadsAtOneThing);
}

// Of processes of which the kernel saw waits for a socket that, by their functions, are waits for
// something to do: what those are at that have some.
std::optional<ThreadsFinding> FindBesideIdle(const PythonActivity& seen) {
  constexpr double kHardly = 0.1;
  if (seen.samples_count < kFewestSamples || seen.Main(Activity::kNetwork) >= kHardly ||
      seen.Main(Activity::kIdle) < kThreadsAtOneThing) {
    return std::nullopt;
  }
  const std::pair<double, OutsideLimit> parts[] = {
      {seen.Main(Activity::kWorks), OutsideLimit::kProducers},
      {seen.Main(Activity::kSleeps), OutsideLimit::kSleep},
      {seen.Main(Activity::kLocks), OutsideLimit::kLock}};
  const auto* most = std::max_element(std::begin(parts), std::end(parts));
  const double rest = 1 - seen.Main(Activity::kIdle);
  if (most->first < std::max(kHardly, kClearlyMost * rest)) return std::nullopt;
  return ThreadsFinding{most->second, ""};
}

// Of processes that feed the consumer: what their main threads are at, or the threads that these
// wait for. `cores`: what the threads of one of them compute. `is_awaited`: the consumer's main
// thread waits for others most of the time; `may_be_awaited`: it may, in the steady part.
std::optional<ThreadsFinding> FindAtFeeders(const PythonActivity& seen, bool receives, double cores,
                                            bool is_awaited, bool may_be_awaited) {
  if (seen.samples_count < kFewestSamples) return std::nullopt;
  if (is_awaited && MostlyHandOver(seen)) return ThreadsFinding{OutsideLimit::kHandOver, ""};
  const double is_full = seen.Main(Activity::kWaitsForRoom) + seen.Main(Activity::kHandsOver);
  if (is_full >= kClearlyMost && !is_awaited) {
    return ThreadsFinding{OutsideLimit::kConsumer, ""};
  }
  if (seen.Main(Activity::kNetwork) >= kThreadsAtOneThing)
    return ThreadsFinding{OutsideLimit::kNetwork, ""};
  if (seen.Main(Activity::kLocks) >= kThreadsAtOneThing)
    return ThreadsFinding{OutsideLimit::kLock, ""};
  if (seen.Main(Activity::kWaitsForOthers) < kThreadsAtOneThing) return std::nullopt;
  const double network =
      seen.Others(Activity::kNetwork) + (receives ? seen.Others(Activity::kEvents) : 0);
  const double works = seen.Others(Activity::kWorks);
  const double others = seen.Others(Activity::kSleeps) + seen.Others(Activity::kLocks) + works;
  // A main thread that waits for one that it gave the work to, as that of a worker of Ray.
  if (may_be_awaited && works >= kThreadsAtOneThing && works >= kClearlyMost * (network + others) &&
      cores >= kThreadsAtOneThing * works) {
    return ThreadsFinding{OutsideLimit::kProducers,
                          seen.places[static_cast<size_t>(Activity::kWorks)]};
  }
  if (network < kThreadsAtOneThing || network < kClearlyMost * (network + others))
    return std::nullopt;
  return ThreadsFinding{OutsideLimit::kNetwork,
                        seen.places[static_cast<size_t>(Activity::kNetwork)]};
}

// One that waits for storage, or computes all the time while the main goroutine does little, or the
// main one while those that feed it do. Several that began in one function may wait in turn.
std::optional<ThreadsFinding> FindAtGoroutines(const Goroutines& seen) {
  if (seen.WaitsForStorage()) {
    return ThreadsFinding{OutsideLimit::kStorage, seen.storage.place, false, seen.storage.is_main};
  }
  const auto is_one = [](double cores, double others) {
    return cores >= kWorksAllTheTime && cores <= 2 - kWorksAllTheTime && others < cores / 2;
  };
  if (is_one(seen.main_cores, seen.busiest_cores))
    return ThreadsFinding{OutsideLimit::kConsumer, ""};
  if (!is_one(seen.busiest_cores, seen.main_cores)) return std::nullopt;
  // The main goroutine may do nothing but wait for one that trains.
  if (WhatNameSays(seen.busiest) == NameSays::kSteps) return std::nullopt;
  return ThreadsFinding{OutsideLimit::kProducers, seen.busiest};
}

// The unit of the consumer's process whose threads do most at it.
size_t UnitAt(const Outside& out, OutsideLimit limit) {
  size_t best = 0;
  double most = 0;
  for (size_t u = 1; u < out.units.size(); ++u) {
    const OutsideUnit& unit = out.units[u];
    if (unit.kind != out.units[0].kind) continue;
    const UnitShares& shares = unit.shares;
    const double at =
        unit.threads_count * (limit == OutsideLimit::kNetwork   ? shares.network
                              : limit == OutsideLimit::kStorage ? shares.storage
                              : limit == OutsideLimit::kSleep   ? shares.sleep
                              : limit == OutsideLimit::kLock    ? shares.lock
                                                                : shares.on_cpu + shares.runnable);
    if (best != 0 && at <= most) continue;
    most = at;
    best = u;
  }
  return best;
}

void PutFirst(OutsideLimit limit, double likely, Outside* out) {
  std::erase_if(out->findings,
                [&](const OutsideFinding& finding) { return finding.limit == limit; });
  for (OutsideFinding& other : out->findings) other.probability *= 1 - likely;
  out->findings.insert(out->findings.begin(), {limit, likely});
}

// A server that runs in the process tree: whatever it waits for is, for those who ask it, the
// network's.
bool TurnToServer(const OutsideJudge& judge, Outside* out) {
  const OutsideLimit first = out->findings[0].limit;
  const bool waits = first == OutsideLimit::kSleep || first == OutsideLimit::kLock ||
                     first == OutsideLimit::kNetwork;
  if (!waits || out->culprit == 0 || !judge.IsServer(out->culprit)) return false;
  double sum = 0;
  for (const OutsideFinding& finding : out->findings) {
    if (finding.limit == OutsideLimit::kSleep || finding.limit == OutsideLimit::kLock ||
        finding.limit == OutsideLimit::kNetwork) {
      sum += finding.probability;
    }
  }
  // Who sends of himself is connected alike.
  sum = first == OutsideLimit::kNetwork ? sum : kSampledThread;
  std::erase_if(out->findings, [](const OutsideFinding& finding) {
    return finding.limit == OutsideLimit::kSleep || finding.limit == OutsideLimit::kLock;
  });
  PutFirst(OutsideLimit::kNetwork, std::min(1.0, sum), out);
  return true;
}

}  // namespace

bool HandsOverTasks(const Outside& out) {
  return out.home_activity && out.feeder_activity &&
         out.feeder_activity->samples_count >= kFewestSamples &&
         out.home_activity->sends_tasks >= kThreadsAtOneThing &&
         out.feeder_activity->awaits_tasks >= kThreadsAtOneThing;
}

void AskActivity(const OutsideJudge& judge, const Totals& whole, double lost_share, Outside* out) {
  if (out->stall_ratio < kSmallStall || out->knowledge < OutsideKnowledge::kCounts) return;
  if (out->accelerators && out->accelerators->Contradict()) return;
  if (TurnToServer(judge, out)) return;
  const bool at_home = out->culprit == 0 || out->units[out->culprit].kind == out->units[0].kind;
  const OutsideLimit limit = out->findings[0].limit;
  if (limit == OutsideLimit::kInterpreter && WaitsForItsTurn(*out)) return;
  // Polls of a process that sockets feed count as the network's, also those of timers.
  const bool may_be_timers = limit == OutsideLimit::kNetwork && at_home && TimersEndPolls(*out);
  // Threads of Go have no work of their own.
  const bool may_be_goroutine = limit == OutsideLimit::kProducers && at_home && out->goroutines;
  const auto& home = out->home_activity;
  const double waits = home ? home->Main(Activity::kWaitsForOthers) : 0;
  const bool is_awaited = waits >= kThreadsAtOneThing;
  // Packing and sending computes, too.
  const bool hands_over = limit == OutsideLimit::kProducers && !at_home && is_awaited &&
                          out->feeder_activity && MostlyHandOver(*out->feeder_activity);
  const std::optional<ThreadsFinding> beside_idle =
      limit == OutsideLimit::kNetwork && !at_home && is_awaited && out->feeder_activity
          ? FindBesideIdle(*out->feeder_activity)
          : std::nullopt;
  if (!MayBeAnotherWait(limit) && !may_be_timers && !may_be_goroutine && !hands_over &&
      !beside_idle) {
    return;
  }
  std::optional<ThreadsFinding> found;
  if (beside_idle) {
    found = beside_idle;
  } else if (at_home && out->goroutines) {
    found = FindAtGoroutines(*out->goroutines);
  } else if (at_home && out->native && out->native->IsLoading(out->steady_s)) {
    found = ThreadsFinding{OutsideLimit::kProducers, ""};
  } else if (at_home && out->native && OnlyConsumerWorks(*out)) {
    found = ThreadsFinding{OutsideLimit::kConsumer, ""};
  } else if (at_home) {
    found = FindAtHome(*out, judge.Receives(0, whole));
  } else if (is_awaited && HandsOverTasks(*out)) {
    found = ThreadsFinding{OutsideLimit::kHandOver, ""};
  } else if (out->feeder_activity) {
    const bool may_be_awaited = home && home->AtMostIn(out->steady_s, waits) >= kThreadsAtOneThing;
    found = FindAtFeeders(*out->feeder_activity, judge.Receives(out->culprit, whole),
                          CoresOfEach(*out), is_awaited, may_be_awaited);
  }
  if (!found) return;
  const OutsideFinding& first = out->findings[0];
  const double likely = kSampledThread * (1 - lost_share);
  if (found->limit != first.limit || first.probability < likely)
    PutFirst(found->limit, likely, out);
  out->activity_place = found->place;
  if (at_home) out->culprit = UnitAt(*out, found->limit);
  if (found->limit == OutsideLimit::kConsumer || found->is_consumers) out->culprit = 0;
  out->is_busy_thread = found->is_busy_thread;
  if (!found->is_busy_thread) return;
  if (!out->python_threads) out->python_threads.emplace();
  out->python_threads->busy_thread =
      out->home_activity->threads[static_cast<size_t>(Activity::kWorks)];
  out->python_threads->busy_function = found->place;
}

}  // namespace headrace::analysis
