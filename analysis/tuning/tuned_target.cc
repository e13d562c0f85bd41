#include "analysis/tuning/tuned_target.h"

#include <fmt/format.h>

namespace headrace::analysis {

std::string Describe(const std::vector<Change>& changes) {
  std::string words;
  for (const Change& change : changes) {
    words += fmt::format("{}{} {} -> {}", words.empty() ? "" : ", ", change.knob, change.from,
                         change.to);
  }
  return words;
}

const char* TuneActionName(TuneAction action) {
  constexpr const char* kNames[] = {"apply",      "verify", "revert", "hold",
                                    "scale_down", "replan", "stop",   "cache"};
  return kNames[static_cast<int>(action)];
}

const char* TuneVerdictName(TuneVerdict verdict) {
  constexpr const char* kNames[] = {"", "kept", "reverted", "failed", "superseded"};
  return kNames[static_cast<int>(verdict)];
}

}  // namespace headrace::analysis
