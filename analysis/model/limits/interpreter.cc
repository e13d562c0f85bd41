// Python's interpreter: the threads of a process run its code in turn, whatever cores are free
// (docs.python.org, glossary: global interpreter lock).
//
// It is seen by three things together: threads of a pool and the trainer in one process use just
// about one core between them; more than one of them computes; and they wait as CPython's threads
// wait for that lock, with a time limit (Python/ceval_gil.c: five milliseconds), or are seen in the
// function that does. Where the pool's threads give it back sooner, the trainer's step shows it: it
// waits for other threads most of its time, and nobody else computes.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/model/limits/resource_limit.h"
#include "analysis/model/python_threads.h"
#include "analysis/run/counter_sums.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr std::string_view kInterpreterLimit = "interpreter";

// How many cores all threads of the program used in the second half of the run, behind its start.
std::optional<double> CoresLater(const RunView& run) {
  const std::vector<HostPointRow>& points = run.process_cpu;
  if (points.size() < 3) return std::nullopt;
  const HostPointRow &middle = points[points.size() / 2], &last = points.back();
  if (last.at_ns <= middle.at_ns) return std::nullopt;
  return (last.value - middle.value) / static_cast<double>(last.at_ns - middle.at_ns);
}

// Whether the trainer's step waits for other threads most of its time, while all that computes is
// about one core's worth: what it waits for is not threads of its own.
bool StepWaitsForThreads(const RunView& run) {
  double step_ns = 0, locked_ns = 0;
  for (const OperatorRow& op : run.operators) {
    if (op.kind != "consumer") continue;
    step_ns += static_cast<double>(op.busy_ns);
    locked_ns += OffCpuNs(run, op, "lock");
  }
  const std::optional<double> cores = CoresLater(run);
  return step_ns > 0 && locked_ns >= kStepWaits * step_ns && cores && *cores <= 2 - kOneCore;
}

void AddInterpreter(const RunView& run, std::vector<ResourceModel>* resources) {
  const double steps = Steps(run.steps);
  // Threads of a pool live as long as batches are taken, not from the program's start.
  const auto duration_ns =
      static_cast<double>(run.steps.wall_ns > 0 ? std::min(run.steps.wall_ns, run.run.duration_ns)
                                                : run.run.duration_ns);
  if (steps <= 0 || duration_ns <= 0) return;
  ResourceModel interpreter{"Python's interpreter", std::string(kInterpreterLimit), 1, {}};
  // One that is ready but has no core may hold it, as one on a core does.
  double cpu_ns = 0, ready_ns = 0, lifetime_ns = 0, timed_ns = 0, threads_count = 0;
  for (const StageRow& stage : run.stages) {
    bool threads = false, trainer = false;
    for (size_t i = 0; i < run.operators.size(); ++i) {
      const OperatorRow& op = run.operators[i];
      if (op.stage != stage.name) continue;
      trainer = trainer || op.kind == "consumer";
      if (op.kind != kThreadCall) continue;
      threads = true;
      timed_ns += OffCpuNs(run, op, "sleep");
      interpreter.users.emplace_back(i, static_cast<double>(op.busy_ns));
    }
    if (!threads && !trainer) continue;
    cpu_ns += static_cast<double>(stage.on_cpu_ns.value_or(0));
    ready_ns += static_cast<double>(stage.runnable_ns.value_or(0));
    if (!threads) continue;
    lifetime_ns += static_cast<double>(stage.lifetime_ns);
    threads_count += static_cast<double>(stage.last_parallelism_count);
  }
  timed_ns = std::max(timed_ns, run.pools_interpreter_ratio.value_or(0) * lifetime_ns);
  if (interpreter.users.empty() || lifetime_ns < kMoreThanOneThread * duration_ns ||
      cpu_ns + ready_ns < kOneCore * duration_ns || cpu_ns > (2 - kOneCore) * duration_ns ||
      (timed_ns < kComputes * lifetime_ns && !StepWaitsForThreads(run))) {
    return;
  }
  // What its threads wait for each other is no demand of theirs.
  std::sort(interpreter.users.begin(), interpreter.users.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  const OperatorRow& first = run.operators[interpreter.users[0].first];
  const double blocked_ns = static_cast<double>(first.blocked_ns.value_or(first.busy_ns));
  interpreter.enough_threads =
      threads_count *
      (1 - std::min(1.0, OffCpuNs(run, first, "sleep") / std::max(1.0, blocked_ns)));
  double busy_ns = 0;
  for (const auto& [index, user_ns] : interpreter.users) busy_ns += user_ns;
  for (auto& [index, share] : interpreter.users) share /= std::max(1.0, busy_ns);
  interpreter.counted_s = std::min(cpu_ns + ready_ns, duration_ns) * 1e-9 / steps;
  resources->push_back(std::move(interpreter));
}

class Interpreter final : public ResourceLimit {
 public:
  Interpreter() : ResourceLimit(kInterpreterLimit, 46, kInterpreterLimit) {}

  bool simulated() const override { return false; }
  std::string Describe(const Limit& /*limit*/) const override {
    return "the lock of Python's interpreter (GIL)";
  }
  std::string SizedName(const PipelineModel& /*model*/, const Limit& limit) const override {
    return Describe(limit);
  }
  std::string Because(const PipelineModel& /*model*/, const Limit& limit,
                      double /*used_ratio*/) const override {
    return fmt::format(
        "threads of one Python process run in turn and use one core together: {} at most",
        FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& /*model*/, const Limit& /*limit*/,
                             const std::string& culprit) const override {
    return fmt::format(
        "More threads only wait for each other. Run {} in processes instead of threads "
        "(ProcessPoolExecutor, multiprocessing.Pool).",
        culprit.empty() ? "the work" : culprit);
  }
  std::string WhyUnlimited(const PipelineModel& /*model*/) const override {
    return "no threads of Python were seen to run in turn";
  }
  double prediction_error() const override { return kInterpreterError; }
};

HR_COUNTED_RESOURCES("interpreter", AddInterpreter);
HR_LIMIT(Interpreter);

}  // namespace

}  // namespace headrace::analysis
