#include "analysis/outside/findings.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/run/beside_others.h"
#include "analysis/statistics/statistics.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr size_t kOutsideDraws = 300;
constexpr uint64_t kOutsideSeed = 20261121;

// Whether, of those that feed the consumer or its helpers, some sleep and another one computes: the
// timer may be that of a service which looks after the others.
bool OthersCompute(const Outside& out) {
  return std::any_of(out.units.begin(), out.units.end(), [&](const OutsideUnit& unit) {
    return &unit != out.units.data() && unit.kind != out.units[0].kind &&
           unit.shares.on_cpu > kOthersCompute && unit.shares.sleep < unit.shares.on_cpu;
  });
}

// Whether the consumer mostly sleeps, or by its functions waits, in a program with services of a
// library's own: Ray's driver waits for what its daemons do by timers, and for its batches.
bool WaitsAsRaysDriver(const Outside& out) {
  constexpr double kMostly = 0.5;
  const std::optional<OwnTime> own = out.OwnTimes();
  return (out.units[0].shares.sleep > kMostly || (own && own->waits > kMostly)) &&
         std::any_of(out.kinds.begin(), out.kinds.end(),
                     [](const ProcessKind& kind) { return kind.is_service; });
}

// Where the consumer's thread limits: whether what it does is its step or loading, by its sampled
// stacks. Samples that follow each other are alike: they count half. What may be either is drawn:
// any part of it may be of one kind. A thread that nothing feeds, and that waits for a timer,
// storage or the network, loads so unless its functions say that it is in its step. One that waits
// for others in turn may do so for each part of a batch that it takes apart.
OutsideLimit DrawOwnWork(const Outside& out, OutsideLimit limit, Random* random) {
  const bool waits_alone = IsOwnWait(limit) && !out.HasProducers();
  const bool in_turn = limit == OutsideLimit::kPauses;
  if (limit != OutsideLimit::kConsumer && limit != OutsideLimit::kAlone && !waits_alone &&
      !in_turn) {
    return limit;
  }
  const std::optional<OwnTime> own = out.OwnTimes();
  if (!own || (in_turn && own->loads < own->waits + own->step + own->unknown)) return limit;
  // The threads' times say that it computes, its functions that it waits: neither is to be
  // believed. But the functions are of the whole run: it may have waited before the steady part.
  if (own->waits > 0.5) {
    if (waits_alone) return limit;
    const double before_s = std::max(0.0, out.python->seconds - out.steady_s);
    const bool may_be_before = out.python->waits_s < before_s;
    const double of_all = out.python->waits_s / std::max(out.python->seconds, 1e-9);
    return may_be_before && random->Uniform() >= of_all ? limit : OutsideLimit::kNone;
  }
  const double samples = static_cast<double>(out.python->samples_count) / 2;
  double loads = own->loads, step = own->step;
  if (random->Uniform() < kNamesMislead) {
    loads += own->step_by_name - own->loads_by_name;
    step += own->loads_by_name - own->step_by_name;
  }
  const double of_unknown = (waits_alone ? 1 : random->Uniform()) * own->unknown;
  loads += of_unknown;
  step += own->unknown - of_unknown;
  const double share = (loads * samples + 1) / ((loads + step) * samples + 2);
  const double drawn = share + std::sqrt(share * (1 - share) / (samples + 3)) * random->Normal();
  if (drawn <= 0.5) return in_turn ? limit : OutsideLimit::kConsumer;
  return waits_alone ? limit : OutsideLimit::kOwnWork;
}

// What the consumer's functions and its process say of a limit that threads' times give;
// `of_home`: that limit is of other threads of its own process.
OutsideLimit WithItsFunctions(const Outside& out, OutsideLimit limit, bool of_home,
                              Random* random) {
  const UnitShares& consumer = out.units[0].shares;
  const bool at_consumer = limit == OutsideLimit::kConsumer || limit == OutsideLimit::kAlone;
  // Stopped by its quota, a thread is neither waiting nor computing.
  const std::optional<CpuQuota>& quota = out.core_budget.quota;
  if (quota && quota->stopped_ratio.value_or(0) > kQuotaStops &&
      out.cores_busy_ratio.value_or(0) > kCoresNotFull && (at_consumer || of_home)) {
    return OutsideLimit::kCores;
  }
  const double blocked = 1 - consumer.on_cpu - consumer.runnable;
  const bool starved = IsStarved(consumer) && consumer.runnable > blocked;
  if (at_consumer && (out.IsHeldBack() || starved)) return OutsideLimit::kCores;
  const double waits = std::min(blocked, out.interpreter_ratio.value_or(0));
  // Where it waits longer for what other threads make than for the lock, those threads limit.
  const bool is_timer = limit == OutsideLimit::kSleep && out.is_interpreter_inferred;
  const bool may_be_turn = at_consumer || is_timer || (of_home && waits > out.stall_ratio);
  if (may_be_turn && waits > kMaybeForInterpreter && waits > blocked / 2) {
    const double sure =
        (waits - kMaybeForInterpreter) / (kWaitsForInterpreter - kMaybeForInterpreter);
    if (sure >= 1 || random->Uniform() < sure) return OutsideLimit::kInterpreter;
  }
  // It waits for threads that do its work for it, as run-times of TensorFlow and JAX do. Loading in
  // which it hardly computes, or in a library's loader, may be a wait for threads that load.
  const std::optional<OwnTime> own = out.OwnTimes();
  const bool is_fed = !own || own->waits < 0.5;
  if (of_home && is_fed && out.HasStepInRunTime()) return OutsideLimit::kConsumer;
  if (of_home && own) {
    const bool computes = !out.python->has_loader && consumer.on_cpu > 0.5;
    const double loads = computes ? own->loads : 0;
    const double others = own->waits + own->loads - loads;
    if (own->step + loads > kStepElsewhere && others < kSmallStall) limit = OutsideLimit::kConsumer;
  }
  limit = DrawOwnWork(out, limit, random);
  return limit == OutsideLimit::kConsumer && WhoFeedsAtItsCost(out) ? OutsideLimit::kCores : limit;
}

// What is inferred from less is never certain; what was lost may say something else.
double MostOfKnowledge(const Outside& out) {
  return out.knowledge >= OutsideKnowledge::kWakers   ? kMostOfOthersPrograms
         : out.knowledge == OutsideKnowledge::kCounts ? kSureByCounts
         : out.knowledge == OutsideKnowledge::kCauses ? kSureByCauses
                                                      : kSureByTimes;
}

}  // namespace

ThreadCounts CountsAtHome(const Outside& out) {
  ThreadCounts sum;
  for (size_t u = 1; u < out.units.size(); ++u) {
    const OutsideUnit& unit = out.units[u];
    if (unit.kind != out.units[0].kind) continue;
    sum.on_cpu += unit.threads_count * (unit.shares.on_cpu + unit.shares.runnable);
    sum.sleep += unit.threads_count * unit.shares.sleep;
    sum.network += unit.threads_count * unit.shares.network;
    sum.storage += unit.threads_count * unit.shares.storage;
    sum.timed_out += unit.threads_count * unit.shares.timed_out;
  }
  return sum;
}

std::optional<size_t> WhoFeedsAtItsCost(const Outside& out) {
  const UnitShares& consumer = out.units[0].shares;
  double all = 0, most = 0;
  std::optional<size_t> found;
  for (size_t u = 1; u < out.units.size(); ++u) {
    const OutsideUnit& unit = out.units[u];
    if (unit.role != UnitRole::kProducer || unit.kind == out.units[0].kind) continue;
    all += unit.Cores();
    if (unit.Cores() > most) {
      most = unit.Cores();
      found = u;
    }
  }
  const bool waits_for_them = consumer.runnable > kStarved &&
                              consumer.runnable > kFedAtItsCost * consumer.on_cpu &&
                              out.cores_others.value_or(kAFreeCore) < kAFreeCore;
  const bool is_held = out.core_budget.quota || out.IsHeldBack() || TakesCores(out);
  return waits_for_them && !is_held && all > consumer.on_cpu ? found : std::nullopt;
}

bool StepIsSeen(const Outside& out) {
  const std::optional<OwnTime> own = out.OwnTimes();
  return own && own->step > kStepElsewhere && own->waits + own->loads < kSmallStall;
}

void AddFindings(OutsideJudge& judge, const Slices& slices, const std::vector<size_t>& all,
                 double lost_share, Outside* out) {
  // Resampling keeps the drift of a run; a verdict that half its windows contradict is none.
  Random random(kOutsideSeed);
  std::map<OutsideLimit, size_t> wins;
  std::vector<double> stalls;
  const double long_enough_s = 12, seconds = slices.slice_s * static_cast<double>(all.size());
  const double block_s = seconds >= long_enough_s ? 2 : 1;
  const auto block =
      static_cast<size_t>(std::max(1.0, std::round(block_s / std::max(0.1, slices.slice_s))));
  for (size_t draw = 0; draw < kOutsideDraws; ++draw) {
    std::vector<size_t> picks = all;
    if (all.size() >= 3) {
      picks = BlockResample(all.size(), block, random);
      for (size_t& pick : picks) pick = all[pick];
    }
    const Totals drawn = Sum(*out, slices, picks);
    const auto [limit, unit] = judge.Decide(drawn);
    const bool of_home = unit != 0 && out->units[unit].kind == out->units[0].kind;
    ++wins[WithItsFunctions(*out, limit, of_home, &random)];
    stalls.push_back(judge.Stall(drawn));
  }
  if (all.size() >= 3) out->stall_interval = IntervalAround(out->stall_ratio, stalls, 0.9);
  const double most = MostOfKnowledge(*out);
  const Totals whole = Sum(*out, slices, all);
  const bool is_contended = out->cores_others && out->core_budget.cores.value_or(0) > 0 &&
                            out->cores_busy_ratio.value_or(0) > kCoresNotFull;
  // The unit that limits by all slices stands for those of the draws.
  const size_t culprit = judge.Decide(whole).second;
  const bool of_home = out->units[culprit].kind == out->units[0].kind;
  for (const auto& [each, count] : wins) {
    const double share = static_cast<double>(count) / static_cast<double>(kOutsideDraws);
    double likely = most;
    if (each == OutsideLimit::kInterpreter || each == OutsideLimit::kLock) {
      likely = std::min(most, kThreadsInTurn);
    }
    if (each == OutsideLimit::kInterpreter && out->is_interpreter_inferred) {
      likely = std::min(likely, kSampledThread);
    }
    const bool in_run_time =
        each == OutsideLimit::kConsumer && of_home && culprit != 0 && out->HasStepInRunTime();
    if (in_run_time && !StepIsSeen(*out)) likely = std::min(likely, kStepInRunTime);
    if (each == OutsideLimit::kCollector) likely = std::min(likely, kCollectsGarbage);
    if (each == OutsideLimit::kPauses) likely = std::min(likely, kMutualWaits);
    const bool may_start = each == OutsideLimit::kConsumer && out->HasShortLivedFeeders();
    if (may_start && !StepIsSeen(*out)) likely = std::min(likely, kStartedAgain);
    const bool of_its_own = each == OutsideLimit::kConsumer || each == OutsideLimit::kAlone;
    if (of_its_own && WaitsAsRaysDriver(*out)) {
      likely = std::min(likely, kIdleTimer);
    }
    if (each == OutsideLimit::kSleep && OthersCompute(*out)) likely = std::min(likely, kIdleTimer);
    const bool kept_off =
        out->cores_free.value_or(0) > kAFreeCore && IsStarved(out->units[0].shares);
    if (each == OutsideLimit::kCores && (out->IsHeldBack() || kept_off)) {
      likely = std::min(likely, kQuotaUnseen);
    }
    if (each == OutsideLimit::kCores && WhoFeedsAtItsCost(*out)) {
      likely = std::min(likely, kFeedersTakeCores);
    }
    if (is_contended) {
      likely = std::min(likely, MostBesideOthers(*out->cores_others, *out->core_budget.cores));
    }
    const bool idle = each == OutsideLimit::kLock && of_home && out->python_threads &&
                      out->python_threads->idle_ratio > kMostlyIdle;
    // That the consumer and they wait for each other needs no other cause than their starts.
    const bool follow =
        each == OutsideLimit::kProducers && culprit != 0 && out->IsShortLived(out->units[culprit]);
    if (idle || judge.IsAmbiguous(each, whole)) {
      likely = std::min(likely, follow ? kStartedAgain : kAmbiguous);
    }
    const bool loading = each != OutsideLimit::kConsumer && each != OutsideLimit::kAlone &&
                         each != OutsideLimit::kOwnWork;
    if (loading && out->accelerators && out->accelerators->Contradict()) {
      likely = std::min(likely, kDeviceDisagrees);
    }
    out->findings.push_back({each, likely * (1 - lost_share) * share});
  }
  std::stable_sort(out->findings.begin(), out->findings.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
}

bool WaitsForItsTurn(const Outside& out) {
  const double waits = out.interpreter_ratio.value_or(0);
  return waits > kWaitsForInterpreter && waits > out.stall_ratio;
}

void InferInterpreterWaits(Outside* out) {
  const auto own = out->OwnTimes();
  if (!own || out->is_interpreter_all || !out->home_activity) return;
  const PythonActivity& seen = *out->home_activity;
  if (seen.samples_count < kFewestSamples) return;
  const double others = seen.Others(Activity::kWorks) + seen.Others(Activity::kHandsOver);
  if (seen.AtMostIn(out->steady_s, others) < kThreadsAtOneThing) return;
  const double at_work = 1 - own->waits - seen.Main(Activity::kSleeps);
  // Whoever has the lock computes meanwhile: a call into C that waits gives it back.
  const double waits = std::min({out->units[0].shares.sleep, at_work, CountsAtHome(*out).on_cpu});
  if (waits <= out->interpreter_ratio.value_or(0)) return;
  out->interpreter_ratio = waits;
  out->is_interpreter_inferred = true;
}

void FindBusyThread(double lost_share, Outside* out) {
  if (!out->python_threads || out->stall_ratio < kSmallStall) return;
  if (out->accelerators && out->accelerators->Contradict()) return;
  if (WaitsForItsTurn(*out)) return;
  const PythonThreads& threads = *out->python_threads;
  if (threads.busy_thread.empty() || threads.busy_samples_count < kFewestSamples) return;
  const OutsideFinding& first = out->findings[0];
  const bool of_threads = first.limit == OutsideLimit::kLock ||
                          first.limit == OutsideLimit::kInterpreter ||
                          first.limit == OutsideLimit::kProducers;
  const double likely = std::min(kSampledThread, MostOfKnowledge(*out) * (1 - lost_share));
  if (first.probability >= likely || (first.probability >= kSureOfRow && !of_threads)) return;
  for (size_t u = 1; u < out->units.size(); ++u) {
    const OutsideUnit& unit = out->units[u];
    const UnitShares& shares = unit.shares;
    if (unit.kind != out->units[0].kind || unit.role != UnitRole::kProducer) continue;
    // A call that waits inside C looks like work in the function that makes it.
    const double cores = unit.threads_count * (shares.on_cpu + shares.runnable);
    const double waits = unit.threads_count * (shares.sleep + shares.network + shares.storage);
    if (cores < kOneThreadComputes || waits > kOneThreadComputes) continue;
    std::erase_if(out->findings, [](const OutsideFinding& finding) {
      return finding.limit == OutsideLimit::kProducers;
    });
    for (OutsideFinding& other : out->findings) other.probability *= 1 - likely;
    out->findings.insert(out->findings.begin(), {OutsideLimit::kProducers, likely});
    out->culprit = u;
    out->is_busy_thread = true;
    return;
  }
}

}  // namespace headrace::analysis
