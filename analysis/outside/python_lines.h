// The line of a Python program that most of some samples of stacks (docs/stacks.md) were in.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run/python_frames.h"

namespace headrace::analysis {

struct PythonPlace {
  std::string name;  // "with_backoff (flaky_store.py:28)"; without a line where it is in several
  double ratio = 0;  // of the samples
};

// A sampled stack, how long it stands for, and how often it was seen.
struct WeighedStack {
  const std::vector<PythonFrame>* frames = nullptr;
  double seconds = 0;
  int64_t samples_count = 0;
};

// Samples by function and line.
class PythonLines {
 public:
  // nullptr: in no function of the program.
  void Add(const PythonFrame* frame, double seconds);
  // Of the function that holds most, the line that holds a good part of all, else the function;
  // nothing where they are few, or spread.
  std::optional<PythonPlace> Busiest() const;

 private:
  struct Function {
    double seconds = 0;
    std::map<int64_t, double> lines;
  };
  std::map<std::pair<std::string, std::string>, Function> functions_;  // by file and name
  double seconds_ = 0;
};

// Of stacks without a function of the program from `first` on: the deepest function of a library
// that so much of `all_s` is in that PythonLines names it, but for those that only call others.
// Nothing where there is none, or where `all_s` is little.
std::optional<PythonPlace> DeepestOfMost(std::vector<WeighedStack> stacks, size_t first,
                                         double all_s);

}  // namespace headrace::analysis
