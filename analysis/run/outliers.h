// Outliers: runs of a comparison that differ strongly from the others of their side, and pairs
// whose ratio differs strongly. Each is explained by something recorded in that run and not in the
// others, or called unexplained. Outliers are named, never removed: the statistics keep every run.
//
// A value is an outlier if its robust z score, the distance from the median over 1.4826 times the
// median absolute deviation (Iglewicz, Hoaglin 1993, section 3), is beyond OutlyingScore. An event
// of a run is unusual by the same rule if it is also large enough to matter.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// The usual threshold of 3.5 would name a value in every eighth set of ten normal values. With this
// one, a value is named in one of twenty sets of 6 to 60 values (simulated).
inline double OutlyingScore(size_t values) { return 3.6 + 10.0 / static_cast<double>(values); }

// Robust z scores; 0 for a value that is not finite. Where more than half of the values are equal,
// the mean absolute deviation replaces the median absolute deviation; where all are equal, the
// scores are 0.
std::vector<double> RobustScores(std::span<const double> values);

// One run of a pair, with its value of the metric compared. NaN: not measured.
struct OutlierRun {
  const RunView* view = nullptr;  // null: nothing is known about the run, so nothing can explain it
  double value = 0;
};
struct OutlierPair {
  OutlierRun a, b;
};

// A recorded event in which the run differed from the other runs of its side.
struct OutlierCause {
  std::string key;   // "cpu_throttled", "cpu_pressure", "io_pressure", "memory_pressure", "steal",
                     // "others_cpu", "major_faults", "device_latency", ...
  double value = 0;  // of this run, in the key's unit
  double usual = 0;  // median of the side's other runs
  // Distance from `usual`, in units of a size that matters; causes are sorted by it.
  double weight = 0;
  std::string text;  // "the hypervisor took 0.42 cores (usually 0.01)"
};

enum class OutlierSide : uint8_t { kA, kB, kPair };

struct Outlier {
  size_t pair = 0;  // index
  OutlierSide side = OutlierSide::kPair;
  int64_t run_id = 0;                // 0: the outlier is a pair
  double value = 0;                  // of the metric; for a pair ln(B/A)
  double usual = 0;                  // median
  double score = 0;                  // robust z, signed
  std::vector<OutlierCause> causes;  // strongest first; empty: unexplained
  // "run 14 (A of pair 3) has 18 % less rows/s than usual: the hypervisor took ..."
  std::string text;
};

struct OutlierQuestion {
  std::string metric = "rows/s";  // name for people
  bool more_is_better = true;     // then causes that slow a run down can only explain low values
};

// Outliers in the order of pairs. A pair is named only if neither of its runs is. With fewer than
// kPairsForOutliers pairs there are none, because it is not known yet what is usual.
std::vector<Outlier> FindOutliers(std::span<const OutlierPair> pairs,
                                  const OutlierQuestion& question = {});

// Cores that programs other than the run and its collector used on average while it was recorded.
// None: not recorded.
std::optional<double> CoresOfOthers(const RunView& run);

// What was unusual in `run` against the others, in the direction that slows a run down (or, with
// `slower` false, speeds it up). Needs five others.
std::vector<OutlierCause> UnusualEvents(const RunView& run, std::span<const RunView* const> others,
                                        bool slower = true);

}  // namespace headrace::analysis
