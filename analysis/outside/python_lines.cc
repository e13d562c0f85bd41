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

}  // namespace

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
