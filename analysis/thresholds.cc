#include "analysis/thresholds.h"

#include <string_view>

#include "base/check.h"

namespace headrace::analysis {
namespace {

constexpr double HR_ALWAYS = std::numeric_limits<double>::quiet_NaN();

// What the references of the header are bound to: constant-initialised, so that no order of
// initialisation matters; written by RuleOff alone.
namespace now {
#define HR_THRESHOLD(name, value, off, unit, what, source) constinit double name = value;
#include "analysis/thresholds.def"
#undef HR_THRESHOLD
}  // namespace now

constexpr Threshold kThresholds[] = {
#define HR_THRESHOLD(name, value, off, unit, what, source) {#name, value, off, unit, what, source},
#include "analysis/thresholds.def"
#undef HR_THRESHOLD
};

double& NowOf(std::string_view wanted) {
#define HR_THRESHOLD(name, value, off, unit, what, source) \
  if (wanted == #name) return now::name;
#include "analysis/thresholds.def"
#undef HR_THRESHOLD
  HR_CHECK(false, "a threshold of thresholds.def");
  __builtin_unreachable();
}

}  // namespace

#define HR_THRESHOLD(name, value, off, unit, what, source) constinit const double& name = now::name;
#include "analysis/thresholds.def"
#undef HR_THRESHOLD

std::span<const Threshold> Thresholds() { return kThresholds; }

RuleOff::RuleOff(const Threshold& threshold) : threshold_(threshold) {
  HR_CHECK(threshold.can_be_off(), "a rule that can be off");
  NowOf(threshold.name) = threshold.off;
}

RuleOff::~RuleOff() { NowOf(threshold_.name) = threshold_.value; }

}  // namespace headrace::analysis
