#include "analysis/outside/goroutines.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

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

bool IsOfRunTime(std::string_view function) {
  constexpr std::string_view kParts[] = {"runtime.", "internal/", "syscall.", "["};
  return function.empty() || function.ends_with("_[k]") ||
         std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return function.starts_with(part); });
}

// Of stacks below a goroutine's first function: the innermost one of theirs with half of `whole_s`.
std::string PlaceIn(const std::vector<std::pair<std::string_view, double>>& stacks,
                    double whole_s) {
  std::string place;
  std::string_view path;  // of the functions up to the place, in each stack that has it
  for (;;) {
    std::map<std::string_view, double> longer;
    for (const auto& [below, seconds] : stacks) {
      if (!below.starts_with(path) || below.size() <= path.size()) continue;
      if (!path.empty() && below[path.size()] != ';') continue;
      const size_t end = below.find(';', path.empty() ? 0 : path.size() + 1);
      longer[below.substr(0, std::min(end, below.size()))] += seconds;
    }
    const auto most =
        std::max_element(longer.begin(), longer.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == longer.end() || most->first.size() <= path.size()) return place;
    if (2 * most->second < whole_s) return place;
    path = most->first;
    const std::string_view function = path.substr(path.rfind(';') + 1);
    if (!IsOfRunTime(function)) place = function;
  }
}

}  // namespace

std::optional<Goroutines> LookAtGoroutines(const RunView& run,
                                           const std::vector<int64_t>& process_ids) {
  std::map<std::string_view, double> seconds;
  std::map<std::string_view, std::vector<std::pair<std::string_view, double>>> below;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "cpu" || !stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    const std::string_view entry = EntryOf(stack.folded);
    if (entry.empty()) continue;
    const double stack_s = static_cast<double>(stack.time_ns) * 1e-9;
    seconds[entry] += stack_s;
    // EntryOf() gives a part of the same text.
    const size_t end = static_cast<size_t>(entry.data() - stack.folded.data()) + entry.size();
    const std::string_view whole = stack.folded;
    if (end < whole.size()) below[entry].emplace_back(whole.substr(end + 1), stack_s);
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
  const auto of_busiest = below.find(seen.busiest);
  if (of_busiest != below.end()) {
    seen.place = PlaceIn(of_busiest->second, seen.busiest_cores * lasted_s);
  }
  return seen;
}

}  // namespace headrace::analysis
