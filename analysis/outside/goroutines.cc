#include "analysis/outside/goroutines.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "analysis/thresholds.h"

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

struct Place {
  std::string innermost, of_program;  // the latter: of its own main package
};

// Of stacks below a goroutine's first function: the innermost ones of theirs with half of
// `whole_s`.
Place PlaceIn(const std::vector<std::pair<std::string_view, double>>& stacks, double whole_s) {
  Place place;
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
    if (!IsOfRunTime(function)) place.innermost = function;
    if (function.starts_with("main.")) place.of_program = function;
  }
}

// Stacks of goroutines, by the function that they began with: what is below it, and for how long.
class ByEntry {
 public:
  void Add(std::string_view folded, double seconds) {
    const std::string_view entry = EntryOf(folded);
    if (entry.empty()) return;
    Stacks& stacks = stacks_[entry];
    stacks.seconds += seconds;
    // EntryOf() gives a part of the same text.
    const size_t end = static_cast<size_t>(entry.data() - folded.data()) + entry.size();
    if (end < folded.size()) stacks.below.emplace_back(folded.substr(end + 1), seconds);
  }
  // The entry with most time of those that `counts` accepts; empty: there is none.
  template <class Counts>
  std::string_view Most(Counts counts) const {
    std::string_view most;
    for (const auto& [entry, stacks] : stacks_) {
      if (counts(entry) && stacks.seconds > Seconds(most)) most = entry;
    }
    return most;
  }
  double Seconds(std::string_view entry) const {
    const auto found = stacks_.find(entry);
    return found == stacks_.end() ? 0 : found->second.seconds;
  }
  Place PlaceOf(std::string_view entry) const {
    const auto found = stacks_.find(entry);
    return found == stacks_.end() ? Place() : PlaceIn(found->second.below, found->second.seconds);
  }
  bool empty() const { return stacks_.empty(); }

 private:
  struct Stacks {
    double seconds = 0;
    std::vector<std::pair<std::string_view, double>> below;
  };
  std::map<std::string_view, Stacks> stacks_;
};

constexpr std::string_view kMain = "runtime.main";

bool IsOfProgram(std::string_view entry) {
  return entry == kMain || !entry.starts_with("runtime.");
}

}  // namespace

bool Goroutines::WaitsForStorage() const {
  const double others =
      std::max(storage.is_main ? 0 : main_cores, busiest == storage.entry ? 0 : busiest_cores);
  const bool is_busy = storage.is_main || storage.goroutines + storage.cores >= kWorksAllTheTime;
  return is_busy && storage.goroutines >= kThreadsAtOneThing &&
         storage.goroutines <= 2 - kWorksAllTheTime && others < storage.goroutines / 2;
}

std::optional<Goroutines> LookAtGoroutines(const RunView& run,
                                           const std::vector<int64_t>& process_ids) {
  ByEntry computes, stores;
  for (const StackRow& stack : run.stacks) {
    if (!stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    if (stack.kind == "cpu") computes.Add(stack.folded, seconds);
    if (stack.kind == "off_cpu" && stack.folded.find(";[storage];") != std::string::npos) {
      stores.Add(stack.folded, seconds);
    }
  }
  if (computes.empty() || run.run.duration_ns <= 0) return std::nullopt;
  const double lasted_s = static_cast<double>(run.run.duration_ns) * 1e-9;
  Goroutines seen;
  seen.main_cores = computes.Seconds(kMain) / lasted_s;
  seen.busiest =
      computes.Most([](std::string_view entry) { return entry != kMain && IsOfProgram(entry); });
  seen.busiest_cores = computes.Seconds(seen.busiest) / lasted_s;
  seen.place = computes.PlaceOf(seen.busiest).innermost;
  const std::string_view waits = stores.Most(IsOfProgram);
  const Place place = stores.PlaceOf(waits);
  const bool is_in_library = !place.of_program.empty() && place.of_program != place.innermost;
  seen.storage = {stores.Seconds(waits) / lasted_s, std::string(waits), waits == kMain,
                  computes.Seconds(waits) / lasted_s,
                  (is_in_library ? place.of_program + ", " : "") + place.innermost};
  return seen;
}

}  // namespace headrace::analysis
