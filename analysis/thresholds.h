// Thresholds: the numbers by which analysis decides what it says or does, each with its unit, its
// reason and where it comes from (thresholds.def). Limits of algorithms (draws, rounds, tolerances
// of the solver) decide nothing and stand where they are used.
#pragma once
#include <cmath>
#include <limits>
#include <span>

namespace headrace::analysis {

#define HR_THRESHOLD(name, value, off, unit, what, source) extern const double& name;
#include "analysis/thresholds.def"
#undef HR_THRESHOLD

struct Threshold {
  const char* name;  // "kWorthwhileGain"
  double value;
  double off;  // at which the rule has no effect; NaN: it is a definition
  const char* unit;
  const char* what;
  const char* source;

  bool can_be_off() const { return !std::isnan(off); }
};

// All, in the order of thresholds.def.
std::span<const Threshold> Thresholds();

// For as long as it lives, that rule has no effect in this process. For the bench that tells what
// rules are worth; not for use while other threads analyse. HR_CHECKs that the rule can be off.
class RuleOff {
 public:
  explicit RuleOff(const Threshold& threshold);
  ~RuleOff();
  RuleOff(const RuleOff&) = delete;
  RuleOff& operator=(const RuleOff&) = delete;

 private:
  const Threshold& threshold_;
};

}  // namespace headrace::analysis
