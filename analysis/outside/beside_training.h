// What a trainer's main thread does beside training: it measures its model on other data, saves
// it, reports, loads outside of its loader, traces and compiles its step, or runs it eagerly, as
// its functions say; or it exchanges gradients, as ranks' waits say.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/outside/python_lines.h"

namespace headrace::analysis {

// `doing` of what is found for the whole recording alike, and of what may be over after its start.
inline constexpr std::string_view kLoading = "loading", kCompiling = "tracing and compiling";

struct BesideTraining {
  std::string_view doing;   // "validating"
  std::string_view noun;    // "validation"
  std::string_view advice;  // "validate less often, or on less data"
  PythonPlace place;  // the function ("": none), and what share of the trainer's time it takes
  bool is_seldom_seen = false;  // in too few samples to be called the limit

  bool IsMostlyLoading() const { return doing == kLoading && IsMost(); }
  bool IsMost() const;        // of that time: it is the limit, not the step
  std::string Share() const;  // "62 %", "nearly all"
  // "62 % of what it does is validation, in evaluate (train.py:40)"; `who`: "it".
  std::string Words(std::string_view who, const std::string& place_name) const;
};

// Validation, of the stacks of a trainer's main thread: its share is of the time in known
// functions, those that load or train. Nothing where that is hardly worth a word or seldom seen, or
// where the program only validates. A function of the program must lead to a model's layers, and
// loop or lead to a loader.
std::optional<BesideTraining> FindValidation(const std::vector<WeighedStack>& stacks);

// Saving or reporting, whichever takes longer, of stacks whose functions from `first` on are those
// of a step. Its share is of `all_s`, in which the thread did not wait for batches. Nothing where
// it is hardly worth a word.
std::optional<BesideTraining> FindWriting(const std::vector<WeighedStack>& stacks, size_t first,
                                          double all_s);

// Tracing and compiling the step, of the same stacks: as any program does at first, and one whose
// shapes change in each step. Its share is of `all_s` as well; nothing where it is hardly worth a
// word.
std::optional<BesideTraining> FindCompiling(const std::vector<WeighedStack>& stacks, size_t first,
                                            double all_s);

// The step of fit() of Keras that runs operation by operation instead of as a graph, of stacks of
// fit(), which took `all_s`. Nothing where that is hardly worth a word.
std::optional<BesideTraining> FindEagerSteps(const std::vector<WeighedStack>& stacks, double all_s);

// Loading that is in none of a loader's functions, as a generator around one, of stacks of it.
// Nothing where it is hardly worth a word of `all_s`, its time without waits and without loaders.
std::optional<BesideTraining> FindOwnLoading(const std::vector<WeighedStack>& stacks, size_t first,
                                             double all_s);

// Exchanging gradients with other ranks, for which each of them waits that share of its time.
// Nothing where it is hardly worth a word.
std::optional<BesideTraining> Exchanging(double ratio);

// Of two parts of the same time the one that takes more of it.
std::optional<BesideTraining> Larger(std::optional<BesideTraining> a,
                                     std::optional<BesideTraining> b);

}  // namespace headrace::analysis
