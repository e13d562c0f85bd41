#include "analysis/outside/python_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/thresholds.h"

namespace headrace::analysis {

void PythonLines::Add(const PythonFrame* frame, double seconds) {
  seconds_ += seconds;
  if (frame == nullptr) return;
  Function& function = functions_[{std::string(frame->file), std::string(frame->function)}];
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
