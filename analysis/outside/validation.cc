#include "analysis/outside/validation.h"

#include <algorithm>
#include <cstddef>

#include "analysis/run/python_frames.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// The outermost function that validates: it leads to a model's layers or to a loader.
const PythonFrame* ValidatorOf(const std::vector<PythonFrame>& frames) {
  const auto validator = std::find_if(frames.begin(), frames.end(), Validates);
  if (validator == frames.end()) return nullptr;
  const bool shows = std::any_of(validator + 1, frames.end(), [](const PythonFrame& frame) {
    return IsStep(frame) || IsLoader(frame);
  });
  return shows ? &*validator : nullptr;
}

}  // namespace

std::optional<PythonPlace> FindValidation(const std::vector<CountedStack>& stacks) {
  constexpr int64_t kTrainsAtAll = 3;  // samples
  PythonLines lines;
  double all_s = 0, validates_s = 0;
  int64_t validates_count = 0, trains_count = 0;
  for (const CountedStack& stack : stacks) {
    all_s += stack.seconds;
    if (const PythonFrame* validator = ValidatorOf(*stack.frames)) {
      lines.Add(validator, stack.seconds);
      validates_s += stack.seconds;
      validates_count += stack.samples_count;
    } else if (std::any_of(stack.frames->begin(), stack.frames->end(), IsStep)) {
      trains_count += stack.samples_count;
    }
  }
  if (validates_count < kFewestSamples || trains_count < kTrainsAtAll) return std::nullopt;
  if (validates_s < kMostlyValidates * all_s) return std::nullopt;
  std::optional<PythonPlace> place = lines.Busiest();
  if (place) place->ratio = validates_s / all_s;
  return place;
}

}  // namespace headrace::analysis
