#include "analysis/outside/what_decides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// The other processes that feed the consumer, where they and it wait for each other while cores are
// free, and do no more together than one at a time can: nobody hands out work ahead of the result
// that is taken. Empty: it is not so.
std::string WorkInTurn(const Outside& out) {
  if (out.knowledge < OutsideKnowledge::kWakers || out.stall_ratio < kHighStall) return "";
  if (!out.core_budget.cores || out.cores_busy_ratio.value_or(1) > kCoresNotFull) return "";
  double at_work = out.units[0].shares.work();
  std::string who;
  for (size_t u = 1; u < out.units.size(); ++u) {
    const OutsideUnit& unit = out.units[u];
    if (unit.role != UnitRole::kProducer || unit.kind == out.units[0].kind) continue;
    at_work += unit.threads_count * (unit.shares.work() - unit.shares.lock);
    if (unit.threads_count >= 2 && unit.shares.wait_consumer >= kBothWait) who = unit.name;
  }
  return at_work < 1 + kInTurnSlack ? who : "";
}

bool IsInPython(const Outside& out) {
  return std::any_of(out.kinds.begin(), out.kinds.end(),
                     [](const ProcessKind& kind) { return kind.name.starts_with("python"); });
}

bool IsInJava(const Outside& out) {
  for (size_t kind = 0; kind < out.kinds.size(); ++kind) {
    if (IsJava(out, kind)) return true;
  }
  return false;
}

std::string UnknownNames(const Outside& out) {
  if (out.flavour == OutsideFlavour::kTorch) {
    return "names of operators and the time of each batch: headrace.wrap(loader) adds them";
  }
  if (out.flavour == OutsideFlavour::kTensorflow) {
    return "names of operators: tf.data runs them in threads without names of their own";
  }
  const std::string names = "names of operators, queues and batches";
  if (IsInPython(out)) return names + ": the Python package headrace adds them";
  return IsInJava(out) ? names : names + ": headrace/account.h adds them";
}

}  // namespace

void SayUnknown(Outside* out) {
  out->unknown.push_back(UnknownNames(*out));
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
  if (out->accelerators || IsInJava(*out)) return;
  out->unknown.push_back(
      fmt::format("whether an accelerator computes while {} waits for it", out->ConsumerWord()));
}

std::string WhatDecides(const RunView& run, const Outside& out, const std::string& lost,
                        const std::string& stopped) {
  if (!lost.empty()) return "fewer processes at once, so that less is lost: " + lost;
  if (!stopped.empty()) return stopped;
  if (out.knowledge < OutsideKnowledge::kCauses) {
    const bool given_up =
        std::any_of(run.probes.begin(), run.probes.end(),
                    [](const ProbeRow& probe) { return probe.is_stopped_for_cost(); });
    if (given_up) return "why threads wait: 'headrace profile --level 3' tells, at a higher cost";
    return "why threads wait: run with CAP_BPF and CAP_PERFMON ('headrace doctor')";
  }
  if (out.accelerators && out.accelerators->Contradict()) {
    return MeasureOfDevices(*out.accelerators);
  }
  if (out.findings[0].limit == OutsideLimit::kProducers && out.flavour == OutsideFlavour::kTorch) {
    return "both sides wait for each other, as they do for a batch that is due while others are "
           "ready: 'headrace profile -- COMMAND' with its import hook tells";
  }
  if (const std::string who = WorkInTurn(out); !who.empty()) {
    return fmt::format(
        "{} and the trainer wait for each other, and hardly ever work at once: hand out work ahead "
        "of the result that is taken, and compare",
        who);
  }
  const std::optional<OwnTime> own = out.OwnTimes();
  const bool of_thread = out.findings[0].limit == OutsideLimit::kOwnWork ||
                         out.findings[0].limit == OutsideLimit::kConsumer;
  if (own && of_thread && own->unknown > std::abs(own->loads - own->step)) {
    return fmt::format("what {} does, loading or training, only its author knows",
                       out.python->unknown_function);
  }
  if (out.findings[0].limit != OutsideLimit::kAlone) {
    return "record longer, or change one of the two alone and compare";
  }
  return out.flavour == OutsideFlavour::kTorch
             ? "headrace.wrap(loader) tells loading from training; num_workers > 0 would run them "
               "at once"
         : IsInPython(out)
             ? "headrace.wrap() around what gives the batches tells loading from training"
         : IsInJava(out)
             ? "a profiler of Java's functions (async-profiler) tells loading from computing"
             : "instrumenting the program (headrace/account.h) separates its parts";
}

}  // namespace headrace::analysis
