#include "analysis/run/interpreter_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "analysis/run/counter_sums.h"
#include "analysis/run/python_frames.h"
#include "analysis/run/ranks.h"
#include "analysis/thresholds.h"
#include "base/terminal_text.h"

namespace headrace::analysis {
namespace {

// A compiler may call it take_gil.constprop.0.
bool TakesInterpreter(const std::string& folded) {
  return folded.find(";take_gil;") != std::string::npos ||
         folded.find(";take_gil.") != std::string::npos;
}

bool Has(const std::string& folded, const char* part) {
  return folded.find(part) != std::string::npos;
}

constexpr std::string_view kFirstThread = "MainThread";  // as Python calls it

// First threads that are in a consumer's step and in take_gil().
struct StepWaits {
  std::map<int64_t, double> seconds;  // by process
  int64_t samples_count = 0;
};

StepWaits WaitsOfSteps(const RunView& run) {
  StepWaits waits;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "off_cpu" || !TakesInterpreter(stack.folded) ||
        !Has(stack.folded, ";__libc_start")) {
      continue;
    }
    const bool is_step =
        std::any_of(run.operators.begin(), run.operators.end(), [&](const auto& op) {
          return op.kind == "consumer" && op.name == stack.operator_name && op.stage == stack.stage;
        });
    if (!is_step) continue;
    waits.seconds[stack.pid] += static_cast<double>(stack.time_ns) * 1e-9;
    waits.samples_count += stack.samples_count;
  }
  return waits;
}

// What stacks of a thread say that it does.
struct Work {
  int64_t samples_count = 0;
  std::map<std::string, int64_t> places_ns;
};

}  // namespace

std::optional<InterpreterWaits> WaitsForInterpreter(const RunView& run,
                                                    const std::vector<int64_t>& process_ids) {
  InterpreterWaits waits;
  double locks_s = 0, cut_s = 0;
  bool is_named = false;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "off_cpu" || !stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    if (Has(stack.folded, ";[lock];")) locks_s += seconds;
    if (Has(stack.folded, "[truncated]")) cut_s += seconds;
    if (!TakesInterpreter(stack.folded)) continue;
    is_named = true;
    // The C library starts a program in this function; other threads begin elsewhere.
    if (Has(stack.folded, ";__libc_start")) waits.seconds += seconds;
  }
  if (!is_named) return std::nullopt;
  waits.is_all = cut_s < kCutStacks * locks_s;
  return waits;
}

Real InterpreterShareOfStep(const RunView& run) {
  const StepWaits waits = WaitsOfSteps(run);
  double step_s = 0, cpu_s = 0;
  for (const OperatorRow& op : run.operators) {
    if (op.kind != "consumer") continue;
    step_s += Seconds(op.busy_ns);
    cpu_s += Seconds(op.on_cpu_ns);
  }
  if (step_s <= 0 || static_cast<double>(waits.samples_count) < kFewestSamples) return std::nullopt;
  double most_s = 0;
  for (const auto& [pid, of_rank_s] : waits.seconds) most_s = std::max(most_s, of_rank_s);
  const double ratio = std::min(1.0, most_s / (step_s / std::max(1, RanksOf(run))));
  return ratio > (1 - cpu_s / step_s) / 2 ? Real(ratio) : std::nullopt;
}

Real InterpreterShareOfPools(const RunView& run) {
  double waits_ns = 0, lifetime_ns = 0;
  int64_t samples_count = 0;
  for (const StageRow& stage : run.stages) {
    const auto calls = [&](const OperatorRow& op) {
      return op.kind == kThreadCall && op.stage == stage.name;
    };
    if (std::none_of(run.operators.begin(), run.operators.end(), calls)) continue;
    lifetime_ns += static_cast<double>(stage.lifetime_ns);
    for (const StackRow& stack : run.stacks) {
      if (stack.kind != "off_cpu" || stack.stage != stage.name || !TakesInterpreter(stack.folded)) {
        continue;
      }
      waits_ns += static_cast<double>(stack.time_ns);
      samples_count += stack.samples_count;
    }
  }
  if (lifetime_ns <= 0 || static_cast<double>(samples_count) < kFewestSamples) return std::nullopt;
  return std::min(1.0, waits_ns / lifetime_ns);
}

std::string OtherPythonThread(const RunView& run) {
  const StepWaits waits = WaitsOfSteps(run);
  std::map<std::string, Work> threads;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python" || stack.thread == kFirstThread ||
        !waits.seconds.contains(stack.pid)) {
      continue;
    }
    const std::vector<PythonFrame> frames = FramesOf(stack.folded);
    if (frames.empty() || frames.back().sleeps || frames.back().locks || Waits(frames) ||
        IsIdle(frames) || ReceivesBytes(frames)) {
      continue;
    }
    Work& work = threads[OwnName(stack.thread)];
    work.samples_count += stack.samples_count;
    const PythonFrame* own = InnermostOwn(frames, 0);
    work.places_ns[(own != nullptr ? *own : frames.back()).Name()] += stack.time_ns;
  }
  const auto most = std::max_element(
      threads.begin(), threads.end(),
      [](const auto& a, const auto& b) { return a.second.samples_count < b.second.samples_count; });
  if (most == threads.end() || static_cast<double>(most->second.samples_count) < kFewestSamples) {
    return "";
  }
  const auto& places = most->second.places_ns;
  const auto place =
      std::max_element(places.begin(), places.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return fmt::format("thread {}, in {}", Printable(most->first, 40), place->first);
}

}  // namespace headrace::analysis
