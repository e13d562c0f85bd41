#include "analysis/outside/beside_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "analysis/run/python_frames.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

bool IsKnown(const PythonFrame& frame) {
  return IsStep(frame) || IsLoader(frame) || HandsOver(frame);
}

// The outermost function that validates: of a library, whose metrics are the program's, or one
// that leads to known ones. nullptr: none, or a loader's own.
const PythonFrame* ValidatorOf(const std::vector<PythonFrame>& frames) {
  const auto validator = std::find_if(frames.begin(), frames.end(), Validates);
  if (validator == frames.end() || std::any_of(frames.begin(), validator, IsLoader)) return nullptr;
  const bool leads = std::any_of(validator + 1, frames.end(), IsKnown);
  return !validator->is_own || leads ? &*validator : nullptr;
}

// Where frames begin to write: a function of the program, a library's callback, or the library's
// own function. Nothing where they do not, or write around what trains or loads.
struct WritingAt {
  const PythonFrame* function;
  Writing kind;
};

std::optional<WritingAt> WritingIn(const std::vector<PythonFrame>& frames, size_t first) {
  auto begin = frames.begin() + static_cast<std::ptrdiff_t>(first);
  // What calls fit() of Keras writes nothing by that.
  const auto called = std::find_if(begin, frames.end(), CallsBack);
  if (called != frames.end()) begin = called;
  const auto writes = std::find_if(begin, frames.end(), [](const PythonFrame& frame) {
    return WritingOf(frame) != Writing::kNone;
  });
  // Saving an optimizer calls functions of it.
  const bool does_else =
      called == frames.end() && std::any_of(writes, frames.end(), [](const PythonFrame& frame) {
        const bool of_saving = SaysItWrites(frame) ||
                               IsIn(frame, "torch/distributed/checkpoint/") ||
                               frame.function.find("state_dict") != std::string_view::npos;
        return IsLoader(frame) || (IsStep(frame) && !of_saving);
      });
  if (writes == frames.end() || does_else) return std::nullopt;
  const Writing kind = WritingOf(*writes);
  const auto callback = std::find_if(begin, writes + 1, [](const PythonFrame& frame) {
    const bool only_passes_on = frame.function.starts_with("CallbackList.");
    return CallsBack(frame) && frame.function.find('.') != std::string_view::npos &&
           !only_passes_on;
  });
  if (callback <= writes) return WritingAt{&*callback, kind};
  // torch.save() is called by whom people know it.
  const bool is_called = writes != frames.begin() && (writes - 1)->is_own;
  return WritingAt{writes->is_own || !is_called ? &*writes : &*(writes - 1), kind};
}

}  // namespace

bool BesideTraining::IsMost() const {
  // Samples are of the whole recording, which begins with it.
  return place.ratio >= (doing == kCompiling ? kMostlyCompiles : kMostlyBesideTraining) &&
         !is_seldom_seen;
}

std::string BesideTraining::Share() const {
  constexpr double kAll = 0.985;  // of samples, that may have missed the rest
  return place.ratio >= kAll ? "nearly all" : fmt::format("{:.0f} %", 100 * place.ratio);
}

std::string BesideTraining::Words(std::string_view who, const std::string& place_name) const {
  return fmt::format("{} of what {} does is {}{}{}", Share(), who, noun,
                     place_name.empty() ? "" : ", in ", place_name);
}

std::optional<BesideTraining> Exchanging(double ratio) {
  if (ratio < kSeenBesideTraining) return std::nullopt;
  return BesideTraining{
      "exchanging gradients", "waiting for the exchange of gradients with the other ranks",
      "exchange gradients less often (no_sync), or smaller ones, or even out the ranks' batches",
      PythonPlace{"", ratio}};
}

std::optional<BesideTraining> Larger(std::optional<BesideTraining> a,
                                     std::optional<BesideTraining> b) {
  return !a || (b && b->place.ratio > a->place.ratio) ? b : a;
}

std::optional<BesideTraining> FindValidation(const std::vector<WeighedStack>& stacks) {
  constexpr int64_t kTrainsAtAll = 3;  // samples
  PythonLines lines;
  double all_s = 0, validates_s = 0;
  int64_t all_count = 0, validates_count = 0, trains_count = 0;
  // What the program's own functions show of it: layers, and batches that a loop goes over.
  bool computes = false, loads = false;
  bool in_training = false;  // what trains calls it, however little of that is seen
  for (const WeighedStack& stack : stacks) {
    const std::vector<PythonFrame>& frames = *stack.frames;
    const PythonFrame* validator = ValidatorOf(frames);
    // What is neither training nor loading may be set-up.
    if (validator == nullptr && std::none_of(frames.begin(), frames.end(), IsKnown)) continue;
    all_s += stack.seconds;
    all_count += stack.samples_count;
    const bool steps = std::any_of(frames.begin(), frames.end(), IsStep);
    if (validator != nullptr) {
      in_training |= std::any_of(frames.data(), validator, [](const PythonFrame& frame) {
        return WhatNameSays(frame.function) == NameSays::kSteps;
      });
      lines.Add(validator, stack.seconds);
      validates_s += stack.seconds;
      validates_count += stack.samples_count;
      computes |= steps || !validator->is_own;
      loads |= !steps || validator->loop > 0 || !validator->is_own;
    } else if (steps) {
      trains_count += stack.samples_count;
    }
  }
  if (all_count < kFewestSamples || validates_count < kFewestOfValidation ||
      (trains_count < kTrainsAtAll && !in_training)) {
    return std::nullopt;
  }
  if (!computes || !loads || validates_s < kSeenBesideTraining * all_s) return std::nullopt;
  std::optional<PythonPlace> place = lines.Busiest();
  if (!place) return std::nullopt;
  place->ratio = validates_s / all_s;
  return BesideTraining{"validating", "validation", "validate less often, or on less data", *place,
                        validates_count < kFewestSamples};
}

namespace {

// Of a trainer's time, what one thing beside training takes.
struct TrainersPart {
  PythonLines lines;
  double seconds = 0;
  int64_t samples_count = 0;

  void Add(const PythonFrame* function, const WeighedStack& stack) {
    lines.Add(function, stack.seconds);
    seconds += stack.seconds;
    samples_count += stack.samples_count;
  }
  // Nothing where that is hardly worth a word of `all_s`, or seldom seen.
  std::optional<PythonPlace> PlaceOf(double all_s) const {
    std::optional<PythonPlace> place = lines.Busiest();
    if (!place || samples_count < kFewestSamples || seconds < kSeenBesideTraining * all_s) {
      return std::nullopt;
    }
    place->ratio = seconds / all_s;
    return place;
  }
};

}  // namespace

std::optional<BesideTraining> FindWriting(const std::vector<WeighedStack>& stacks, size_t first,
                                          double all_s) {
  TrainersPart saves, reports;
  for (const WeighedStack& stack : stacks) {
    const std::optional<WritingAt> found = WritingIn(*stack.frames, first);
    if (found) (found->kind == Writing::kSaves ? saves : reports).Add(found->function, stack);
  }
  const bool are_saves = saves.seconds >= reports.seconds;
  const auto place = (are_saves ? saves : reports).PlaceOf(all_s);
  if (!place) return std::nullopt;
  return are_saves ? BesideTraining{"saving", "saving", "save less often, or save less", *place}
                   : BesideTraining{"reporting", "reporting", "report less often, or report less",
                                    *place};
}

std::optional<BesideTraining> FindCompiling(const std::vector<WeighedStack>& stacks, size_t first,
                                            double all_s) {
  TrainersPart compiles;
  for (const WeighedStack& stack : stacks) {
    const std::vector<PythonFrame>& frames = *stack.frames;
    const auto begin = frames.begin() + static_cast<std::ptrdiff_t>(std::min(first, frames.size()));
    const auto found = std::find_if(begin, frames.end(), Compiles);
    if (found == frames.end()) continue;
    // What is traced may be the program's as well: people know it by who asks for it.
    auto asks = found;
    while (asks != frames.begin() && !asks->is_own) --asks;
    compiles.Add(asks->is_own ? &*asks : &*found, stack);
  }
  const auto place = compiles.PlaceOf(all_s);
  if (!place) return std::nullopt;
  return BesideTraining{
      kCompiling, kCompiling,
      "if that goes on after the first steps, jit the whole step and give it the same shapes and "
      "types each time (tensors in place of numbers, padded lengths)",
      *place};
}

std::optional<BesideTraining> FindEagerSteps(const std::vector<WeighedStack>& stacks,
                                             double all_s) {
  TrainersPart eager;
  for (const WeighedStack& stack : stacks) {
    const std::vector<PythonFrame>& frames = *stack.frames;
    // Once traced, a graph calls none of the step's functions. Validation has a test_step instead.
    const auto step = std::find_if(frames.begin(), frames.end(), [](const PythonFrame& frame) {
      return frame.function == "train_step" || frame.function.ends_with(".train_step");
    });
    const bool of_keras = std::any_of(frames.begin(), step, [](const PythonFrame& frame) {
      return IsIn(frame, "keras/src/backend/tensorflow/trainer.py");
    });
    const bool is_traced = std::any_of(frames.begin(), step, Compiles);
    if (step != frames.end() && of_keras && !is_traced) eager.Add(InnermostOwn(frames, 0), stack);
  }
  const auto place = eager.PlaceOf(all_s);
  if (!place) return std::nullopt;
  return BesideTraining{
      "running eagerly", "running its step eagerly, one operation after the other",
      "compile the model with run_eagerly=False, and call no tf.config.run_functions_eagerly(True)",
      *place};
}

std::optional<BesideTraining> FindOwnLoading(const std::vector<WeighedStack>& stacks, size_t first,
                                             double all_s) {
  TrainersPart loads;
  for (const WeighedStack& stack : stacks) {
    loads.Add(InnermostOwn(*stack.frames, std::min(first, stack.frames->size())), stack);
  }
  const auto place = loads.PlaceOf(all_s);
  if (!place) return std::nullopt;
  return BesideTraining{
      kLoading, "loading of its own",
      "move that into the loader's workers (the data set or collate_fn) or ahead into another "
      "process, or do it for a whole batch at once",
      *place};
}

}  // namespace headrace::analysis
