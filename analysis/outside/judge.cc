#include "analysis/outside/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "analysis/outside/file_locks.h"
#include "analysis/outside/find_consumer.h"
#include "analysis/run/own_threads.h"
#include "analysis/thresholds.h"
#include "base/library_processes.h"

namespace headrace::analysis {
OutsideJudge::OutsideJudge(const RunView& run, Outside* out) : run_(run), out_(out) {
  for (const auto& [process_id, ns] : run.receiving_ns) {
    if (ReceivesAllTheTime(run, process_id)) receivers_.insert(process_id);
  }
}

bool OutsideJudge::FindUnits(const Totals& totals, std::optional<size_t> consumer) {
  if (!consumer) return false;
  consumer_ = *consumer;
  const size_t home = out_->groups[consumer_].kind;
  unit_of_.assign(out_->groups.size(), 0);
  file_locks_ = FileLockParts(run_, *out_);
  AddUnit({consumer_}, totals);
  std::map<size_t, std::vector<size_t>> others;
  for (size_t g = 0; g < out_->groups.size(); ++g) {
    if (g == consumer_) continue;
    if (out_->groups[g].kind == home) {
      AddUnit({g}, totals);
    } else {
      others[out_->groups[g].kind].push_back(g);
    }
  }
  for (const auto& [kind, groups] : others) AddUnit(groups, totals);
  out_->units[0].role = UnitRole::kConsumer;
  out_->units[0].distance = 0;
  FindDistances(totals);
  for (size_t u = 0; u < out_->units.size(); ++u) {
    OutsideUnit& unit = out_->units[u];
    unit.shares = Shares(u, totals);
    if (u == 0) continue;
    if (IsAncestor(unit.kind, home)) {
      unit.role = UnitRole::kLauncher;
    } else if (IsProducer(u, totals)) {
      unit.role = UnitRole::kProducer;
    }
  }
  return true;
}

double OutsideJudge::Stall(const Totals& totals) const {
  const double lifetime = totals.times[consumer_].total();
  if (lifetime <= 0) return 0;
  return std::min(1.0, StallSeconds(totals) / lifetime);
}

bool OutsideJudge::IsAmbiguous(OutsideLimit limit, const Totals& totals) const {
  if (limit == OutsideLimit::kInterpreter) return SharesInterpreter(totals) == Sharing::kMutual;
  if (limit != OutsideLimit::kLock && limit != OutsideLimit::kProducers) return false;
  const size_t unit = Decide(totals).second;
  const UnitShares shares = Shares(unit, totals);
  // Both sides wait for each other where batches are taken in order and one takes long.
  if (limit == OutsideLimit::kProducers && !out_->units[unit].uneven) {
    return WaitForEachOther(shares, totals) && !IsConsumersTurnLonger(unit, totals);
  }
  return limit == OutsideLimit::kLock && !StandsAtAFileLock(shares) &&
         !HandOnALock(shares, out_->units[unit].threads_count);
}

bool OutsideJudge::WaitForEachOther(const UnitShares& shares, const Totals& totals) const {
  return shares.wait_consumer > kBothWait && Stall(totals) > kHighStall;
}

std::optional<bool> OutsideJudge::IsConsumersTurnLonger(size_t u, const Totals& totals) const {
  if (u == 0 || !out_->core_budget.cores) return std::nullopt;
  const OutsideUnit& unit = out_->units[u];
  const UnitShares own = Shares(0, totals), shares = Shares(u, totals);
  if (!WaitForEachOther(shares, totals) || std::min(shares.runnable, own.runnable) < kReadyInTurn) {
    return std::nullopt;
  }
  const double at_once =
      std::clamp(unit.threads_count, 1.0, std::max(1.0, *out_->core_budget.cores));
  const double consumers = 1 - Stall(totals) - own.runnable;
  const double units = shares.on_cpu * std::max(1.0, unit.threads_count) / at_once +
                       shares.storage + shares.network + shares.sleep;
  if (std::max(consumers, units) < kLongerTurn * std::min(consumers, units)) return std::nullopt;
  return consumers > units;
}

OutsideJudge::Sharing OutsideJudge::SharesInterpreter(const Totals& totals) const {
  const ProcessKind& kind = out_->kinds[out_->units[0].kind];
  if (!kind.name.starts_with("python") || !out_->cores_busy_ratio) return Sharing::kNo;
  if (*out_->cores_busy_ratio > kCoresNotFull) return Sharing::kNo;
  const ThreadTimes& own = totals.times[consumer_];
  const double longest_s = own.total();
  if (longest_s <= 0) return Sharing::kNo;
  const auto timed = [](const ThreadTimes& time) {
    return time.blocked_s[Index(WaitCause::kSleep)];
  };
  const auto locked = [](const ThreadTimes& time) {
    return time.blocked_s[Index(WaitCause::kLock)];
  };
  double all_s = 0, others_s = 0, timed_s = 0, waited_s = 0, others_life_s = 0, locked_s = 0;
  for (size_t g = 0; g < out_->groups.size(); ++g) {
    if (out_->groups[g].kind != out_->units[0].kind) continue;
    const ThreadTimes& time = totals.times[g];
    all_s += time.on_cpu_s;
    if (time.on_cpu_s < kComputes * time.total()) continue;
    timed_s += timed(time);
    waited_s += time.total();
    if (g == consumer_) continue;
    others_s += time.on_cpu_s;
    others_life_s += time.total();
    locked_s += locked(time);
  }
  const double cores = all_s / longest_s;
  if (cores <= kOneCore || cores >= 2 - kOneCore || others_s <= kComputes * longest_s) {
    return Sharing::kNo;
  }
  if (timed_s > kComputes * waited_s) return Sharing::kTimed;
  const bool neither_is_busy =
      others_life_s > kMoreThanOneThread * longest_s && locked_s > kMostlyLocked * others_life_s &&
      locked(own) > kComputes * longest_s && own.on_cpu_s < kComputes * longest_s;
  return neither_is_busy ? Sharing::kMutual : Sharing::kNo;
}

// Whether several threads wait for each other at a lock that one of them holds at a time.
bool OutsideJudge::HandOnALock(const UnitShares& shares, double threads) {
  const auto is_one = [](double going) {
    return going > kOneGetsOn && going < kNoMoreThanOneGetsOn;
  };
  if (threads <= kMoreThanOneThread || shares.lock <= kLockWaits) return false;
  // The one that holds it may work, or wait for another process meanwhile.
  const double works = threads * (shares.work() - shares.lock);
  return is_one(works) || is_one(works + threads * shares.wait_input);
}

OutsideLimit OutsideJudge::LimitOf(const UnitShares& shares, double threads) const {
  // Threads of a pool wake each other whatever limits them. A lock limits where they wait for it
  // much and only one of them at a time gets on.
  if (HandOnALock(shares, threads)) return OutsideLimit::kLock;
  // What they do outside of it gets on beside the one that holds it. Waits for a queue between
  // threads of one name look the same.
  const double going = threads * (shares.work() - shares.lock);
  if (threads > 2 && shares.lock > kMostlyLocked && going > kOneGetsOn && going < 2) {
    return OutsideLimit::kLock;
  }
  const double cpu = shares.on_cpu + shares.runnable;
  // Threads of one name need not do the same: where one of them has a core for itself, the timer
  // is another one's, as that of a run-time which looks after its threads.
  const bool one_computes =
      threads * cpu > kOneThreadComputes && shares.sleep < kSleepsBesideWork * cpu;
  const std::pair<double, OutsideLimit> parts[] = {
      {cpu, OutsideLimit::kProducers},
      {shares.storage, OutsideLimit::kStorage},
      {shares.network, OutsideLimit::kNetwork},
      {one_computes ? 0 : shares.sleep, OutsideLimit::kSleep},
      {threads * cpu > kOneThreadComputes ? 0 : shares.other, OutsideLimit::kNone}};
  const auto* most =
      std::max_element(std::begin(parts), std::end(parts),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
  if (most->first <= 0) return OutsideLimit::kNone;
  const bool full = out_->cores_busy_ratio && *out_->cores_busy_ratio > kCoresSaturated &&
                    shares.runnable > kRunnableAtSaturation;
  if (most->second == OutsideLimit::kProducers && (full || IsStarved(shares))) {
    return OutsideLimit::kCores;
  }
  return most->second;
}

void OutsideJudge::AddUnit(const std::vector<size_t>& groups, const Totals& totals) {
  OutsideUnit unit;
  unit.groups = groups;
  unit.kind = out_->groups[groups[0]].kind;
  unit.key_group = groups[0];
  for (const size_t g : groups) {
    if (GroupWork(totals.times[g]) > GroupWork(totals.times[unit.key_group])) unit.key_group = g;
    unit_of_[g] = out_->units.size();
  }
  unit.threads_count = out_->groups[unit.key_group].threads_count;
  const ProcessKind& kind = out_->kinds[unit.kind];
  const bool home = !out_->units.empty() && out_->units[0].kind == unit.kind;
  if (out_->units.empty()) {
    unit.name = out_->groups[groups[0]].main ? kind.name + "'s main thread"
                                             : "thread " + out_->groups[groups[0]].thread;
  } else if (home) {
    const std::string thread = out_->groups[groups[0]].thread;
    unit.name = thread == kind.name ? fmt::format("{}'s other threads", kind.name)
                                    : fmt::format("threads {}", thread);
  } else if (kind.pids.size() == 1) {
    unit.name = fmt::format("process {} ({})", kind.name, kind.pids[0]);
  } else if (unit.threads_count < kFollowOthers * static_cast<double>(kind.pids.size()) &&
             out_->groups[unit.key_group].main) {
    unit.name = fmt::format("processes {} ({:.0f} at a time, {} in all)", kind.name,
                            unit.threads_count, kind.pids.size());
  } else {
    unit.name = fmt::format("{} processes {}", kind.pids.size(), kind.name);
  }
  out_->units.push_back(std::move(unit));
}

bool OutsideJudge::IsAncestor(size_t kind, size_t of) const {
  for (int steps = 0; steps < 64; ++steps) {
    const auto parent = out_->kinds[of].parent;
    if (!parent) return false;
    of = *parent;
    if (of == kind) return true;
  }
  return false;
}

// Seconds that `wakee` waited until `waker` ended it, over all groups of both.
double OutsideJudge::Waited(size_t wakee, size_t waker, const Totals& totals) const {
  double waited = 0;
  for (size_t e = 0; e < out_->edges.size(); ++e) {
    const WakeEdge& edge = out_->edges[e];
    if (!edge.waker || !EndedByThreads(edge.cause)) continue;
    if (unit_of_[*edge.waker] == waker && unit_of_[edge.wakee] == wakee) waited += totals.waits[e];
  }
  return waited;
}

void OutsideJudge::FindDistances(const Totals& totals) {
  if (out_->knowledge < OutsideKnowledge::kCounts) {
    // Nobody saw who wakes whom: threads of the same process, and processes that can send to it,
    // may feed the consumer.
    const std::set<size_t> linked = LinkedKinds(out_->units[0].kind);
    for (size_t u = 1; u < out_->units.size(); ++u) {
      const size_t kind = out_->units[u].kind;
      const bool may = kind == out_->units[0].kind || linked.contains(kind);
      if (may || !run_.Has("link_count")) out_->units[u].distance = 1;
    }
    return;
  }
  std::vector<size_t> front = {0};
  while (!front.empty()) {
    std::vector<size_t> next;
    for (const size_t v : front) {
      double waits = 0;
      for (size_t u = 0; u < out_->units.size(); ++u) {
        if (u != v) waits += Waited(v, u, totals);
      }
      for (size_t u = 1; u < out_->units.size(); ++u) {
        OutsideUnit& unit = out_->units[u];
        if (unit.distance >= 0) continue;
        // Fed by v or feeding it: whichever is visible. When the consumer hardly waits, it is the
        // producers' waits that show the exchange.
        double own = 0;
        for (size_t w = 0; w < out_->units.size(); ++w) {
          if (w != u) own += Waited(u, w, totals);
        }
        const bool feeds = waits > 0 && Waited(v, u, totals) > kExchangeCounts * waits;
        const bool fed = own > 0 && Waited(u, v, totals) > kExchangeCounts * own;
        if (!feeds && !fed) continue;
        unit.distance = out_->units[v].distance + 1;
        next.push_back(u);
      }
    }
    front = std::move(next);
  }
  // Ray hands objects over by a store and its own daemons: nobody sees a task end the driver's
  // wait.
  for (OutsideUnit& unit : out_->units) {
    if (unit.distance < 0 && IsRayWorker(unit)) unit.distance = 1;
  }
}

bool OutsideJudge::IsRayWorker(const OutsideUnit& unit) const {
  return headrace::IsRayWorker(out_->kinds[unit.kind].name);
}

// Whether a unit of the consumer's own process exchanges with other ranks.
bool OutsideJudge::IsOfOtherRanks(const OutsideUnit& unit) const {
  return unit.kind == out_->units[0].kind && IsOfRanks(out_->groups[unit.key_group].thread);
}

// Whether the consumer is a driver of Ray, whose other threads mostly pass things on.
bool OutsideJudge::IsRayDriver() const {
  return std::any_of(out_->units.begin(), out_->units.end(),
                     [&](const OutsideUnit& unit) { return IsOfRay(out_->kinds[unit.kind].name); });
}

// Kinds of which a process has a channel into one of kind `home`.
std::set<size_t> OutsideJudge::LinkedKinds(size_t home) const {
  std::map<int64_t, size_t> kind_of;
  for (size_t k = 0; k < out_->kinds.size(); ++k) {
    for (const int64_t pid : out_->kinds[k].pids) kind_of[pid] = k;
  }
  std::set<size_t> linked;
  for (const MeasurementRow& row : run_.measurements) {
    if (row.metric != "link_count" || row.maximum_value.value_or(0) <= 0) continue;
    const size_t arrow = row.subject.find('>');
    if (arrow == std::string::npos) continue;
    const auto from = kind_of.find(row.pid);
    const auto to = kind_of.find(std::strtoll(row.subject.c_str() + arrow + 1, nullptr, 10));
    if (from != kind_of.end() && to != kind_of.end() && to->second == home)
      linked.insert(from->second);
  }
  return linked;
}

// Whether `other` is on the consumer's side as seen from `unit`.
bool OutsideJudge::TowardsConsumer(size_t unit, size_t other) const {
  if (other == 0) return true;
  const OutsideUnit& a = out_->units[unit];
  const OutsideUnit& b = out_->units[other];
  const size_t home = out_->units[0].kind;
  if (a.kind != home && b.kind == home) return true;
  if (a.kind == home && b.kind != home) return false;
  return b.distance >= 0 && (a.distance < 0 || b.distance < a.distance);
}

UnitShares OutsideJudge::Shares(size_t u, const Totals& totals) const {
  const OutsideUnit& unit = out_->units[u];
  const size_t key = unit.key_group;
  const ThreadTimes& time = totals.times[key];
  UnitShares shares;
  const double lifetime = time.total();
  if (lifetime <= 0) return shares;
  shares.on_cpu = time.on_cpu_s / lifetime;
  shares.runnable = time.runnable_s / lifetime;
  shares.storage =
      (time.blocked_s[Index(WaitCause::kStorage)] + time.blocked_s[Index(WaitCause::kFault)]) /
      lifetime;
  shares.sleep = time.blocked_s[Index(WaitCause::kSleep)] / lifetime;
  shares.stopped = time.blocked_s[Index(WaitCause::kStopped)] / lifetime;
  std::array<double, kNumWaitCauses> left = time.blocked_s;
  for (size_t e = 0; e < out_->edges.size(); ++e) {
    const WakeEdge& edge = out_->edges[e];
    if (edge.wakee != key || !edge.waker || !EndedByThreads(edge.cause)) continue;
    const size_t waker = unit_of_[*edge.waker];
    const double share = totals.waits[e] / lifetime;
    left[Index(edge.cause)] -= totals.waits[e];
    if (waker == u) {
      shares.lock += share;
    } else if (u == 0) {
      shares.wait_input += share;
    } else if (TowardsConsumer(u, waker)) {
      shares.wait_consumer += share;
    } else {
      shares.wait_input += share;
    }
  }
  // A wait for a socket with a time limit, as Python's, is one in poll(). Where no socket brings
  // anything, a limit that ran out was a sleep.
  const double timed_out_s = std::min(time.timed_out_s, left[Index(WaitCause::kPoll)]);
  shares.timed_out = timed_out_s / lifetime;
  if (!Receives(unit, lifetime)) {
    left[Index(WaitCause::kPoll)] -= timed_out_s;
    shares.sleep += shares.timed_out;
  } else {
    left[Index(WaitCause::kNetwork)] += left[Index(WaitCause::kPoll)];
    left[Index(WaitCause::kPoll)] = 0;
  }
  shares.network = std::max(0.0, left[Index(WaitCause::kNetwork)]) / lifetime;
  double other = left[Index(WaitCause::kChild)];
  for (const WaitCause cause :
       {WaitCause::kLock, WaitCause::kPipe, WaitCause::kPoll, WaitCause::kOther}) {
    other += std::max(0.0, left[Index(cause)]);
  }
  other /= lifetime;
  const FileLockPart& file_lock = file_locks_[key];
  shares.file_lock = file_lock.of_locks * time.blocked_s[Index(WaitCause::kLock)] / lifetime;
  shares.database_lock = file_lock.of_sleeps * shares.sleep;
  if (out_->knowledge < OutsideKnowledge::kCounts) {
    // Who ended them is not known: waits on others are taken as waits on the other side.
    (u == 0 ? shares.wait_input : shares.wait_consumer) += other;
    other = 0;
  }
  shares.sleep -= shares.database_lock;
  shares.file_lock += shares.database_lock;
  shares.other = other + shares.database_lock;
  return shares;
}

// Whether sockets brought bytes to a process of the unit all the time, or to each of several that
// follow each other. `lifetime_s`: of its threads together.
bool OutsideJudge::Receives(const OutsideUnit& unit, double lifetime_s) const {
  const ProcessKind& kind = out_->kinds[unit.kind];
  double received_s = 0;
  for (const int64_t id : kind.process_ids) {
    if (receivers_.contains(id)) return true;
    const auto ns = run_.receiving_ns.find(id);
    if (ns != run_.receiving_ns.end()) received_s += static_cast<double>(ns->second) * 1e-9;
  }
  return kind.pids.size() > 1 && out_->groups[unit.key_group].main &&
         received_s > kReceives * lifetime_s;
}

double OutsideJudge::StallSeconds(const Totals& totals) const {
  if (out_->knowledge < OutsideKnowledge::kCounts) {
    const ThreadTimes& time = totals.times[consumer_];
    double waits = 0;
    for (const WaitCause cause :
         {WaitCause::kLock, WaitCause::kPipe, WaitCause::kPoll, WaitCause::kOther}) {
      waits += time.blocked_s[Index(cause)];
    }
    return waits;
  }
  double waits = 0;
  for (size_t u = 1; u < out_->units.size(); ++u) {
    const OutsideUnit& unit = out_->units[u];
    if (unit.role == UnitRole::kLauncher || IsOfOtherRanks(unit)) continue;
    waits += Waited(0, u, totals);
  }
  return waits;
}

// A unit that works or sleeps for a part of the consumer's own lifetime. Processes that lived for
// less than a fifth of that, a tool run while libraries load, feed nobody whose waits they do not
// end.
bool OutsideJudge::IsProducer(size_t u, const Totals& totals) const {
  const OutsideUnit& unit = out_->units[u];
  const double lifetime = totals.times[consumer_].total();
  if (unit.distance < 0 || lifetime <= 0 || IsOfOtherRanks(unit)) return false;
  if (out_->kinds[unit.kind].is_service) return false;
  const bool in_java = IsJava(*out_, unit.kind);
  if (in_java && IsOfJava(out_->groups[unit.key_group].thread)) return false;
  const bool of_driver = unit.kind == out_->units[0].kind && IsRayDriver();
  if (of_driver && unit.shares.on_cpu + unit.shares.runnable < kRelaysAtMost) return false;
  const double alive = totals.times[unit.key_group].total() / lifetime;
  const UnitShares& shares = unit.shares;
  // Of another process that ends many of the consumer's waits it does not matter how little it
  // works.
  const bool ends_waits = out_->knowledge >= OutsideKnowledge::kCounts &&
                          unit.kind != out_->units[0].kind &&
                          Waited(0, u, totals) > kSmallStall * lifetime;
  // Workers of PyTorch are what they are, also with nothing to do, and so is a thread that the
  // author of a Java program made: not its first, which waits for the end.
  const bool is_made =
      (in_java && Waited(0, u, totals) > 0 && !out_->groups[unit.key_group].main) ||
      out_->kinds[unit.kind].name.starts_with("pt_data_worker");
  const bool is_idle_worker = out_->knowledge >= OutsideKnowledge::kCounts && is_made &&
                              alive > kIdleWorkerWaits && shares.wait_consumer > kIdleWorkerWaits;
  if (ends_waits || is_idle_worker) return true;
  if (unit.kind != out_->units[0].kind && alive < kLivesAlong) return false;
  return alive * (shares.on_cpu + shares.runnable + shares.storage + shares.network) >
             kUnitTakesPart ||
         alive * shares.sleep > kUnitSleeps;
}

bool OutsideJudge::Receives(size_t u, const Totals& totals) const {
  const OutsideUnit& unit = out_->units[u];
  return Receives(unit, totals.times[unit.key_group].total());
}

bool OutsideJudge::IsServer(size_t u) const {
  const OutsideUnit& unit = out_->units[u];
  if (unit.kind == out_->units[0].kind || IsRayDriver()) return false;
  // Whoever is nearer to the consumer asks.
  std::set<int64_t> nearer;
  for (const OutsideUnit& other : out_->units) {
    if (other.distance < 0 || (unit.distance >= 0 && other.distance >= unit.distance)) continue;
    const std::vector<int64_t>& pids = out_->kinds[other.kind].pids;
    nearer.insert(pids.begin(), pids.end());
  }
  const std::vector<int64_t>& own = out_->kinds[unit.kind].pids;
  return std::any_of(
      run_.measurements.begin(), run_.measurements.end(), [&](const MeasurementRow& row) {
        constexpr std::string_view kTcp = "tcp>";
        if (row.metric != "link_count" || !row.subject.starts_with(kTcp)) return false;
        const int64_t to = std::strtoll(row.subject.c_str() + kTcp.size(), nullptr, 10);
        return row.maximum_value.value_or(0) > 0 && nearer.contains(to) &&
               std::find(own.begin(), own.end(), row.pid) != own.end();
      });
}

// The unit further out that ends most of the waits of `u`.
std::optional<size_t> OutsideJudge::Upstream(size_t u, const Totals& totals,
                                             const std::set<size_t>& walked) const {
  std::optional<size_t> best;
  double most = 0;
  for (size_t w = 1; w < out_->units.size(); ++w) {
    if (walked.contains(w) || TowardsConsumer(u, w)) continue;
    if (out_->units[w].role != UnitRole::kProducer) continue;
    const double waited = Waited(u, w, totals);
    if (waited > most) {
      most = waited;
      best = w;
    }
  }
  return best;
}

}  // namespace headrace::analysis
