// Outside: what can be said of a run whose processes keep no accounts, from threads' times on and
// off the CPU, the causes of their waits, and who ended those waits.
//
// Threads are taken together by name and kind of process. The consumer is the main thread of the
// process that the others feed. Roles are given to units: a unit is all processes of one kind or,
// in the consumer's own process, the threads of one name. A wait counts as a wait for the thread
// that ends it: the consumer's waits that others end are its stall; others' waits that the
// consumer's side ends are waits for room or for the next request. The side that waits less for the
// other is the limit.
#pragma once
#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// How many producers there might be instead of `now`, so that the consumer waits no more (`stall`:
// the share of its time in which it does), as far as the free cores go, of which each takes `each`:
// one more has room where half of what it takes is free. `at_most`: the rate then, as a multiple.
struct MoreProducers {
  double count = 0;  // `now`: no core is left for more
  double at_most = 1;
};
MoreProducers RoomForMore(double now, double stall, double each, double free_cores);

// Whether those that limit by what they compute are threads of the consumer's own process that
// mostly wait for each other or for nothing that is known: something in them may run one at a time,
// and more of them would be idle, too.
bool HasIdleThreads(const Outside& outside);

// Whether those that limit by what they compute are threads of the consumer's own process that run
// Python, several at a time, and together use about one core although another is free, hardly in
// waits that are known: one thread of a process runs Python at a time. What leaves the interpreter,
// as NumPy does, uses more cores.
bool RunPythonInTurn(const Outside& outside);

// Whether those that limit are other processes than the consumer's, which end soon and are followed
// by others: more of them at a time start as often.
bool IsCulpritShortLived(const Outside& outside);

// Whether those that limit by what they compute are the threads of a multiprocessing.Pool that hand
// tasks to its processes and take results from them: a Pool has one of each.
bool ExchangeWithPool(const Outside& outside);

// Whether Python's interpreter limits, and the threads of a multiprocessing.Pool, which hand over
// tasks and results one by one, are those that take it beside the consumer's.
bool PoolTakesInterpreter(const Outside& outside);

// Why more of those that limit (`what`) would not help, in words; empty: none of the above is so.
std::string WhyMoreDoNotHelp(const Outside& outside, const std::string& what);

// Whether the consumer computes beside workers that are processes: taking a batch that was pickled
// is work of its own thread, and from outside looks like its step unless its functions were seen.
bool MayUnpickle(const Outside& outside);

// Whether the consumer's thread may do more than its step, as nobody saw which functions it is in:
// gather what others look up, sample, or unpack.
bool MayLoad(const Outside& outside);

// Never throws; `run` may be any kind of run.
Outside LookFromOutside(const RunView& run);

// The same of one of several ranks, `rank.pid` of `pids`, and of the processes that it started.
Outside LookAtRank(const RunView& run, const std::vector<int64_t>& pids, const RankSeen& rank);

}  // namespace headrace::analysis
