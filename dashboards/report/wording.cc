#include "dashboards/report/wording.h"

#include <fmt/format.h>

#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::dashboards {

Stall GradeOf(double stall_ratio) {
  if (stall_ratio < analysis::kSmallStall) return Stall::kHardly;
  return stall_ratio <= analysis::kHighStall ? Stall::kModerate : Stall::kHigh;
}

const char* StallGrade(double stall_ratio) {
  constexpr const char* kGrades[] = {"NOT input-bound", "MODERATELY input-bound",
                                     "HIGHLY input-bound"};
  return kGrades[static_cast<size_t>(GradeOf(stall_ratio))];
}

const char* StallGradeKey(double stall_ratio) {
  constexpr const char* kKeys[] = {"not", "moderate", "high"};
  return kKeys[static_cast<size_t>(GradeOf(stall_ratio))];
}

std::string PercentInterval(const analysis::Interval& interval) {
  // An interval narrower than two points says nothing in whole points: "[38, 38]".
  const int decimals = interval.high - interval.low < 0.02 ? 1 : 0;
  const auto percent = [&](double ratio) { return fmt::format("{:+.{}f}", 100 * ratio, decimals); };
  const auto plain = [&](double ratio) { return fmt::format("{:.{}f}", 100 * ratio, decimals); };
  if (interval.low < 0) return "[" + percent(interval.low) + ", " + percent(interval.high) + "]";
  return "[" + plain(interval.low) + ", " + plain(interval.high) + "]";
}

std::string DriftText(const analysis::Phases& phases) {
  if (!phases.drift) return "";
  const analysis::Drift& drift = *phases.drift;
  // "0.481 times the time a row (48.2 us -> 23.2 us)"
  const auto times = [](const analysis::StageDrift& change, const char* what, auto format) {
    return fmt::format("{:.3g} times {} ({} -> {})", change.after / change.before, what,
                       format(change.before), format(change.after));
  };
  std::string text = fmt::format("from {} on ", FormatDuration(static_cast<double>(drift.at_ns)));
  if (drift.cost) {
    text += fmt::format(
        "{} takes {}",
        drift.cost->stage == "consumer" ? std::string("the trainer") : drift.cost->stage,
        times(*drift.cost, "the time a row",
              [](double seconds) { return FormatDuration(seconds * 1e9); }));
    if (drift.stages > 2) {
      text += fmt::format(", and {} stages changed alike: that is the machine rather than the data",
                          drift.stages);
    }
  }
  if (drift.bytes) {
    text += fmt::format(
        "{}a row has {} after {}", drift.cost ? "; " : "",
        times(*drift.bytes, "the bytes", [](double bytes) { return FormatBytes(bytes); }),
        drift.bytes->stage);
  }
  if (drift.rate) {
    text += fmt::format(
        "the rate is {}, and no stage's cost a row changed: look at what else ran",
        times(*drift.rate, "what it was", [](double rate) { return FormatRate(rate, "batches"); }));
  }
  return text + (drift.used ? "; statements hold for the part since then"
                            : "; too little was recorded since then, so statements are of both "
                              "parts together: record longer");
}

Quantity Number(std::optional<double> value, Unit unit, const std::string& reason) {
  return value ? Quantity::Of(*value, unit, Source::kAccount) : Quantity::Unavailable(reason, unit);
}
Quantity Ratio(std::optional<double> value, const std::string& reason) {
  return Number(value, Unit::kRatio, reason);
}
Quantity Duration(std::optional<double> seconds, const std::string& reason) {
  if (seconds) *seconds *= 1e9;
  return Number(seconds, Unit::kNanoseconds, reason);
}
Quantity Bytes(std::optional<double> bytes, const std::string& reason) {
  return Number(bytes, Unit::kBytes, reason);
}

}  // namespace headrace::dashboards
