// Python's interpreter: the threads of a process run its code in turn, whatever cores are free
// (docs.python.org, glossary: global interpreter lock).
//
// It is seen by three things together: threads of a pool and the trainer in one process use just
// about one core between them; more than one of them computes; and they wait as CPython's threads
// wait for that lock, with a time limit (Python/ceval_gil.c: five milliseconds). Where the pool's
// threads give it back sooner, the trainer's step shows it: it waits for other threads most of its
// time, and nobody else computes. And where stacks off the CPU name CPython's function that waits
// for it, the trainer's own thread shows it, whoever has the lock.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/model/limits/resource_limit.h"
#include "analysis/model/python_threads.h"
#include "analysis/run/counter_sums.h"
#include "analysis/run/interpreter_waits.h"
#include "analysis/run/ranks.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

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

// The share of the trainer's step that its thread waits for the lock.
double ShareOfStep(const RunView& run) {
  double step_s = 0, waits_s = 0;
  for (const OperatorRow& op : run.operators) {
    if (op.kind != "consumer") continue;
    step_s += Seconds(op.busy_ns);
    waits_s += InterpreterSecondsIn(run, op);
  }
  return step_s > 0 ? std::min(1.0, waits_s / step_s) : 0;
}

// A stage that has no threads is at work on the thread that asks for batches.
bool IsOnConsumer(const RunView& run, const OperatorRow& op) {
  return std::any_of(run.stages.begin(), run.stages.end(), [&](const StageRow& stage) {
    return stage.name == op.stage && stage.lifetime_ns == 0;
  });
}

// The trainer's own thread waits for it in its step, by the function that CPython waits for it in:
// another thread of its process runs Python, whatever it does. It gets no more batches by waiting
// less for data.
void AddWaitsOfTrainer(const RunView& run, std::vector<ResourceModel>* resources) {
  const double steps = Steps(run.steps);
  double loads_ns = 0;
  std::vector<std::pair<size_t, double>> users;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    const OperatorRow& op = run.operators[i];
    const double op_s = InterpreterSecondsIn(run, op);
    if (op_s <= 0) continue;
    if (op.kind != "consumer" && IsOnConsumer(run, op)) loads_ns += static_cast<double>(op.busy_ns);
    users.emplace_back(i, op_s);
  }
  if (steps <= 0 || ShareOfStep(run) < kWaitsForInterpreter) return;
  double all_s = 0;
  for (const auto& [index, user_s] : users) all_s += user_s;
  for (auto& [index, share] : users) share /= all_s;
  ResourceModel interpreter{"Python's interpreter", std::string(kInterpreterLimit), 1, {}};
  interpreter.servers = std::max(1, RanksOf(run));
  interpreter.users = std::move(users);
  // One of these operators may hold others.
  loads_ns = std::min(loads_ns, static_cast<double>(run.steps.wait_ns));
  interpreter.counted_s = (static_cast<double>(run.steps.compute_ns) + loads_ns) * 1e-9 / steps;
  resources->push_back(std::move(interpreter));
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
  if (interpreter.users.empty() || lifetime_ns < kMoreThanOneThread * duration_ns ||
      cpu_ns + ready_ns < kOneCore * duration_ns || cpu_ns > (2 - kOneCore) * duration_ns ||
      (timed_ns < kComputes * lifetime_ns && !StepWaitsForThreads(run))) {
    AddWaitsOfTrainer(run, resources);
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
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    if (HoldsTrainer(model, limit)) {
      return fmt::format(
          "the trainer's thread waits {} of its step for it, as another thread of its process runs "
          "Python: {} at most",
          FormatPercent(ShareOfStep(model.run())), FormatRate(limit.bound, "batches"));
    }
    return fmt::format(
        "threads of one Python process run in turn and use one core together: {} at most",
        FormatRate(limit.bound, "batches"));
  }
  std::string WithoutSetting(const PipelineModel& model, const Limit& limit,
                             const std::string& culprit) const override {
    if (HoldsTrainer(model, limit)) {
      const std::string other = OtherPythonThread(model.run());
      return fmt::format(
          "Run {} in a process of its own, or let it rest between turns.",
          other.empty() ? "what other threads of the trainer's process compute" : other);
    }
    return fmt::format(
        "More threads only wait for each other. Run {} in processes instead of threads "
        "(ProcessPoolExecutor, multiprocessing.Pool).",
        culprit.empty() ? "the work" : culprit);
  }
  std::string WhyUnlimited(const PipelineModel& /*model*/) const override {
    return "no threads of Python were seen to run in turn";
  }
  // Such a step costs the trainer little; nor does its thread load for so long.
  bool Explains(const PipelineModel& model, const Demands& demands, const Limit& limit,
                const Limit& other) const override {
    if (HoldsTrainer(model, limit) && (other.Is(kConsumerLimit) || other.Is(kThreadLimit)))
      return limit.bound < kExplainsStage * other.bound;
    return ResourceLimit::Explains(model, demands, limit, other);
  }
  double prediction_error() const override { return kInterpreterError; }

 private:
  static bool HoldsTrainer(const PipelineModel& model, const Limit& limit) {
    const auto& users = model.resources()[limit.index].users;
    return std::any_of(users.begin(), users.end(), [&](const auto& user) {
      return model.run().operators[user.first].kind == "consumer";
    });
  }
};

HR_COUNTED_RESOURCES("interpreter", AddInterpreter);
HR_LIMIT(Interpreter);

}  // namespace

}  // namespace headrace::analysis
