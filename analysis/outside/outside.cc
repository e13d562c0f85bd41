#include "analysis/outside/outside.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/outside/find_consumer.h"
#include "analysis/outside/slices.h"
#include "analysis/run/beside_others.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr size_t kOutsideDraws = 300;
constexpr uint64_t kOutsideSeed = 20261121;

// Assigns units and measures their shares.
class Judge {
 public:
  Judge(const RunView& run, Outside* out) : run_(run), out_(out) {
    for (const auto& [process_id, ns] : run.receiving_ns) {
      if (static_cast<double>(ns) > kReceives * static_cast<double>(run.run.duration_ns)) {
        receivers_.insert(process_id);
      }
    }
  }

  // Finds the consumer and the units from the whole run. False if there is no consumer.
  bool FindUnits(const Totals& totals) { return FindUnits(totals, FindConsumer(*out_, totals)); }
  bool FindUnits(const Totals& totals, std::optional<size_t> consumer) {
    if (!consumer) return false;
    consumer_ = *consumer;
    const size_t home = out_->groups[consumer_].kind;
    unit_of_.assign(out_->groups.size(), 0);
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

  double Stall(const Totals& totals) const {
    const double lifetime = totals.times[consumer_].total();
    if (lifetime <= 0) return 0;
    return std::min(1.0, StallSeconds(totals) / lifetime);
  }

  // What limits, and the unit that it is about, by these sums.
  std::pair<OutsideLimit, size_t> Decide(const Totals& totals) const {
    const UnitShares own = Shares(0, totals);
    std::vector<size_t> producers;
    for (size_t u = 1; u < out_->units.size(); ++u) {
      if (out_->units[u].role == UnitRole::kProducer) producers.push_back(u);
    }
    if (producers.empty()) {
      const double most = std::max({kAloneWaits, own.on_cpu, own.runnable});
      if (own.storage > most) return {OutsideLimit::kStorage, 0};
      if (own.network > most) return {OutsideLimit::kNetwork, 0};
      if (own.sleep > most) return {OutsideLimit::kSleep, 0};
      return {OutsideLimit::kAlone, 0};
    }
    // The nearest producers are those the consumer deals with; the busiest of them decides.
    const double stall = Stall(totals);
    std::optional<size_t> next;
    double least_wait = 0;
    for (const size_t u : producers) {
      if (out_->units[u].distance > 1) continue;
      const double wait = Shares(u, totals).wait_consumer;
      const double work = Shares(u, totals).work();
      const double score = wait - 0.5 * std::min(1.0, work);
      if (!next || score < least_wait) {
        next = u;
        least_wait = score;
      }
    }
    if (!next) next = producers.front();
    // Walk away from the consumer while the unit mostly waits for others further out.
    std::set<size_t> walked = {0, *next};
    size_t at = *next;
    double wait_consumer = Shares(at, totals).wait_consumer;
    while (true) {
      // Threads of a unit that hand work on wait for each other as those at a lock do: where they
      // wait for others, too, that is what they are after.
      const UnitShares shares = Shares(at, totals);
      if (shares.wait_input <= shares.work() - shares.lock) break;
      const auto up = Upstream(at, totals, walked);
      if (!up) break;
      at = *up;
      walked.insert(at);
      wait_consumer = Shares(at, totals).wait_consumer;
    }
    // Waits whose end nobody saw may be waits for the other side or mere idleness of spare threads;
    // then the consumer's own time off the CPU is what there is to judge by.
    if (out_->knowledge < OutsideKnowledge::kCounts) wait_consumer = kHighStall;
    if (SharesInterpreter(totals) != Sharing::kNo) {
      const bool home = wait_consumer <= stall && out_->units[at].kind == out_->units[0].kind;
      if (home || wait_consumer > stall) return {OutsideLimit::kInterpreter, home ? at : 0};
    }
    if (wait_consumer > stall) {
      if (own.storage > kConsumerReads) return {OutsideLimit::kStorage, 0};
      if (own.network > kConsumerReads) return {OutsideLimit::kNetwork, 0};
      return {OutsideLimit::kConsumer, 0};
    }
    return {LimitOf(Shares(at, totals), out_->units[at].threads_count), at};
  }

  // Whether that limit looks, by these sums, as something else might.
  bool IsAmbiguous(OutsideLimit limit, const Totals& totals) const {
    if (limit == OutsideLimit::kInterpreter) return SharesInterpreter(totals) == Sharing::kMutual;
    if (limit != OutsideLimit::kLock && limit != OutsideLimit::kProducers) return false;
    const size_t unit = Decide(totals).second;
    const UnitShares shares = Shares(unit, totals);
    // Both sides wait for each other where batches are taken in order and one takes long.
    if (limit == OutsideLimit::kProducers) {
      return shares.wait_consumer > kBothWait && Stall(totals) > kHighStall;
    }
    return !HandOnALock(shares, out_->units[unit].threads_count);
  }

  size_t consumer() const { return consumer_; }

 private:
  // Whether the threads of the consumer's process run Python in turn: together they use just about
  // one core although more are free, several of them compute, and they wait for the interpreter's
  // lock. That is seen in one of two ways. CPython's threads wait for it with a time limit. Or each
  // side waits for the other, though neither is busy: threads that do one thing after the other for
  // another reason look the same.
  enum class Sharing : uint8_t { kNo, kTimed, kMutual };
  Sharing SharesInterpreter(const Totals& totals) const {
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
    const bool neither_is_busy = others_life_s > kMoreThanOneThread * longest_s &&
                                 locked_s > kMostlyLocked * others_life_s &&
                                 locked(own) > kComputes * longest_s &&
                                 own.on_cpu_s < kComputes * longest_s;
    return neither_is_busy ? Sharing::kMutual : Sharing::kNo;
  }

  // Whether several threads wait for each other at a lock that one of them holds at a time.
  static bool HandOnALock(const UnitShares& shares, double threads) {
    const double going = threads * (shares.work() - shares.lock);
    return threads > kMoreThanOneThread && shares.lock > kLockWaits && going > kOneGetsOn &&
           going < kNoMoreThanOneGetsOn;
  }

  OutsideLimit LimitOf(const UnitShares& shares, double threads) const {
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
    if (most->second == OutsideLimit::kProducers && out_->cores_busy_ratio &&
        *out_->cores_busy_ratio > kCoresSaturated && shares.runnable > kRunnableAtSaturation) {
      return OutsideLimit::kCores;
    }
    return most->second;
  }

  void AddUnit(const std::vector<size_t>& groups, const Totals& totals) {
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
    } else {
      unit.name = fmt::format("{} processes {}", kind.pids.size(), kind.name);
    }
    out_->units.push_back(std::move(unit));
  }

  bool IsAncestor(size_t kind, size_t of) const {
    for (int steps = 0; steps < 64; ++steps) {
      const auto parent = out_->kinds[of].parent;
      if (!parent) return false;
      of = *parent;
      if (of == kind) return true;
    }
    return false;
  }

  // Seconds that `wakee` waited until `waker` ended it, over all groups of both.
  double Waited(size_t wakee, size_t waker, const Totals& totals) const {
    double waited = 0;
    for (size_t e = 0; e < out_->edges.size(); ++e) {
      const WakeEdge& edge = out_->edges[e];
      if (!edge.waker || !EndedByThreads(edge.cause)) continue;
      if (unit_of_[*edge.waker] == waker && unit_of_[edge.wakee] == wakee)
        waited += totals.waits[e];
    }
    return waited;
  }

  void FindDistances(const Totals& totals) {
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
  }

  // Kinds of which a process has a channel into one of kind `home`.
  std::set<size_t> LinkedKinds(size_t home) const {
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
  bool TowardsConsumer(size_t unit, size_t other) const {
    if (other == 0) return true;
    const OutsideUnit& a = out_->units[unit];
    const OutsideUnit& b = out_->units[other];
    const size_t home = out_->units[0].kind;
    if (a.kind != home && b.kind == home) return true;
    if (a.kind == home && b.kind != home) return false;
    return b.distance >= 0 && (a.distance < 0 || b.distance < a.distance);
  }

  UnitShares Shares(size_t u, const Totals& totals) const {
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
    // A wait for a socket with a time limit, as Python's, is one in poll().
    if (Receives(unit)) {
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
    if (out_->knowledge < OutsideKnowledge::kCounts) {
      // Who ended them is not known: waits on others are taken as waits on the other side.
      (u == 0 ? shares.wait_input : shares.wait_consumer) += other;
      other = 0;
    }
    shares.other = other;
    return shares;
  }

  // Whether sockets brought bytes to the unit's processes all the time.
  bool Receives(const OutsideUnit& unit) const {
    const std::vector<int64_t>& ids = out_->kinds[unit.kind].process_ids;
    return std::any_of(ids.begin(), ids.end(), [&](int64_t id) { return receivers_.contains(id); });
  }

  double StallSeconds(const Totals& totals) const {
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
      if (out_->units[u].role != UnitRole::kLauncher) waits += Waited(0, u, totals);
    }
    return waits;
  }

  // A unit that works or sleeps for a part of the consumer's own lifetime; what only lived for a
  // moment, a tool run while libraries load, feeds nobody.
  bool IsProducer(size_t u, const Totals& totals) const {
    const OutsideUnit& unit = out_->units[u];
    const double lifetime = totals.times[consumer_].total();
    if (unit.distance < 0 || lifetime <= 0) return false;
    const double alive = totals.times[unit.key_group].total() / lifetime;
    const UnitShares& shares = unit.shares;
    return alive * (shares.on_cpu + shares.runnable + shares.storage + shares.network) >
               kUnitTakesPart ||
           alive * shares.sleep > kUnitSleeps;
  }

  // The unit further out that ends most of the waits of `u`.
  std::optional<size_t> Upstream(size_t u, const Totals& totals,
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

  const RunView& run_;
  Outside* out_;
  size_t consumer_ = 0;
  std::vector<size_t> unit_of_;  // by group
  std::set<int64_t> receivers_;  // ids of processes that sockets bring bytes to
};

// Slices in which the consumer exchanges with others: a program that loads its libraries, or ends,
// runs no pipeline. All slices where that is never seen.
std::vector<size_t> Steady(const Outside& out, const Slices& slices, size_t consumer,
                           const std::vector<size_t>& all) {
  std::vector<double> exchange;
  for (const size_t s : all) {
    double count = 0;
    for (size_t e = 0; e < slices.num_edges; ++e) {
      const WakeEdge& edge = out.edges[e];
      if (!edge.waker || *edge.waker == edge.wakee) continue;
      if (*edge.waker == consumer || edge.wakee == consumer) count += slices.counts[s][e];
    }
    exchange.push_back(count);
  }
  if (static_cast<double>(exchange.size()) < kFewestSlices) return all;
  const double enough = kSteadyExchange * Quantile(exchange, 0.75);
  if (enough <= 0) return all;
  size_t first = 0, last = exchange.size();
  while (first < last && exchange[first] < enough) ++first;
  while (last > first && exchange[last - 1] < enough) --last;
  // The slices in which it begins and ends are only partly of the pipeline.
  const auto left = [&] { return static_cast<double>(last - first); };
  if (first > 0 && left() > kFewestSlices) ++first;
  if (last < exchange.size() && left() > kFewestSlices) --last;
  if (left() < kFewestSlices) return all;
  return {all.begin() + static_cast<std::ptrdiff_t>(first),
          all.begin() + static_cast<std::ptrdiff_t>(last)};
}

OutsideFlavour FlavourOf(const Outside& out, const RunView& run) {
  for (const ThreadGroup& group : out.groups) {
    const std::string thread = WithoutMain(group.thread);
    if (thread.starts_with("pt_data_worker") || thread.starts_with("pt_main_thread")) {
      return OutsideFlavour::kTorch;
    }
  }
  for (const ThreadGroup& group : out.groups) {
    if (group.thread.starts_with("tf_")) return OutsideFlavour::kTensorflow;
  }
  for (const MeasurementRow& row : run.measurements) {  // idle threads are listed there too
    if (row.thread.starts_with("tf_")) return OutsideFlavour::kTensorflow;
  }
  for (const ProcessRow& process : run.processes) {
    if (process.command.find("torch") != std::string::npos) return OutsideFlavour::kTorch;
  }
  return OutsideFlavour::kPlain;
}

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

// How much of what the verdict rests on was lost, as a share of all there was: the largest loss,
// because they overlap. `words` says of what.
struct LostShare {
  double share = 0;
  std::string words;
};

LostShare ShareLost(const RunView& run) {
  // A loss counts events; so does the metric, in which an event is seen so many times.
  struct Counted {
    const char *loss, *metric;
    double events;
    const char* words;
  };
  constexpr Counted kCounted[] = {
      {"offcpu: threads", "switches_count", 2, "the threads' switches"},  // out and in
      {"offcpu: switches", "switches_count", 1, "the threads' switches"},
      {"offcpu: off cpu periods", "runnable_count", 1, "the times off the CPU"},
      {"offcpu: wakeups", "wakeups_count", 1, "the wake-ups"}};
  std::map<std::string, double> seen;
  std::set<int64_t> processes;
  std::set<std::pair<int64_t, std::string>> groups;
  for (const MeasurementRow& row : run.measurements) {
    seen[row.metric] += row.value.value_or(0);
    if (row.metric != "on_cpu_ns") continue;
    processes.insert(row.pid);
    groups.emplace(row.pid, row.thread);
  }
  LostShare most;
  const auto consider = [&](double lost, double kept, const char* words) {
    if (lost <= 0) return;
    const double share = lost / (lost + std::max(0.0, kept));
    if (share > most.share) most = {share, words};
  };
  // Of some threads only totals are kept where there are very many.
  double in_course = 0, in_all = 0;
  for (const CourseRow& row : run.course) {
    if (row.metric == "on_cpu_ns") in_course += row.value;
  }
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "on_cpu_ns" && row.process_id && row.operator_name.empty())
      in_all += row.value.value_or(0);
  }
  constexpr double kRounding = 0.01;
  if (in_course < (1 - kRounding) * in_all) {
    consider(in_all - in_course, in_course, "the threads' times");
  }
  for (const LossRow& loss : run.losses) {
    const auto lost = static_cast<double>(loss.lost_count);
    for (const Counted& each : kCounted) {
      if (loss.what == each.loss) consider(lost, each.events * seen[each.metric], each.words);
    }
    if (loss.what == "follow: processes") {
      consider(lost, static_cast<double>(processes.size()), "the processes");
    } else if (loss.what == "offcpu: thread times") {
      consider(lost, static_cast<double>(groups.size()), "the ended threads");
    } else if (loss.what == "threads whose waits were not sampled" && loss.total_count) {
      const auto total = static_cast<double>(*loss.total_count);
      consider(lost, total - lost, "the threads");
    }
  }
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

void SayUnknown(Outside* out) {
  switch (out->flavour) {
    case OutsideFlavour::kTorch:
      out->unknown.push_back(
          "names of operators and the time of each batch: headrace.wrap(loader) adds them");
      break;
    case OutsideFlavour::kTensorflow:
      out->unknown.push_back(
          "names of operators: tf.data runs them in threads without names of their own");
      break;
    default:
      out->unknown.push_back(
          "names of operators, queues and batches: headrace/account.h adds them");
  }
  switch (out->knowledge) {
    case OutsideKnowledge::kCpu:
      out->unknown.push_back(
          "why threads wait and for whom: the off-CPU probe did not run (see probes)");
      break;
    case OutsideKnowledge::kCauses:
      out->unknown.push_back(
          "who ends the waits: every wait on a lock, pipe or poll counts as waiting for the other "
          "side");
      break;
    case OutsideKnowledge::kCounts:
      out->unknown.push_back(
          "how long each wait was that another thread ended: time is shared out by wake-ups");
      break;
    default:
      break;
  }
}

void SayUnseenAccelerator(Outside* out) {
  if (out->accelerators) return;
  out->unknown.push_back("whether an accelerator computes while the consumer waits for it");
}

// Leaves `pid` of processes that each take data, and all that belongs to none of the others.
RunView OfOneRank(const RunView& run, const std::vector<int64_t>& ranks, int64_t pid) {
  std::set<int64_t> left_out(ranks.begin(), ranks.end());
  left_out.erase(pid);
  for (bool grown = true; grown;) {
    grown = false;
    for (const ProcessRow& process : run.processes) {
      if (left_out.contains(process.parent_pid)) grown |= left_out.insert(process.pid).second;
    }
  }
  RunView part = run;
  part.accelerator_use.clear();
  std::set<int64_t> ids;
  std::erase_if(part.processes, [&](const ProcessRow& process) {
    return left_out.contains(process.pid) && ids.insert(process.process_id).second;
  });
  std::erase_if(part.course, [&](const CourseRow& row) { return ids.contains(row.process_id); });
  return part;
}

// How long `pid` waits in the slices with these numbers if other ranks are not looked at; nothing
// where it is not the one whose main thread was seen.
std::optional<double> WaitOfRank(const RunView& run, const std::vector<int64_t>& ranks, int64_t pid,
                                 const std::set<int64_t>& numbers) {
  const RunView part = OfOneRank(run, ranks, pid);
  Outside one;
  Slices slices = BuildSlices(part, &one);
  if (one.knowledge == OutsideKnowledge::kCpu) AddUnseenWaits(part, one, &slices);
  std::vector<size_t> judged;
  for (size_t s = 0; s < slices.index.size(); ++s) {
    if (numbers.contains(slices.index[s])) judged.push_back(s);
  }
  std::optional<size_t> main;
  for (size_t g = 0; g < one.groups.size(); ++g) {
    if (one.groups[g].main && one.kinds[one.groups[g].kind].pids == std::vector{pid}) main = g;
  }
  const Totals totals = Sum(one, slices, judged);
  if (!main || totals.times[*main].total() <= 0) return std::nullopt;  // nothing of it was seen
  Judge judge(part, &one);
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
TrainerWaits WaitsOf(const Judge& judge, const RunView& run, const Slices& slices,
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

// How busy the cores were, by whom, and what of them is free.
void SayCores(const RunView& run, Outside* out) {
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  double own = 0;
  for (const ThreadGroup& group : out->groups) own += group.time.on_cpu_s;
  const Real used = seconds > 0 ? Real(own / seconds) : std::nullopt;
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

// Whether, of those that feed the consumer or its helpers, some sleep and another one computes: the
// timer may be that of a service which looks after the others.
bool OthersCompute(const Outside& out) {
  return std::any_of(out.units.begin(), out.units.end(), [&](const OutsideUnit& unit) {
    return &unit != out.units.data() && unit.kind != out.units[0].kind &&
           unit.shares.on_cpu > kOthersCompute && unit.shares.sleep < unit.shares.on_cpu;
  });
}

// What limits, with its probability: by slices drawn anew, less what was lost.
void AddFindings(Judge& judge, const Slices& slices, const std::vector<size_t>& all,
                 double lost_share, Outside* out) {
  // Resampling keeps the drift of a run; a verdict that half its windows contradict is none.
  Random random(kOutsideSeed);
  std::map<OutsideLimit, size_t> wins;
  std::vector<double> stalls;
  const size_t block = all.size() >= 12 ? 2 : 1;
  for (size_t draw = 0; draw < kOutsideDraws; ++draw) {
    std::vector<size_t> picks = all;
    if (all.size() >= 3) {
      picks = BlockResample(all.size(), block, random);
      for (size_t& pick : picks) pick = all[pick];
    }
    const Totals drawn = Sum(*out, slices, picks);
    ++wins[judge.Decide(drawn).first];
    stalls.push_back(judge.Stall(drawn));
  }
  if (all.size() >= 3) out->stall_interval = IntervalAround(out->stall_ratio, stalls, 0.9);
  // What is inferred from less is never certain; what was lost may say something else.
  const double most = out->knowledge >= OutsideKnowledge::kWakers   ? 1.0
                      : out->knowledge == OutsideKnowledge::kCounts ? kSureByCounts
                      : out->knowledge == OutsideKnowledge::kCauses ? kSureByCauses
                                                                    : kSureByTimes;
  const Totals whole = Sum(*out, slices, all);
  const bool is_contended = out->cores_others && out->core_budget.cores.value_or(0) > 0 &&
                            out->cores_busy_ratio.value_or(0) > kCoresNotFull;
  for (const auto& [each, count] : wins) {
    const double share = static_cast<double>(count) / static_cast<double>(kOutsideDraws);
    const bool unsure = (each == OutsideLimit::kConsumer && MayUnpickle(*out)) ||
                        each == OutsideLimit::kInterpreter || each == OutsideLimit::kLock;
    double likely = std::min(most, unsure ? kMayUnpickle : 1);
    if (each == OutsideLimit::kSleep && OthersCompute(*out)) likely = std::min(likely, kIdleTimer);
    if (is_contended) {
      likely = std::min(likely, MostBesideOthers(*out->cores_others, *out->core_budget.cores));
    }
    if (judge.IsAmbiguous(each, whole)) likely = std::min(likely, kAmbiguous);
    const bool loading = each != OutsideLimit::kConsumer && each != OutsideLimit::kAlone;
    if (loading && out->accelerators && out->accelerators->Contradict()) {
      likely = std::min(likely, kDeviceDisagrees);
    }
    out->findings.push_back({each, likely * (1 - lost_share) * share});
  }
  std::stable_sort(out->findings.begin(), out->findings.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
}

// What would decide it; `lost`: what was lost, where that is too much, else empty.
std::string MeasureFor(const Outside& out, const std::string& lost,
                       const std::vector<size_t>& stopped) {
  if (!lost.empty()) return "fewer processes at once, so that less is lost: " + lost;
  if (!stopped.empty()) return StoppedText(out, stopped);
  if (out.knowledge < OutsideKnowledge::kCauses) {
    return "why threads wait: run with CAP_BPF and CAP_PERFMON ('headrace doctor')";
  }
  if (out.accelerators && out.accelerators->Contradict()) {
    return MeasureOfDevices(*out.accelerators);
  }
  if (out.findings[0].limit == OutsideLimit::kProducers && out.flavour == OutsideFlavour::kTorch) {
    return "both sides wait for each other, as they do for a batch that is due while others are "
           "ready: 'headrace profile -- COMMAND' with its import hook tells";
  }
  if (out.findings[0].limit != OutsideLimit::kAlone) {
    return "record longer, or change one of the two alone and compare";
  }
  return out.flavour == OutsideFlavour::kTorch
             ? "headrace.wrap(loader) tells loading from training; num_workers > 0 would run them "
               "at once"
             : "instrumenting the program (headrace/account.h) separates its parts";
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

bool MayUnpickle(const Outside& out) {
  if (out.flavour != OutsideFlavour::kTorch || out.units.empty()) return false;
  const OutsideUnit& consumer = out.units[0];
  if (consumer.role != UnitRole::kConsumer || consumer.shares.on_cpu < kUnpicklerComputes)
    return false;
  return std::any_of(out.units.begin(), out.units.end(), [&](const OutsideUnit& unit) {
    return unit.role == UnitRole::kProducer && unit.kind != consumer.kind;
  });
}

const char* UnitRoleName(UnitRole role) {
  constexpr const char* kNames[] = {"consumer", "producer", "idle", "launcher"};
  return kNames[static_cast<int>(role)];
}

const char* OutsideLimitName(OutsideLimit limit) {
  constexpr const char* kNames[] = {"producers",   "cores", "storage",  "network", "lock",
                                    "interpreter", "sleep", "consumer", "alone",   "none"};
  return kNames[static_cast<int>(limit)];
}

Outside LookFromOutside(const RunView& run) {
  Outside out;
  Slices slices = BuildSlices(run, &out);
  std::vector<size_t> all(slices.times.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const Totals totals = Sum(out, slices, all);
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  for (size_t g = 0; g < out.groups.size(); ++g) {
    out.groups[g].time = totals.times[g];
    out.groups[g].threads_count = slices.seen_s > 0 ? totals.times[g].total() / slices.seen_s : 0;
    // With causes a thread's whole life is seen; a group of first threads has one a process.
    const double processes = static_cast<double>(out.kinds[out.groups[g].kind].pids.size());
    if (out.groups[g].main) out.groups[g].threads_count = processes;
  }
  for (size_t e = 0; e < out.edges.size(); ++e) out.edges[e].wait_s = totals.waits[e];
  out.flavour = FlavourOf(out, run);
  SayCores(run, &out);

  const std::vector<size_t> stopped = StoppedKinds(out);
  bool consumer_stopped = false;
  if (!stopped.empty()) {
    Outside first = out;
    Judge look(run, &first);
    consumer_stopped =
        look.FindUnits(totals) && std::find(stopped.begin(), stopped.end(),
                                            first.groups[look.consumer()].kind) != stopped.end();
  }
  const LostShare lost = ShareLost(run);
  const std::string lost_text =
      fmt::format("{:.0f} % of {} were lost (see LOST)", 100 * lost.share, lost.words);
  if (lost.share > kMostLostOfVerdict) {
    out.withheld = lost_text + ": what is left does not stand for the whole";
  } else if (out.knowledge == OutsideKnowledge::kNothing) {
    out.withheld = "no thread was seen: nothing is known of where its time went";
  } else if (consumer_stopped) {
    out.withheld = StoppedText(out, stopped);
  } else if (static_cast<double>(run.run.duration_ns) < kOutsideShortestNs) {
    out.withheld = fmt::format("too short for a verdict ({:.1f} s; {:g} s are needed)", seconds,
                               kOutsideShortestNs * 1e-9);
  } else if (slices.is_part) {
    out.withheld = fmt::format(
        "threads were watched for {:.1f} of {:.1f} s, which says nothing of the rest; --level 3 "
        "goes "
        "on watching (section probes)",
        slices.seen_s, seconds);
  }
  SayUnknown(&out);
  if (!out.withheld.empty()) {
    SayUnseenAccelerator(&out);
    return out;
  }
  if (lost.share >= kLossTold) out.unknown.push_back("what was lost: " + lost_text);
  if (!stopped.empty()) out.unknown.push_back(StoppedText(out, stopped));
  if (out.knowledge == OutsideKnowledge::kCpu) AddUnseenWaits(run, out, &slices);
  {
    Outside first = out;  // who the consumer is, to see when it began to take batches
    Judge look(run, &first);
    if (look.FindUnits(Sum(out, slices, all))) all = Steady(out, slices, look.consumer(), all);
  }
  out.steady_slices = all.size();
  const Totals whole = Sum(out, slices, all);
  Judge judge(run, &out);
  if (!judge.FindUnits(whole)) {
    out.withheld = "no process of the tree could be followed";
    return out;
  }
  out.stall_ratio = judge.Stall(whole);
  out.stall_assumed = out.knowledge < OutsideKnowledge::kCounts;
  out.accelerators = LookAtAccelerators(run, WaitsOf(judge, run, slices, all, out));
  SayUnseenAccelerator(&out);

  AddFindings(judge, slices, all, lost.share, &out);
  const auto [limit, culprit] = judge.Decide(whole);
  out.culprit = out.findings[0].limit == limit ? culprit : 0;
  out.decided = out.findings[0].limit != OutsideLimit::kNone &&
                out.findings[0].limit != OutsideLimit::kAlone &&
                out.findings[0].probability >= kSureOfRow;
  if (!out.decided)
    out.measure = MeasureFor(out, lost.share > 1 - kSureOfRow ? lost_text : "", stopped);
  return out;
}

}  // namespace headrace::analysis
