#include "analysis/advice/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "analysis/advice/second_view.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/outside/trainers_time.h"
#include "analysis/run/counter_sums.h"
#include "analysis/run/run_slice.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// Where each of three opinions is another, none is to be acted on.
void Doubt(const Differential& differential, Bottleneck* bottleneck) {
  if (differential.disagreement.empty() || bottleneck->disagreement.empty()) return;
  if (!differential.against_witness) return;
  bottleneck->verdict = Verdict::kUndecided;
  bottleneck->unexplained = true;
  bottleneck->measure =
      "the costs, the waits and queues, and the runs with and without input each point "
      "elsewhere: record all of them again, longer and with less other load on the machine";
}

// The model puts all ranks together, so that it knows no cause of one that is slower. It is not to
// be asked which setting of all of them would help.
void Doubt(const SlowRank& slow, Bottleneck* bottleneck) {
  bottleneck->verdict = Verdict::kUndecided;
  bottleneck->unexplained = true;
  bottleneck->measure = fmt::format(
      "{}: in the next run, record that one alone (headrace profile -p PID)", Words(slow));
}

// Steps may be started ahead of a busy device, so that the trainer's thread waits for data although
// more of it would not help. Where it is not known who uses the device, it may be busy for others.
void Doubt(const Accelerators& accelerators, Bottleneck* bottleneck) {
  Finding& first = bottleneck->findings[0];
  if (bottleneck->verdict == Verdict::kUndecided) return;
  const bool of_others = first.limit.Is(kAcceleratorLimit) && !accelerators.MostGain();
  if (!of_others && (!accelerators.Contradict() || first.limit.kind->AtConsumer())) return;
  first.probability = std::min(first.probability, kDeviceDisagrees);
  if (first.probability >= kSureOfRow) return;
  bottleneck->verdict = Verdict::kUndecided;
  bottleneck->unexplained = true;
  bottleneck->measure = MeasureOfDevices(accelerators);
}

// Of accounts that miss what limits.
std::string HowToSeeMore(const RunView& run) {
  return run.run.pipeline_path.empty()
             ? "see it from outside (headrace profile --no-hook), or add operators to what computes"
             : "add operators to what computes";
}

// Two views of one program: what they disagree on is not sure.
void Doubt(const SecondView& view, Bottleneck* bottleneck) {
  Finding& first = bottleneck->findings[0];
  first.probability = std::min(first.probability, view.at_most);
  if (bottleneck->disagreement.empty()) bottleneck->disagreement = view.disagreement;
}

// A step that mostly waits for other threads of the program, none of which computes as much, is no
// limit: what it waits for is in no operator. A loader that is not instrumented may be, or
// Python's interpreter.
void DoubtStep(const PipelineModel& model, Bottleneck* bottleneck) {
  if (bottleneck->verdict != Verdict::kConsumer) return;
  if (!bottleneck->findings[0].limit.Is(kConsumerLimit)) return;
  double step_ns = 0, cpu_ns = 0, locked_ns = 0;
  for (const OperatorRow& op : model.run().operators) {
    if (op.kind != "consumer") continue;
    step_ns += static_cast<double>(op.busy_ns);
    cpu_ns += static_cast<double>(op.on_cpu_ns.value_or(op.busy_ns));
    locked_ns += OffCpuNs(model.run(), op, "lock");
  }
  const Demands& demands = model.demands();
  // What is in no operator may be threads that compute for it.
  const bool computes = demands.unattributed_cpu_s > kStepComputes * demands.consumer_s;
  if (computes || step_ns <= 0 || locked_ns < kStepWaits * step_ns) return;
  bottleneck->verdict = Verdict::kUndecided;
  bottleneck->unexplained = true;
  bottleneck->unseen = fmt::format(
      "the trainer's step waits {:.0f} % of its time for other threads and computes {:.0f} %: what "
      "it waits for is in no operator",
      100 * locked_ns / step_ns, 100 * cpu_ns / step_ns);
  bottleneck->measure = bottleneck->unseen + "; " + HowToSeeMore(model.run());
}

// Most of the computing, which is said to limit, was in nothing that is accounted for, while the
// accounts allow more than was measured: they are of a loader that does the work elsewhere.
void DoubtAccounts(const PipelineModel& model, Bottleneck* bottleneck) {
  const Demands& demands = model.demands();
  const double seen_s = demands.cpu_s - demands.unattributed_cpu_s + demands.consumer_cpu_s;
  if (bottleneck->unexplained || !bottleneck->findings[0].limit.Is(kCoresLimit)) return;
  if (model.stall_ratio() < kSmallStall || demands.cpu_s <= 0) return;
  if (seen_s >= (1 - kMostIsUnseen) * demands.cpu_s) return;
  if (bottleneck->unexplained_ratio <= kLossWorthAWord) return;
  bottleneck->verdict = Verdict::kUndecided;
  bottleneck->unexplained = true;
  bottleneck->unseen =
      fmt::format("the instrumentation saw {:.0f} % of the CPU time, not what the loading does",
                  100 * seen_s / demands.cpu_s);
  bottleneck->measure = bottleneck->unseen + "; " + HowToSeeMore(model.run());
}

// Why a program's threads are asked where the accounts gave a verdict; empty: they are not.
std::string WhyTurnOutside(const Statements& statements) {
  const Bottleneck& bottleneck = *statements.bottleneck;
  if (!bottleneck.unseen.empty()) return bottleneck.unseen;
  if (statements.accelerators && statements.accelerators->Contradict()) return "";
  if (statements.slow_rank) {
    return "the instrumentation adds up all ranks, not what the slowest waits for";
  }
  if (bottleneck.verdict != Verdict::kUndecided || !bottleneck.unexplained) return "";
  return "what the instrumentation saw does not explain the rate";
}

// Whether threads' waits were timed to the end: a probe that was given up saw the start, mostly.
bool SawThreadsToTheEnd(const RunView& run) {
  const auto seen = run.course_seen_ns.find("on_cpu_ns");
  return seen != run.course_seen_ns.end() &&
         static_cast<double>(seen->second) >=
             kSeenToTheEnd * static_cast<double>(run.run.duration_ns);
}

// What the threads of the slowest rank show, and those of its own processes.
Outside LookAtSlowRank(const RunView& run, const SlowRank& slow) {
  std::vector<int64_t> pids;
  for (const Rank& rank : Ranks(run)) pids.push_back(rank.pid);
  RankSeen seen;
  seen.ranks = slow.ranks;
  seen.pid = slow.rank.pid;
  seen.is_slowest = true;
  seen.by_accounts = fmt::format(
      "For batches pid {} {}: all take equally many, so the others wait for it within their steps.",
      slow.rank.pid, WaitWords(slow));
  return LookAtRank(run, pids, seen);
}

// Of a program of its own, what its threads show where its instrumentation does not tell: it saw
// part of what was done, or only the beginning.
void TurnOutside(const RunView& run, Statements* statements) {
  const bool has_model = statements->bottleneck.has_value();
  if (!run.run.pipeline_path.empty() || run.operators.empty()) return;
  const std::string why = has_model ? WhyTurnOutside(*statements) : "";
  if (has_model && why.empty()) return;
  const std::optional<SlowRank>& slow = statements->slow_rank;
  const bool explains = has_model && statements->bottleneck->unseen.empty() && !slow;
  if ((explains || slow) && !SawThreadsToTheEnd(run)) return;
  Outside seen = slow ? LookAtSlowRank(run, *slow) : LookFromOutside(run);
  // An undecided verdict is no better than another.
  if (!seen.withheld.empty() || (has_model && !seen.decided)) return;
  if (slow) {  // the same waits, or as much loading in its own thread
    const double waits = std::max(seen.stall_ratio, seen.InLoader().value_or(0));
    if (std::abs(waits - slow->rank.wait_ratio()) > kHighStall) return;
  }
  // What two views disagree on is not sure.
  if (explains) {
    // Else it is not the same thread that both call the trainer.
    if (std::abs(seen.stall_ratio - statements->model->stall_ratio()) > kHighStall) return;
    double& probability = seen.findings[0].probability;
    probability = std::min(probability, kViewsDisagree);
  }
  if (has_model) statements->withheld = why;
  statements->outside = std::move(seen);
  statements->accelerators = statements->outside->accelerators;
  statements->bottleneck.reset();
  statements->differential.reset();
  statements->allocation.reset();
  statements->earlier.reset();
  statements->predictor.reset();
  statements->model.reset();
}

std::optional<PythonTime> TimeOfProcess(const RunView& run, int64_t pid) {
  for (const ProcessRow& process : run.processes) {
    if (process.pid != pid) continue;
    auto time = LookAtPython(run, {process.process_id}, false);
    if (time && time->samples_count >= kFewestSamples) return time;
  }
  return std::nullopt;
}

std::optional<PlannedRate> PlannedOf(const RunView& run, const PipelineModel* model) {
  if (!run.prediction || run.prediction->predicted <= 0) return std::nullopt;
  const Real observed = model != nullptr ? Real(model->demands().rate) : run.prediction->observed;
  if (!observed || *observed <= 0) return std::nullopt;
  return PlannedRate{run.prediction->predicted, run.prediction->low, run.prediction->high,
                     *observed};
}

// Whether a process that had been there for seconds ended between these times.
bool AnyEnds(const RunView& run, double from_ns, double to_ns) {
  constexpr double kLasting = 2e9;
  return std::any_of(run.processes.begin(), run.processes.end(), [&](const ProcessRow& process) {
    if (!process.ended_ns) return false;
    const auto ended_ns = static_cast<double>(*process.ended_ns);
    const bool lasted = ended_ns - static_cast<double>(process.started_ns) > kLasting;
    return lasted && ended_ns > from_ns && ended_ns < to_ns;
  });
}

// Whether the program only ends in the last `without_ns`, as one of Ray does that shuts its
// processes down: these end one after the other, and the trainers' threads hardly compute.
bool OnlyEnds(const RunView& run, double without_ns) {
  std::set<std::string> trainers;
  for (const OperatorRow& op : run.operators) {
    if (op.kind == "consumer") trainers.insert(op.stage);
  }
  const auto end_ns =
      static_cast<double>(run.windows.back().start_ns + run.windows.back().duration_ns);
  const double begin_ns = end_ns - without_ns;
  // At the very end all of them end, whatever went before.
  if (trainers.empty() || !AnyEnds(run, begin_ns, end_ns - 1e9)) return false;
  double cpu_ns = 0;
  for (const WindowRow& window : run.windows) {
    if (static_cast<double>(window.start_ns) < begin_ns) continue;
    for (size_t s = 0; s < std::min(run.stages.size(), window.stages.size()); ++s) {
      if (!trainers.contains(run.stages[s].name)) continue;
      if (!window.stages[s].on_cpu_ns) return false;
      cpu_ns += static_cast<double>(*window.stages[s].on_cpu_ns);
    }
  }
  return without_ns < kEndsWithinS * 1e9 && cpu_ns < kEndsBusy * without_ns;
}

// Of a program of its own that goes on without batches: what fed it before says little about it.
// Empty: it takes them until its end.
std::string StoppedTaking(const RunView& run) {
  if (!run.run.pipeline_path.empty()) return "";
  const auto takes = [](const WindowRow& window) { return window.steps.steps_count > 0; };
  const auto first = std::find_if(run.windows.begin(), run.windows.end(), takes);
  if (first == run.windows.end()) return "";
  const auto last = std::find_if(run.windows.rbegin(), run.windows.rend(), takes);
  const auto taking_ns = static_cast<double>(last->start_ns + last->duration_ns - first->start_ns);
  const WindowRow& end = run.windows.back();
  const auto whole_ns = static_cast<double>(end.start_ns + end.duration_ns - first->start_ns);
  const double without_ns = whole_ns - taking_ns;
  const double step_ns =
      taking_ns / static_cast<double>(std::max<int64_t>(1, run.steps.steps_count));
  if (without_ns < kTakesNoMore * whole_ns || without_ns < kManySteps * step_ns) return "";
  if (OnlyEnds(run, without_ns)) return "";
  return fmt::format("the trainer took no batch in the last {} of {}", FormatDuration(without_ns),
                     FormatDuration(static_cast<double>(run.run.duration_ns)));
}

std::optional<EarlierLimit> EarlierLimitOf(const RunView& run, const Phases& phases) {
  const Phase* part = nullptr;
  for (const Phase& phase : phases.phases) {
    const bool slower =
        phases.slower && phase.kind == phases.slower->kind && phase.kind != PhaseKind::kFirstSteps;
    if (slower || phase.kind == PhaseKind::kEarlier) part = &phase;
  }
  if (part == nullptr) return std::nullopt;
  std::vector<size_t> windows;
  for (size_t w = 0; w < run.windows.size(); ++w) {
    const WindowRow& window = run.windows[w];
    if (window.start_ns < part->start_ns) continue;
    if (window.start_ns + window.duration_ns <= part->end_ns) windows.push_back(w);
  }
  if (windows.empty()) return std::nullopt;
  const RunView slice = SliceOf(run, windows);
  try {
    const PipelineModel model(slice);
    const Bottleneck bottleneck = FindBottleneck(model);
    const Finding& first = bottleneck.findings[0];
    if (bottleneck.unexplained || first.probability < kSureOfRow) return std::nullopt;
    const double most = run.run.pipeline_path.empty() ? kMostOfOthersPrograms : 1;
    return EarlierLimit{part->kind, first.limit, std::min(first.probability, most)};
  } catch (const Error& error) {
    if (error.code() != ExitCode::kInconclusive) throw;
    return std::nullopt;
  }
}

std::optional<PythonPlace> OwnLoadingOf(const RunView& run, const Bottleneck& bottleneck) {
  if (!bottleneck.findings[0].limit.Is(kConsumerLimit)) return std::nullopt;
  const std::optional<BesideTraining> beside = BesideTrainingOf(run);
  return beside && beside->IsMostlyLoading() ? std::optional(beside->place) : std::nullopt;
}

}  // namespace

Statements MakeStatements(const RunView& run) {
  Statements statements;
  statements.doubts = FindDoubts(run);
  if (run.run.kind == "ceiling") {
    statements.withheld =
        "this run repeated one batch to measure the trainer without input; it says nothing of the "
        "pipeline by itself";
    return statements;
  }
  if (run.operators.empty()) {
    statements.outside = LookFromOutside(run);
    statements.accelerators = statements.outside->accelerators;
  }
  statements.withheld = StoppedTaking(run);
  if (!statements.withheld.empty()) {
    if (!statements.doubts.any()) TurnOutside(run, &statements);
    return statements;
  }
  try {
    statements.model = std::make_unique<PipelineModel>(run);
    statements.predictor = std::make_unique<Predictor>(*statements.model);
    statements.bottleneck = FindBottleneck(*statements.predictor);
    DoubtStep(*statements.model, &*statements.bottleneck);
    DoubtAccounts(*statements.model, &*statements.bottleneck);
    statements.differential = CompareSiblings(*statements.model, *statements.bottleneck);
    Doubt(*statements.differential, &*statements.bottleneck);
    statements.slow_rank = SlowestRank(Ranks(run));
    if (statements.slow_rank) Doubt(*statements.slow_rank, &*statements.bottleneck);
    statements.accelerators = AcceleratorsOf(run, statements.model->phases());
    if (statements.accelerators) Doubt(*statements.accelerators, &*statements.bottleneck);
    if (DevicesLimit(statements)) statements.accelerators->story = DeviceStory::kLimits;
    if (run.run.pipeline_path.empty() && !statements.bottleneck->unexplained) {
      Doubt(AskThreads(run, *statements.model, *statements.bottleneck), &*statements.bottleneck);
      statements.own_loading = OwnLoadingOf(run, *statements.bottleneck);
    }
    statements.allocation = Allocate(*statements.predictor, Budget{});
    statements.earlier = EarlierLimitOf(run, statements.model->phases());
  } catch (const Error& error) {
    if (error.code() != ExitCode::kInconclusive) throw;
    statements.withheld = error.fact();
  }
  if (!statements.doubts.any()) TurnOutside(run, &statements);
  if (statements.slow_rank) {
    statements.slow_rank_time = TimeOfProcess(run, statements.slow_rank->rank.pid);
  }
  statements.planned = PlannedOf(run, statements.model.get());
  return statements;
}

bool DevicesLimit(const Statements& statements) {
  return statements.bottleneck && statements.bottleneck->verdict == Verdict::kConsumer &&
         statements.bottleneck->findings[0].limit.Is(kAcceleratorLimit);
}

double JobStall(const Statements& statements) {
  double all = statements.model->stall_ratio();
  if (DevicesLimit(statements)) all = std::min(all, statements.accelerators->mean.idle_ratio);
  if (!statements.slow_rank) return all;
  return std::max(all, statements.slow_rank->rank.wait_ratio());
}

double LoadingRatio(const Statements& statements) {
  const double waits = JobStall(statements);
  return statements.own_loading ? waits + (1 - waits) * statements.own_loading->ratio : waits;
}

}  // namespace headrace::analysis
