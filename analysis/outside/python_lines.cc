#include "analysis/outside/python_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "analysis/thresholds.h"

namespace headrace::analysis {

namespace {

// "features" of "features.<locals>.<listcomp>": to its author that is a line of the function.
std::string WithoutComprehensions(std::string function) {
  constexpr std::string_view kComprehensions[] = {".<locals>.<listcomp>", ".<locals>.<genexpr>",
                                                  ".<locals>.<dictcomp>", ".<locals>.<setcomp>"};
  while (true) {
    const auto* const is =
        std::find_if(std::begin(kComprehensions), std::end(kComprehensions),
                     [&](std::string_view ending) { return function.ends_with(ending); });
    if (is == std::end(kComprehensions)) return function;
    function.resize(function.size() - is->size());
  }
}

double SecondsOf(const std::vector<WeighedStack>& stacks) {
  double seconds = 0;
  for (const WeighedStack& stack : stacks) seconds += stack.seconds;
  return seconds;
}

// "_call_callback_hooks", "Module._wrapped_call_impl", "decorate.<locals>.inner".
bool OnlyCalls(std::string_view function) {
  const std::string_view name = function.substr(function.rfind('.') + 1);
  return name.starts_with("_call") || name.starts_with("_wrapped") || name == "__call__" ||
         function.find("<locals>") != std::string_view::npos;
}

// Those of the stacks that have the function that most of them have at that depth.
std::vector<WeighedStack> MostAt(const std::vector<WeighedStack>& stacks, size_t depth) {
  std::map<std::pair<std::string_view, std::string_view>, std::vector<WeighedStack>> functions;
  for (const WeighedStack& stack : stacks) {
    if (depth >= stack.frames->size()) continue;
    const PythonFrame& frame = (*stack.frames)[depth];
    functions[{frame.file, frame.function}].push_back(stack);
  }
  const auto most = std::max_element(
      functions.begin(), functions.end(),
      [](const auto& a, const auto& b) { return SecondsOf(a.second) < SecondsOf(b.second); });
  return most == functions.end() ? std::vector<WeighedStack>() : most->second;
}

}  // namespace

std::optional<PythonPlace> DeepestOfMost(std::vector<WeighedStack> stacks, size_t first,
                                         double all_s) {
  std::optional<PythonPlace> place;
  for (size_t depth = first;; ++depth) {
    stacks = MostAt(stacks, depth);
    const double seconds = SecondsOf(stacks);
    if (stacks.empty() || seconds < kPlaceIsFunction * all_s) return place;
    if (OnlyCalls((*stacks[0].frames)[depth].function)) continue;
    PythonLines lines;
    for (const WeighedStack& stack : stacks) lines.Add(&(*stack.frames)[depth], stack.seconds);
    lines.Add(nullptr, std::max(0.0, all_s - seconds));
    place = lines.Busiest();
  }
}

void PythonLines::Add(const PythonFrame* frame, double seconds) {
  seconds_ += seconds;
  if (frame == nullptr) return;
  Function& function =
      functions_[{std::string(frame->file), WithoutComprehensions(std::string(frame->function))}];
  function.seconds += seconds;
  function.lines[frame->line] += seconds;
}

std::optional<PythonPlace> PythonLines::Busiest() const {
  if (functions_.empty() || seconds_ < kPlaceLeastSeconds) return std::nullopt;
  const auto by_seconds = [](const auto& a, const auto& b) {
    return a.second.seconds < b.second.seconds;
  };
  const auto& [key, function] = *std::max_element(functions_.begin(), functions_.end(), by_seconds);
  const auto line =
      std::max_element(function.lines.begin(), function.lines.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  PythonFrame frame;
  frame.file = key.first;
  frame.function = key.second;
  if (line->second >= kPlaceIsLine * seconds_) {
    frame.line = line->first;
    return PythonPlace{frame.Name(), line->second / seconds_};
  }
  if (function.seconds < kPlaceIsFunction * seconds_) return std::nullopt;
  return PythonPlace{fmt::format("{} ({})", key.second, key.first), function.seconds / seconds_};
}

}  // namespace headrace::analysis
