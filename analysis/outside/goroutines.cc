#include "analysis/outside/goroutines.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace headrace::analysis {
namespace {

// The function that a goroutine began with, "runtime.main" for the main one; empty: no goroutine's
// stack. Calls with arguments begin in a wrapper of the compiler's, "main.main.gowrap1".
std::string_view EntryOf(std::string_view folded) {
  constexpr std::string_view kRoot = ";runtime.goexit";
  const size_t root = folded.find(kRoot);
  if (root == std::string_view::npos) return {};
  std::string_view entry;
  for (size_t begin = folded.find(';', root + 1); begin != std::string_view::npos;) {
    const size_t end = folded.find(';', begin + 1);
    entry = folded.substr(begin + 1, end == std::string_view::npos ? end : end - begin - 1);
    if (entry.find(".gowrap") == std::string_view::npos) break;
    begin = end;
  }
  return entry;
}

}  // namespace

std::optional<Goroutines> LookAtGoroutines(const RunView& run,
                                           const std::vector<int64_t>& process_ids) {
  std::map<std::string_view, double> seconds;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "cpu" || !stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    const std::string_view entry = EntryOf(stack.folded);
    if (!entry.empty()) seconds[entry] += static_cast<double>(stack.time_ns) * 1e-9;
  }
  if (seconds.empty() || run.run.duration_ns <= 0) return std::nullopt;
  const double lasted_s = static_cast<double>(run.run.duration_ns) * 1e-9;
  Goroutines seen;
  for (const auto& [entry, used_s] : seconds) {
    if (entry == "runtime.main") {
      seen.main_cores = used_s / lasted_s;
    } else if (!entry.starts_with("runtime.") && used_s / lasted_s > seen.busiest_cores) {
      seen.busiest_cores = used_s / lasted_s;
      seen.busiest = entry;
    }
  }
  return seen;
}

}  // namespace headrace::analysis
