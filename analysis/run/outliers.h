// Outliers: runs of a comparison that stand apart from the others of their side, and pairs whose
// ratio does, each explained by what was recorded in that run and not in the others, or called
// unexplained. They are named, never removed: the statistics keep every run.
//
// Apart is a robust z score, distance from the median over 1.4826 times the median absolute
// deviation (Iglewicz, Hoaglin 1993, section 3), beyond OutlyingScore. The same rule says whether
// an event of a run is unusual, together with a size below which it does not matter.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

inline constexpr size_t kFewestForOutliers = 6;
// The usual 3.5 names one of ten normal values in every eighth set; with this, one of 6 to 60 is
// named in one set of twenty (simulated).
inline double OutlyingScore(size_t values) { return 3.6 + 10.0 / static_cast<double>(values); }

// Robust z scores; 0 for a value that is not finite. Where more than half of the values are equal
// the mean absolute deviation takes the place of the median's; where all are, the scores are 0.
std::vector<double> RobustScores(std::span<const double> values);

// One run of a pair, with its value of the metric compared. NaN: not measured.
struct OutlierRun {
  const RunView* view = nullptr;  // null: nothing is known of it, so nothing explains it
  double value = 0;
};
struct OutlierPair {
  OutlierRun a, b;
};

// Something recorded that was unlike the other runs of the side.
struct OutlierCause {
  std::string key;    // "cpu_throttled", "cpu_pressure", "io_pressure", "memory_pressure", "steal",
                      // "others_cpu", "major_faults", "device_latency", ...
  double value = 0;   // of this run, in the key's unit
  double usual = 0;   // median of the side's other runs
  double weight = 0;  // how far beyond usual, in sizes that matter; causes are sorted by it
  std::string text;   // "the hypervisor took 0.42 cores (usually 0.01)"
};

enum class OutlierSide : uint8_t { kA, kB, kPair };

struct Outlier {
  size_t pair = 0;  // index
  OutlierSide side = OutlierSide::kPair;
  int64_t run_id = 0;                // 0: of a pair
  double value = 0;                  // of the metric; of a pair ln(B/A)
  double usual = 0;                  // median
  double score = 0;                  // robust z, signed
  std::vector<OutlierCause> causes;  // most telling first; empty: unexplained
  // "run 14 (A of pair 3) has 18 % less rows/s than usual: the hypervisor took ..."
  std::string text;
};

struct OutlierQuestion {
  std::string metric = "rows/s";  // as people read it
  bool more_is_better = true;     // so that causes which slow down explain the worse side only
};

// Outliers in the order of pairs; a pair is named of its own only where neither of its runs is.
// None below kFewestForOutliers pairs: nothing is usual yet.
std::vector<Outlier> FindOutliers(std::span<const OutlierPair> pairs,
                                  const OutlierQuestion& question = {});

// Cores that neither the run nor its collector used while it was recorded, on average. None: not
// recorded.
std::optional<double> CoresOfOthers(const RunView& run);

// What was unusual in `run` against the others, in the direction that slows a run down (or, with
// `slower` false, speeds it up). Needs five others.
std::vector<OutlierCause> UnusualEvents(const RunView& run, std::span<const RunView* const> others,
                                        bool slower = true);

}  // namespace headrace::analysis
