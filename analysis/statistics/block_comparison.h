// Two settings of one running pipeline, compared in alternating blocks of windows: A B, B A, A B,
// ... so that any drift affects both alike. The unit of the statistics is a pair of blocks, because
// neighbouring windows are correlated.
#pragma once
#include <cstddef>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

// A ratio minus 1, with its 95 % interval.
struct Effect {
  double ratio = 0;
  Interval interval;
  size_t pairs = 0;
  bool clear = false;  // the interval excludes 0, corrected for looking repeatedly
};

// Compares the rates of windows `b` with those of windows `a` (all above 0), where all windows of
// one side come before those of the other. Meant for settings that are expensive to change; it
// cannot see a drift between the two.
Effect CompareWindows(const std::vector<double>& a, const std::vector<double>& b);

class BlockComparison {
 public:
  // `first_is_new`: whether the first block has the new settings. `pairs`: the most pairs.
  // `block_error`: relative standard error of a block's rate, from the spread of its windows; no
  // pair is assumed to be more precise.
  BlockComparison(bool first_is_new, size_t pairs, double block_error);

  bool NextIsNew() const;
  void Add(double rate);  // the rate of the current block, above 0
  // Whether the effect is clear, or all pairs are complete.
  bool done() const;
  // Effect of the new settings against the old; empty before the first pair is complete.
  Effect effect() const;
  std::vector<double> new_rates() const { return new_; }
  std::vector<double> old_rates() const { return old_; }

 private:
  bool first_is_new_;
  size_t pairs_;
  double block_error_;
  std::vector<double> old_, new_;
};

}  // namespace headrace::analysis
