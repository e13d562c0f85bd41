// SequentialTest: when to stop adding pairs to a comparison, so that looking after every block
// causes no extra false alarms. Over all looks together, two equal sides are called different with
// probability alpha at most, and sides that differ by the margin or more are called the same with
// probability alpha at most.
//
// The method. Group-sequential test with a spending function (Lan, DeMets, Biometrika 70, 1983; the
// Pocock-like function), a look after every second pair from the fourth on. Its statistic is
// Student's t below ten pairs, where ranks have no small p values yet, and Wilcoxon's signed rank
// from ten on, which loses little under normal noise and finds much that t misses when a machine
// produces outliers. Bounds are computed by simulating the null hypothesis (200,000 paths of equal
// sides, fixed seed), with both exact statistics up to 60 pairs. The paths carry a correlation of
// 1/8 between the two pairs of a block, the most that AR(1) noise of any strength leaves in an ABBA
// block (phi (1 - phi) / 2), so that slow noise of a machine does not break the promise. At every
// look the bound is inverted to an interval (repeated confidence intervals: Jennison, Turnbull,
// JRSS B 51, 1989). These intervals cover at all looks simultaneously, so the one at which the test
// stopped is valid. docs/statistics.md compares it with others by simulation.
//
// Pairs must come in ABBA or BAAB blocks. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/statistics/paired.h"

namespace headrace::analysis {

// The bounds of every look. Making one takes some tenths of a second: tests of the same plan share
// it.
struct SequentialPlan {
  struct Bound {
    // There is a difference if |t| is above this.
    double t = 0;
    // There is a difference if the smaller rank sum is at or below this. Negative: no difference
    // can be shown.
    int64_t rank_sum = -1;
    double deviate = 0;  // the bound as a standard normal deviate
  };
  struct Look {
    size_t pairs = 0;
    bool ranks = false;  // signed rank instead of t
    Bound difference;    // spends alpha, two-sided
    Bound same;          // spends alpha at each of the margins: 2 alpha, two-sided
  };
  size_t max_pairs = 0;
  double alpha = 0.05;
  uint64_t seed = 1;
  std::vector<Look> looks;  // by pairs
};

// Looks after 4, 6, 8, ... pairs, above 60 after each 5 % more, and after the last; below four
// only there. max_pairs >= 2. Takes 0.1 to 2 s.
SequentialPlan PlanSequential(size_t max_pairs, double alpha = 0.05, uint64_t seed = 1);

enum class StopReason : uint8_t {
  kNone,        // go on
  kDifference,  // proven
  kSame,        // within the margin, proven; or all ratios are 1
  kFutile,      // even the planned maximum would hardly decide
  kMaximum      // reached, undecided
};
const char* StopReasonName(StopReason reason);  // "difference", "same", "futile", ...

struct SequentialStep {
  bool stop = false;
  StopReason why = StopReason::kNone;
};

class SequentialTest {
 public:
  // `margin`: |ln ratio| that counts as the same; 0: only a difference or futility ends it early.
  SequentialTest(size_t max_pairs, double alpha, double margin);
  SequentialTest(SequentialPlan plan, double margin);

  // Adds the next pair's ln(B/A). A value that is not finite is a pair that was not measured: it is
  // counted and does not take part. After a stop nothing changes any more.
  SequentialStep Add(double log_ratio);

  // No more pairs come, for a reason that does not depend on their ratios: the time is used up, the
  // user interrupts. Spends the rest of alpha on the pairs at hand. Below two pairs: kMaximum.
  SequentialStep Close();

  // As of the latest look. Before the first look: the mean, and kUnbounded.
  double estimate() const { return estimate_; }    // mean below ten pairs, then Hodges-Lehmann's
  Interval interval() const { return interval_; }  // 1 - alpha, whenever it stopped
  Interval within() const { return within_; }      // 1 - 2 alpha: what kSame compares with
  SequentialStep step() const { return step_; }
  ChangeVerdict verdict() const { return VerdictOf(interval_, within_, margin_); }
  // Chance that the planned maximum decides, from the noise so far; 1 before ten pairs.
  double decides() const { return decides_; }

  size_t pairs() const { return ratios_.size(); }
  size_t left_out() const { return left_out_; }
  size_t looked_at() const { return looked_at_; }  // pairs at the latest look
  const SequentialPlan& plan() const { return plan_; }

 private:
  SequentialStep Look(const SequentialPlan::Look& look, bool last);
  double ChanceToDecide(const SequentialPlan::Look& look) const;

  SequentialPlan plan_;
  double margin_;
  std::vector<double> ratios_;
  size_t left_out_ = 0, looked_at_ = 0;
  double estimate_ = 0, decides_ = 1;
  Interval interval_ = kUnbounded, within_ = kUnbounded;
  SequentialStep step_;
};

}  // namespace headrace::analysis
