#include "analysis/outside/units.h"

#include <algorithm>
#include <cmath>

#include "analysis/thresholds.h"

namespace headrace::analysis {

const char* UnitRoleName(UnitRole role) {
  constexpr const char* kNames[] = {"consumer", "producer", "idle", "launcher"};
  return kNames[static_cast<int>(role)];
}

const char* OutsideLimitName(OutsideLimit limit) {
  constexpr const char* kNames[] = {
      "producers", "cores", "storage",  "network", "lock",     "interpreter", "garbage collection",
      "hand-over", "sleep", "consumer", "pauses",  "own work", "alone",       "none"};
  return kNames[static_cast<int>(limit)];
}

// Processes that follow each other so quickly that what lies between them is their start.
bool Outside::IsShortLived(const OutsideUnit& unit) const {
  const double generations =
      static_cast<double>(kinds[unit.kind].pids.size()) / std::max(1.0, unit.threads_count);
  return unit.kind != units[0].kind && generations >= kManyGenerations &&
         steady_s < kShortLife * generations;
}

bool Outside::HasShortLivedFeeders() const {
  return std::any_of(units.begin(), units.end(), [&](const OutsideUnit& unit) {
    return unit.role == UnitRole::kProducer && IsShortLived(unit);
  });
}

bool IsOwnWait(OutsideLimit limit) {
  return limit == OutsideLimit::kStorage || limit == OutsideLimit::kNetwork ||
         limit == OutsideLimit::kSleep;
}

bool Outside::GetsAnotherShare() const {
  if (findings.empty() || findings[0].limit != OutsideLimit::kCores || core_budget.quota ||
      IsHeldBack() || !cores_free || !cores_others) {
    return false;
  }
  const double cores = core_budget.cores.value_or(0);
  const OutsideUnit& unit = units[culprit];
  // Threads of one Python process run in turn.
  const bool takes_turns =
      is_busy_thread || (unit.kind == units[0].kind && kinds[unit.kind].name.starts_with("python"));
  return unit.role == UnitRole::kProducer && !unit.uneven && !takes_turns &&
         *cores_others > kOthersTakeCores * cores &&
         std::max(1.0, std::round(unit.threads_count)) + 1 <= cores;
}

const char* Outside::ConsumerName() const {
  const bool trains = uses_training_library || (python && python->step_s > 0);
  return trains || flavour != OutsideFlavour::kPlain ? "trainer" : "consumer";
}

std::string Outside::LimitWord(OutsideLimit limit) const {
  switch (limit) {
    case OutsideLimit::kProducers:
      return "the threads that feed it";
    case OutsideLimit::kCores:
      return "CPU cores";
    case OutsideLimit::kStorage:
      return "storage";
    case OutsideLimit::kNetwork:
      return "the network, or the server it leads to";
    case OutsideLimit::kInterpreter:
      return "the lock of Python's interpreter (GIL)";
    case OutsideLimit::kLock:
      return "a lock";
    case OutsideLimit::kCollector:
      return "garbage collection";
    case OutsideLimit::kHandOver:
      return "the hand-over of objects between processes";
    case OutsideLimit::kSleep:
      return "a timer";
    case OutsideLimit::kConsumer:
      return ConsumerWord();
    case OutsideLimit::kPauses:
      return "pauses of those who feed it";
    case OutsideLimit::kOwnWork:
      return ConsumerWord() + "'s own thread";
    case OutsideLimit::kAlone:
      return "one thread that loads and computes in turn";
    case OutsideLimit::kNone:
      break;
  }
  return "nothing that was seen";
}

bool Outside::HasProducers() const {
  return std::any_of(units.begin(), units.end(),
                     [](const OutsideUnit& unit) { return unit.role == UnitRole::kProducer; });
}

bool Outside::WaitsAlone() const {
  return !HasProducers() && culprit == 0 && IsOwnWait(findings[0].limit);
}

bool Outside::IsConsumersDoing() const {
  const OutsideLimit limit = findings[0].limit;
  return limit == OutsideLimit::kConsumer || limit == OutsideLimit::kOwnWork ||
         limit == OutsideLimit::kAlone || (culprit == 0 && IsOwnWait(limit));
}

bool Outside::IsByFunctions() const {
  const std::optional<OwnTime> own = OwnTimes();
  if (!decided || !own) return false;
  const OutsideLimit limit = findings[0].limit;
  if (limit == OutsideLimit::kOwnWork) return true;
  if (HasProducers()) return false;
  // Other limits stand whatever the functions do: those may tell nothing.
  return limit == OutsideLimit::kConsumer ||
         own->unknown < std::max(own->loads + own->waits, own->step);
}

bool IsStarved(const UnitShares& shares) {
  return shares.runnable > kStarved && shares.runnable > kStarvedTimes * shares.on_cpu;
}

bool Outside::IsHeldBack() const {
  return !units.empty() && !core_budget.quota && units[0].shares.runnable > kReadyBesideFreeCores &&
         cores_free.value_or(0) > kAFreeCore;
}

std::optional<OwnTime> Outside::OwnTimes() const {
  if (!python || steady_s <= 0 || python->sampled_s < kStacksSee * steady_s ||
      python->samples_count < kFewestSamples) {
    return std::nullopt;
  }
  // Stacks are of the whole run, of which the steady part has what a loader does.
  const double in_loader_s = python->loads_s + python->waits_s;
  const double whole_s =
      python->is_loop_known ? python->seconds : std::min(steady_s, python->seconds);
  const double all_s = std::max({whole_s, in_loader_s, 1e-9});
  const double rest = 1 - in_loader_s / all_s;
  const double beside_s = std::max(python->step_s + python->unknown_s, 1e-9);
  OwnTime time;
  time.loads = python->loads_s / all_s;
  time.waits = python->waits_s / all_s;
  time.loads_by_name = python->loads_by_name_s / all_s;
  time.unknown = python->has_loader ? 0 : rest * python->unknown_s / beside_s;
  time.step = rest - time.unknown;
  time.step_by_name = python->has_loader ? 0 : rest * python->step_by_name_s / beside_s;
  return time;
}

std::optional<double> Outside::OwnWork() const {
  const std::optional<OwnTime> time = OwnTimes();
  return time ? std::optional(time->loads) : std::nullopt;
}

std::optional<double> Outside::InLoader() const {
  const std::optional<OwnTime> time = OwnTimes();
  return time ? std::optional(time->loads + time->waits) : std::nullopt;
}

std::optional<size_t> TakesCores(const Outside& out) {
  if (out.core_budget.quota || out.IsHeldBack()) return std::nullopt;
  for (size_t u = 1; u < out.units.size(); ++u) {
    const OutsideUnit& unit = out.units[u];
    const bool is_apart = unit.role == UnitRole::kIdle && unit.kind != out.units[0].kind;
    if (is_apart && u != out.culprit && out.cores_used && unit.Cores() > *out.cores_used / 2)
      return u;
  }
  return std::nullopt;
}

}  // namespace headrace::analysis
