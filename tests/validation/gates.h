// Gates: what the trials must show, what they show, and the pages that say so (docs/accuracy.md,
// docs/accuracy-real.md).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/validation/bench.h"

namespace headrace::validation {

// A probability from which a wrong name counts as wrong when sure.
inline constexpr double kSure = 0.90;

struct Gate {
  std::string id, what, line;  // "G1", "median error of the rate", "<= 5 %"
  double value = 0, limit = 0;
  bool at_least = false;  // the value must be at least the limit, else at most
  std::string figure;     // "3.1 %"
  size_t trials = 0;
  // One that nothing was tried for does not.
  bool holds() const { return trials > 0 && (at_least ? value >= limit : value <= limit); }
};

// Families without a trial have no gates here: see MissingFamilies.
std::vector<Gate> Judge(const Trials& trials);

// What a judgement is of: simulated pipelines, those that really run, or both.
enum class Page : uint8_t { kSimulated, kReal, kBoth };

// Families of trials that a whole judgement needs and these have none of: "predict", "real-name". A
// gate that was not tried is not held.
std::vector<std::string> MissingFamilies(const Trials& trials, Page page = Page::kBoth);

// docs/accuracy.md and docs/accuracy-real.md. `made`: when and of which commit, "" unknown.
std::string RenderSimulated(const Trials& trials, const std::string& made);
std::string RenderReal(const Trials& trials, const std::string& made);

double QuantileOf(std::vector<double> values, double q);
// Lower end of Wilson's 95 % interval of a share.
double WilsonLow(size_t right, size_t all);

}  // namespace headrace::validation
