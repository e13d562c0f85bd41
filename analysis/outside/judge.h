// OutsideJudge: who is what in a run that is seen from outside, and what limits it by given sums of
// its slices. Shares are of the lifetime of a unit's threads.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analysis/outside/file_locks.h"
#include "analysis/outside/slices.h"
#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

class OutsideJudge {
 public:
  // Both must outlive it. `out` has the groups, kinds, edges and knowledge of BuildSlices; its
  // units are filled by FindUnits.
  OutsideJudge(const RunView& run, Outside* out);

  // Takes that group for the consumer (FindConsumer), and finds the units by the sums of the whole
  // run. False if there is no consumer; nothing else may be asked then.
  bool FindUnits(const Totals& totals, std::optional<size_t> consumer);

  // The share of its life that the consumer waited for others, 0 to 1.
  double Stall(const Totals& totals) const;

  // What limits, and the unit that it is about, by these sums.
  std::pair<OutsideLimit, size_t> Decide(const Totals& totals) const;

  // Whether that limit looks, by these sums, as something else might.
  bool IsAmbiguous(OutsideLimit limit, const Totals& totals) const;

  // Whether sockets brought bytes to the processes of unit `u` all the time.
  bool Receives(size_t u, const Totals& totals) const;

  // Whether unit `u` is a server: processes that are nearer to the consumer are connected with it
  // by a network's protocol, not by a pipe alone.
  bool IsServer(size_t u) const;

  // Index of its group.
  size_t consumer() const { return consumer_; }

 private:
  // Whether the threads of the consumer's process run Python in turn: together they use just about
  // one core although more are free, several of them compute, and they wait for the interpreter's
  // lock. That is seen in one of two ways. CPython's threads wait for it with a time limit. Or each
  // side waits for the other, though neither is busy: threads that do one thing after the other for
  // another reason look the same.
  enum class Sharing : uint8_t { kNo, kTimed, kMutual };
  Sharing SharesInterpreter(const Totals& totals) const;
  // Whether the consumer waits for the unit's threads, and these for it.
  bool WaitForEachOther(const UnitShares& shares, const Totals& totals) const;
  // Where they do so as neither prepares anything while the other works, and the cores are too few
  // meanwhile, as those of environments that a trainer asks for each step: whether what the
  // consumer does without the waits takes clearly longer than what the unit does with the cores to
  // itself, or clearly shorter. Who waits longer says little then. Nothing: they do not take turns,
  // or it is not clear.
  std::optional<bool> IsConsumersTurnLonger(size_t u, const Totals& totals) const;
  // The unit of the threads that collect garbage while a Java virtual machine stops all others:
  // where each of them computes much of the time, more than all that feed the consumer, and this
  // waits at a lock for as long that nobody who feeds it ended. Nothing: there is none.
  std::optional<size_t> Collector(const std::vector<size_t>& producers, const Totals& totals) const;
  static OutsideLimit LimitAlone(const UnitShares& own);
  double WaitForConsumer(size_t u, const UnitShares& shares) const;
  size_t BusiestNext(const std::vector<size_t>& producers, const Totals& totals) const;
  size_t WalkUpstream(size_t from, const Totals& totals) const;
  std::pair<OutsideLimit, size_t> LimitOfConsumer(size_t producer, std::optional<bool> longer,
                                                  const Totals& totals) const;
  static bool HandOnALock(const UnitShares& shares, double threads);
  OutsideLimit LimitOf(const UnitShares& shares, double threads) const;
  void AddUnit(const std::vector<size_t>& groups, const Totals& totals);
  bool IsAncestor(size_t kind, size_t of) const;
  double Waited(size_t wakee, size_t waker, const Totals& totals) const;
  bool IsRayWorker(const OutsideUnit& unit) const;
  bool IsRayDriver() const;
  bool IsOfOtherRanks(const OutsideUnit& unit) const;
  void FindDistances(const Totals& totals);
  std::set<size_t> LinkedKinds(size_t home) const;
  bool TowardsConsumer(size_t unit, size_t other) const;
  UnitShares Shares(size_t u, const Totals& totals) const;
  bool Receives(const OutsideUnit& unit, double lifetime_s) const;
  double StallSeconds(const Totals& totals) const;
  bool IsProducer(size_t u, const Totals& totals) const;
  std::optional<size_t> Upstream(size_t u, const Totals& totals,
                                 const std::set<size_t>& walked) const;

  const RunView& run_;
  Outside* out_;
  size_t consumer_ = 0;
  std::vector<size_t> unit_of_;           // by group
  std::vector<FileLockPart> file_locks_;  // by group
  std::set<int64_t> receivers_;           // ids of processes that sockets bring bytes to
};

}  // namespace headrace::analysis
