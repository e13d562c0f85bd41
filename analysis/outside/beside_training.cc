#include "analysis/outside/beside_training.h"

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

// Where frames begin to write: a function of the program, a library's callback, or the library's
// own function; and what. No function: they do not.
struct Writer {
  const PythonFrame* function = nullptr;
  Writing kind = Writing::kNone;
};

Writer WriterIn(const std::vector<PythonFrame>& frames, size_t first) {
  const auto begin = frames.begin() + static_cast<std::ptrdiff_t>(first);
  const auto writes = std::find_if(begin, frames.end(), [](const PythonFrame& frame) {
    return WritingOf(frame) != Writing::kNone;
  });
  if (writes == frames.end()) return {};
  const Writing kind = WritingOf(*writes);
  const auto callback = std::find_if(begin, writes + 1, [](const PythonFrame& frame) {
    const bool is_list = frame.function.starts_with("CallbackList.");
    return CallsBack(frame) && frame.function.find('.') != std::string_view::npos && !is_list;
  });
  if (callback <= writes) return {&*callback, kind};
  // torch.save() is called by whom people know it.
  const bool is_called = writes != frames.begin() && (writes - 1)->is_own;
  return {writes->is_own || !is_called ? &*writes : &*(writes - 1), kind};
}

}  // namespace

bool BesideTraining::IsMost() const { return place.ratio >= kMostlyBesideTraining; }

std::optional<BesideTraining> FindValidation(const std::vector<WeighedStack>& stacks) {
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
  if (!computes || !loads || validates_s < kMostlyBesideTraining * all_s) return std::nullopt;
  std::optional<PythonPlace> place = lines.Busiest();
  if (!place) return std::nullopt;
  place->ratio = validates_s / all_s;
  return BesideTraining{"validating", "validation", "validate less often, or on less data", *place};
}

std::optional<BesideTraining> FindWriting(const std::vector<WeighedStack>& stacks, size_t first,
                                          double all_s) {
  PythonLines lines;
  double saves_s = 0, reports_s = 0;
  int64_t samples_count = 0;
  for (const WeighedStack& stack : stacks) {
    const Writer writer = WriterIn(*stack.frames, first);
    if (writer.function == nullptr) continue;
    lines.Add(writer.function, stack.seconds);
    (writer.kind == Writing::kSaves ? saves_s : reports_s) += stack.seconds;
    samples_count += stack.samples_count;
  }
  std::optional<PythonPlace> place = lines.Busiest();
  const double writes_s = saves_s + reports_s;
  if (!place || samples_count < kFewestSamples || writes_s < kSeenBesideTraining * all_s) {
    return std::nullopt;
  }
  place->ratio = writes_s / all_s;
  return saves_s >= reports_s
             ? BesideTraining{"saving", "saving", "save less often, or less", *place}
             : BesideTraining{"reporting", "reporting", "report less often, or less", *place};
}

}  // namespace headrace::analysis
