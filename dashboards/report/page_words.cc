#include "dashboards/report/page_words.h"

#include <fmt/format.h>

#include "base/units.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {

using analysis::LimitKind;

std::string LimitWord(const analysis::Limit& limit) {
  switch (limit.kind) {
    case LimitKind::kConsumer:
      return "the trainer";
    case LimitKind::kCores:
      return "CPU cores";
    case LimitKind::kStage:
      return limit.name;
    case LimitKind::kOrder:
      return "the order of the batches";
    case LimitKind::kThread:
      return "one thread that loads and computes in turn";
    default:
      return fmt::format("{} {}", analysis::LimitKindName(limit.kind), limit.name);
  }
}

std::string ProbabilityText(double probability) {
  return probability > 0.99 ? "> 0.99" : fmt::format("{:.2f}", probability);
}

std::string Plural(int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string BusySentence(const OtherLoad& load) {
  const std::string who =
      load.used_cores
          ? fmt::format("other programs use {:.1f} of {:.0f} cores", *load.used_cores, load.cores)
          : fmt::format("threads wait for a core {} of the time",
                        FormatPercent(load.pressure_ratio.value_or(0)));
  return fmt::format("BUSY MACHINE: {}. These figures hold for that load only.", who);
}

Severity SeverityOf(double stall_ratio) {
  if (stall_ratio < kModerateStall) return Severity::kGood;
  return stall_ratio <= kHighStall ? Severity::kModerate : Severity::kHigh;
}

std::string StallSentence(const std::string& who, const std::string& of_what, double stall_ratio,
                          const std::optional<analysis::Interval>& interval) {
  const char* grades[] = {"", "under 5 %: not", "5 to 20 %: moderately", "over 20 %: highly"};
  return fmt::format("{} waited {} {}{} ({}).", who, FormatPercent(stall_ratio), of_what,
                     interval ? " " + PercentInterval(*interval) : "",
                     grades[static_cast<size_t>(SeverityOf(stall_ratio))]);
}

}  // namespace headrace::dashboards
