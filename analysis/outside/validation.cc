#include "analysis/outside/validation.h"

#include <algorithm>
#include <cstddef>

#include "analysis/run/python_frames.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

bool IsKnown(const PythonFrame& frame) {
  return IsStep(frame) || IsLoader(frame) || HandsOver(frame);
}

// The outermost function that validates and leads to known ones; nullptr: none, or a loader's own.
const PythonFrame* ValidatorOf(const std::vector<PythonFrame>& frames) {
  const auto validator = std::find_if(frames.begin(), frames.end(), Validates);
  if (validator == frames.end() || std::any_of(frames.begin(), validator, IsLoader)) return nullptr;
  return std::any_of(validator + 1, frames.end(), IsKnown) ? &*validator : nullptr;
}

}  // namespace

std::optional<PythonPlace> FindValidation(const std::vector<WeighedStack>& stacks) {
  constexpr int64_t kTrainsAtAll = 3;  // samples
  PythonLines lines;
  double all_s = 0, validates_s = 0;
  int64_t validates_count = 0, trains_count = 0;
  // What the program's own functions show of it: layers, and batches that a loop goes over.
  bool computes = false, loads = false;
  for (const WeighedStack& stack : stacks) {
    const std::vector<PythonFrame>& frames = *stack.frames;
    // What is neither training nor loading may be set-up.
    if (std::none_of(frames.begin(), frames.end(), IsKnown)) continue;
    all_s += stack.seconds;
    const bool steps = std::any_of(frames.begin(), frames.end(), IsStep);
    if (const PythonFrame* validator = ValidatorOf(frames)) {
      lines.Add(validator, stack.seconds);
      validates_s += stack.seconds;
      validates_count += stack.samples_count;
      computes |= steps || !validator->is_own;
      loads |= !steps || validator->loop > 0 || !validator->is_own;
    } else if (steps) {
      trains_count += stack.samples_count;
    }
  }
  if (validates_count < kFewestSamples || trains_count < kTrainsAtAll) return std::nullopt;
  if (!computes || !loads || validates_s < kMostlyValidates * all_s) return std::nullopt;
  std::optional<PythonPlace> place = lines.Busiest();
  if (place) place->ratio = validates_s / all_s;
  return place;
}

}  // namespace headrace::analysis
