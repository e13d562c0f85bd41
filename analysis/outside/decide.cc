// OutsideJudge::Decide: from the consumer to whoever the others wait for, and what limits that one.
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "analysis/outside/file_locks.h"
#include "analysis/outside/judge.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {

// Nobody makes anything for it.
OutsideLimit OutsideJudge::LimitAlone(const UnitShares& own) {
  if (StandsAtAFileLock(own)) return OutsideLimit::kLock;
  const double most = std::max({kAloneWaits, own.on_cpu, own.runnable});
  if (own.storage > most) return OutsideLimit::kStorage;
  if (own.network > most) return OutsideLimit::kNetwork;
  return own.sleep > most ? OutsideLimit::kSleep : OutsideLimit::kAlone;
}

// Of processes whose results are taken in turn the slowest decides.
double OutsideJudge::WaitForConsumer(size_t u, const UnitShares& shares) const {
  // What ends the waits of Ray's workers are threads of their own.
  if (IsRayWorker(out_->units[u])) return 1 - shares.on_cpu - shares.runnable;
  const std::optional<UnevenProcesses>& uneven = out_->units[u].uneven;
  if (!uneven) return shares.wait_consumer;
  return std::min(shares.wait_consumer, 1 - uneven->busiest_ratio);
}

// The nearest producers are those the consumer deals with; the busiest of them decides. Where the
// consumer waits, who ends none of its waits is none of them, whatever it does itself.
size_t OutsideJudge::BusiestNext(const std::vector<size_t>& producers, const Totals& totals) const {
  const double counts = Stall(totals) < kSmallStall || out_->knowledge < OutsideKnowledge::kCounts
                            ? 0
                            : kExchangeCounts * StallSeconds(totals);
  std::optional<size_t> next;
  double least_wait = 0;
  for (const size_t u : producers) {
    if (out_->units[u].distance > 1) continue;
    if (Waited(0, u, totals) < counts && !IsRayWorker(out_->units[u])) continue;
    const UnitShares shares = Shares(u, totals);
    const double wait = WaitForConsumer(u, shares);
    const double work = out_->units[u].uneven ? 1 : shares.work();
    const double score = wait - 0.5 * std::min(1.0, work);
    if (!next || score < least_wait) {
      next = u;
      least_wait = score;
    }
  }
  if (next) return *next;
  // None ends many: the one that ends most of its waits.
  return *std::max_element(producers.begin(), producers.end(), [&](size_t a, size_t b) {
    return Waited(0, a, totals) < Waited(0, b, totals);
  });
}

// Away from the consumer, while the unit mostly waits for others further out.
size_t OutsideJudge::WalkUpstream(size_t from, const Totals& totals) const {
  std::set<size_t> walked = {0, from};
  for (size_t at = from;;) {
    // Threads of a unit that hand work on wait for each other as those at a lock do: where they
    // wait for others, too, that is what they are after.
    const UnitShares shares = Shares(at, totals);
    if (out_->units[at].uneven || shares.wait_input <= shares.work() - shares.lock) return at;
    const double threads = out_->units[at].threads_count;
    const bool of_processes = out_->units[at].kind != out_->units[0].kind;
    if (of_processes && shares.lock > kMostlyLocked && HandOnALock(shares, threads)) return at;
    const auto up = Upstream(at, totals, walked);
    if (!up) return at;
    if (StandsAtAFileLock(shares)) {
      // Who fetches what is missing under the lock is what all wait for.
      const UnitShares holder = Shares(*up, totals);
      if (holder.storage + holder.network < kMostlyLocked) return at;
    }
    at = *up;
    walked.insert(at);
  }
}

// The producer at hand has things ready for it. `longer`: its turn is, by what the two wait.
std::pair<OutsideLimit, size_t> OutsideJudge::LimitOfConsumer(size_t producer,
                                                              std::optional<bool> longer,
                                                              const Totals& totals) const {
  const UnitShares own = Shares(0, totals);
  if (own.storage > kConsumerReads) return {OutsideLimit::kStorage, 0};
  if (own.network > kConsumerReads) return {OutsideLimit::kNetwork, 0};
  // Threads of one process may wait for each other for other reasons, unless Python's is known
  // to be none of them.
  const bool apart =
      out_->units[producer].kind != out_->units[0].kind ||
      (out_->is_interpreter_all && out_->interpreter_ratio.value_or(1) < kHardlyForInterpreter);
  const bool mutual = !longer && Stall(totals) > kHighStall &&
                      out_->knowledge >= OutsideKnowledge::kWakers && apart;
  if (mutual) return {OutsideLimit::kPauses, producer};
  return {OutsideLimit::kConsumer, 0};
}

std::optional<size_t> OutsideJudge::Collector(const std::vector<size_t>& producers,
                                              const Totals& totals) const {
  if (!IsJava(*out_, out_->units[0].kind)) return std::nullopt;
  const ThreadTimes& own = totals.times[consumer_];
  double waits_s = own.blocked_s[Index(WaitCause::kLock)], least_s = kAloneWaits * own.total();
  for (const size_t u : producers) {
    waits_s -= Waited(0, u, totals);  // for what they make
    least_s = std::max(least_s, totals.times[out_->units[u].key_group].on_cpu_s);
  }
  if (waits_s < kAloneWaits * own.total()) return std::nullopt;
  for (size_t u = 1; u < out_->units.size(); ++u) {
    const OutsideUnit& unit = out_->units[u];
    const bool collects =
        unit.kind == out_->units[0].kind && StopsForGarbage(out_->groups[unit.key_group].thread);
    // Its threads do so at the same time.
    const double each_s = totals.times[unit.key_group].on_cpu_s / std::max(1.0, unit.threads_count);
    if (collects && each_s >= least_s) return u;
  }
  return std::nullopt;
}

std::pair<OutsideLimit, size_t> OutsideJudge::Decide(const Totals& totals) const {
  const UnitShares own = Shares(0, totals);
  std::vector<size_t> producers;
  for (size_t u = 1; u < out_->units.size(); ++u) {
    if (out_->units[u].role == UnitRole::kProducer) producers.push_back(u);
  }
  if (const auto collector = Collector(producers, totals)) {
    return {OutsideLimit::kCollector, *collector};
  }
  if (producers.empty()) return {LimitAlone(own), 0};
  const double stall = Stall(totals);
  // It waits for the network or storage itself, and nobody has anything ready for it.
  const bool has_ready = std::any_of(producers.begin(), producers.end(), [&](size_t u) {
    return Shares(u, totals).wait_consumer > kBothWait;
  });
  if (!has_ready && stall < kSmallStall && std::max(own.network, own.storage) > kConsumerReads) {
    return {own.network > own.storage ? OutsideLimit::kNetwork : OutsideLimit::kStorage, 0};
  }
  const size_t at = WalkUpstream(BusiestNext(producers, totals), totals);
  const UnitShares shares = Shares(at, totals);
  // Waits whose end nobody saw may be waits for the other side or mere idleness of spare threads;
  // then the consumer's own time off the CPU is what there is to judge by.
  const double wait_consumer =
      out_->knowledge < OutsideKnowledge::kCounts ? kHighStall : WaitForConsumer(at, shares);
  if (SharesInterpreter(totals) != Sharing::kNo) {
    const bool home = wait_consumer <= stall && out_->units[at].kind == out_->units[0].kind;
    if (home || wait_consumer > stall) return {OutsideLimit::kInterpreter, home ? at : 0};
  }
  const std::optional<bool> longer = IsConsumersTurnLonger(at, totals);
  if (longer.value_or(wait_consumer > stall)) return LimitOfConsumer(at, longer, totals);
  if (StandsAtAFileLock(shares)) return {OutsideLimit::kLock, at};
  const OutsideLimit limit = LimitOf(shares, out_->units[at].threads_count);
  const bool slowest = out_->units[at].uneven && limit != OutsideLimit::kCores;
  return {slowest ? OutsideLimit::kProducers : limit, at};
}

}  // namespace headrace::analysis
