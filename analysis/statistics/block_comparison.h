// Two settings of one running pipeline, compared in blocks of windows that take turns: A B, B A,
// A B, ... so that what drifts meanwhile meets both alike. The unit of the statistics is a pair of
// blocks: windows resemble their neighbours.
#pragma once
#include <cstddef>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

// 95 % interval of a ratio less 1.
struct Effect {
  double ratio = 0;
  Interval interval;
  size_t pairs = 0;
  bool clear = false;  // the interval does not hold 0, with looking again and again allowed for
};

// The rate of `b` against that of `a`, both above 0, from single windows: those of one are before
// those of the other. For where changes are dear; a drift between them is not seen.
Effect CompareWindows(const std::vector<double>& a, const std::vector<double>& b);

class BlockComparison {
 public:
  // `first`: whether the first block is of the new settings. `pairs`: at most. `block_error`: the
  // relative standard error of a block's rate, as its windows vary; no pair is taken to be surer.
  BlockComparison(bool first_is_new, size_t pairs, double block_error);

  bool NextIsNew() const;
  void Add(double rate);  // of that block, above 0
  // Whether it is clear, or all pairs are in.
  bool done() const;
  Effect effect() const;  // of the new settings against the old; none before a pair is in
  std::vector<double> new_rates() const { return new_; }
  std::vector<double> old_rates() const { return old_; }

 private:
  bool first_is_new_;
  size_t pairs_;
  double block_error_;
  std::vector<double> old_, new_;
};

}  // namespace headrace::analysis
