// Comparison: what two sides of recorded runs say about one another, metric by metric: the change
// with its interval, how sure it is, in a word, and what could have been found.
//
// The unit is a pair of runs, a run, or a block of one run; never a batch or a step, which resemble
// their neighbours. Statistics: analysis/statistics/paired.h and analysis/statistics/sequential.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run/run_figures.h"
#include "analysis/statistics/paired.h"
#include "analysis/statistics/sequential.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

inline constexpr size_t kMostPairs = 10'000;  // that a comparison may plan

enum class ComparedUnit : uint8_t {
  kPair,   // run by run, interleaved: sample i of A belongs to sample i of B
  kRun,    // two sets of runs made at any time
  kBlock,  // blocks of two runs: what varies from run to run is not seen
};
const char* ComparedUnitName(ComparedUnit unit);  // "pair", "run", "block"

struct ComparedSample {
  int64_t run_id = 0;
  RunFigures figures;
  std::string left_out;  // why it does not count, as the caller knows it; empty: it may
};

struct ComparedSide {
  std::string label;  // "A"
  std::string what;   // "decode.parallelism=1", "tag:before", "run 3 'nightly'"
  std::vector<ComparedSample> samples;
};

struct ComparisonInput {
  ComparedUnit unit = ComparedUnit::kPair;
  ComparedSide a, b;
  std::vector<bool> b_first;  // by pair: whether B ran first; may be empty
  double margin = 0.03;       // a smaller change counts as none: "same within 3 %"
  double alpha = 0.05;
  double power = 0.8;  // of the smallest change that it could detect
  uint64_t seed = 1;   // of the resampling
  // Above 0: the largest number of pairs that was planned, which a sequential test of the first
  // metric could end early. That metric's interval and verdict then come from that test.
  size_t planned_pairs = 0;
  bool cold = false;  // the page cache was emptied on purpose
};

struct ComparedMetric {
  Figure figure = Figure::kRowsPerSecond;
  // Values that count; with pairs, a_values[i] belongs to b_values[i].
  std::vector<double> a_values, b_values;
  double a = 0, b = 0;  // medians
  // ln(B / A), for shares B - A; mean over the units. Empty: see `reason`.
  Real change;
  Interval interval;  // 95 %; kUnbounded below two units
  // P values. `p`: two-sided, that there is no change. Below ten units by Student's t test (pairs)
  // or Welch's (others), as ranks have no small p values there; from ten on by Wilcoxon's or
  // Mann-Whitney's. Where pairs could end early, multiplied by the number of looks. `p_holm`: with
  // Holm's correction over the metrics of the page. `p_ranks`: by ranks alone, uncorrected.
  // `p_same`: that the change is the margin or more.
  Real p, p_holm, p_ranks, p_same;
  // Decided by the sequential test of this metric alone, whose error holds over all its looks: it
  // has no part in Holm's family.
  bool sequential = false;
  double margin = 0;  // in the unit of `change`
  Real detectable;    // smallest change that so many units find with the power asked for
  // Total units per side that it takes to find a change as large as the margin; empty: not known,
  // or there were enough.
  std::optional<size_t> units_needed;
  ChangeVerdict verdict = ChangeVerdict::kCannotTell;
  std::string word;        // "faster", "same within 3 %", "cannot tell", "identical", ...
  bool identical = false;  // all units of both sides: not one bit of difference
  std::string reason;      // why there is no change or no verdict
};

// Whether the second run of a pair differs from the first, whatever the side.
struct OrderEffect {
  double change = 0;  // ln(second / first)
  Interval interval;
  double p = 1;
};

struct Comparison {
  std::vector<ComparedMetric> metrics;  // the first is the question asked
  // Number of pairs that count; without pairs, of units of the smaller side that count.
  size_t units = 0;
  std::vector<std::string> left_out_a, left_out_b;  // parallel to the samples; empty: it counts
  std::optional<OrderEffect> order;
  // Noise between runs: 95 % of the ratios of one run to the next of the same side are within
  // exp(+-noise).
  Real noise;
  bool stopped_early = false;  // before the planned number of pairs
  std::string stopped_why;     // StopReasonName; empty: it could not stop early
  size_t steadyless = 0;       // samples without a steady phase: their figures are of the whole run
  // Why there are too few units for any certainty; empty: there are enough.
  std::string too_few;

  const ComparedMetric* Find(Figure figure) const;
};

// Whether the sides are two parts of one run.
bool OfOneRun(const ComparisonInput& input);

// Runs the sequential test of the first metric over the pairs at hand, without those left out. The
// test takes rates, so for a metric where less is better the ratios are inverted.
SequentialTest Replay(const ComparisonInput& input, const SequentialPlan& plan);

// `plan`: made for input.planned_pairs and input.alpha, so that callers make it only once; null: it
// is made here. Throws Error kInconclusive when no metric is known on both sides.
Comparison Compare(const ComparisonInput& input, const SequentialPlan* plan = nullptr);

// A gate for CI on the change from A to B, written as FIGURE OP NUMBER with a unit:
// "rows_per_s<-3%", "wait_ratio>2pt". It fails where the expression holds.
struct Gate {
  std::string text;
  Figure figure = Figure::kRowsPerSecond;
  bool below = true;  // '<'
  double bound = 0;   // in the unit of ComparedMetric::change
};
// Throws Error kUsage naming `what` ("--fail-on").
Gate ParseGate(const std::string& text, const std::string& what);

enum class GateState : uint8_t { kPasses, kFails, kUndecided };
struct GateResult {
  GateState state = GateState::kUndecided;
  std::string why;  // in words, with the interval
};
// Judges by the interval: the gate fails when all of it is beyond the bound, passes when none of it
// is, and is undecided otherwise.
GateResult Judge(const Gate& gate, const Comparison& comparison);

// "+80.2 %", "-43.4 pt": a change or an end of an interval, as people read it.
std::string ChangeText(Figure figure, double change);

}  // namespace headrace::analysis
