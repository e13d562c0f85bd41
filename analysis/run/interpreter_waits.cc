#include "analysis/run/interpreter_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/run/python_frames.h"
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

double InterpreterSecondsIn(const RunView& run, const OperatorRow& op) {
  double seconds = 0;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind == "off_cpu" && stack.operator_name == op.name && stack.stage == op.stage &&
        TakesInterpreter(stack.folded)) {
      seconds += static_cast<double>(stack.time_ns) * 1e-9;
    }
  }
  return seconds;
}

std::string OtherPythonThread(const RunView& run) {
  std::set<int64_t> pids;  // of the consumers
  for (const StackRow& stack : run.stacks) {
    const bool is_step =
        std::any_of(run.operators.begin(), run.operators.end(), [&](const auto& op) {
          return op.kind == "consumer" && op.name == stack.operator_name && op.stage == stack.stage;
        });
    if (is_step) pids.insert(stack.pid);
  }
  std::map<std::string, int64_t> work_ns;                          // by thread
  std::map<std::string, std::map<std::string, int64_t>> place_ns;  // by thread and frame
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python" || stack.thread == kFirstThread || !pids.contains(stack.pid))
      continue;
    const std::vector<PythonFrame> frames = FramesOf(stack.folded);
    if (frames.empty() || Waits(frames) || IsIdle(frames) || ReceivesBytes(frames)) continue;
    const PythonFrame* own = InnermostOwn(frames, 0);
    work_ns[stack.thread] += stack.time_ns;
    place_ns[stack.thread][(own != nullptr ? *own : frames.back()).Name()] += stack.time_ns;
  }
  if (work_ns.empty()) return "";
  const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto thread = std::max_element(work_ns.begin(), work_ns.end(), by_time);
  const auto& places = place_ns[thread->first];
  return fmt::format("thread {}, in {}", Printable(thread->first, 40),
                     std::max_element(places.begin(), places.end(), by_time)->first);
}

}  // namespace headrace::analysis
