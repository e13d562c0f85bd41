#include "dashboards/report/page_words.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "analysis/model/limits/limit_kind.h"
#include "base/units.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {

std::string LimitWord(const analysis::Limit& limit) {
  return limit.kind != nullptr ? limit.kind->ShortName(limit) : std::string("nothing");
}

std::string OwnThreadWord(const std::string& thread, const std::string& operator_name) {
  if (operator_name == "start_workers") return "the start of the workers, in " + thread;
  if (operator_name.empty()) return thread;
  return fmt::format("{}, operator {}", thread, operator_name);
}

std::string SentenceStart(const analysis::Limit& limit) {
  const std::string word = LimitWord(limit);
  return limit.Is(analysis::kStageLimit) ? word : Capital(word);
}

std::string Capital(std::string_view text) {
  std::string made(text);
  if (!made.empty()) made[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(made[0])));
  return made;
}

std::string ProbabilityText(double probability) {
  return probability > 0.99 ? "> 0.99" : fmt::format("{:.2f}", probability);
}

std::string Plural(int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string BusySentence(const OtherLoad& load) {
  if (!load.used_cores) {
    return fmt::format(
        "THE CORES ARE FULL: threads of this program or of others wait for a core {} of the time. "
        "These figures hold for that load only.",
        FormatPercent(load.pressure_ratio.value_or(0)));
  }
  return fmt::format(
      "BUSY MACHINE: other programs use {:.1f} of {:.3g} cores. These figures hold for that load "
      "only.",
      *load.used_cores, load.cores);
}

std::string WithheldWords(const analysis::RunView& run, const analysis::Statements& statements) {
  const std::string outside = statements.outside ? statements.outside->withheld : "";
  if (outside.empty()) return statements.withheld;
  // That it has no instrumentation says the line above: it is seen from outside.
  return run.operators.empty() ? outside : statements.withheld + "; seen from outside: " + outside;
}

Severity SeverityOf(double stall_ratio) {
  constexpr Severity kSeverities[] = {Severity::kGood, Severity::kModerate, Severity::kHigh};
  return kSeverities[static_cast<size_t>(GradeOf(stall_ratio))];
}

namespace {

// Never a figure that has another grade: 4.98 % is not "5.0 %".
std::string StallText(double stall_ratio) {
  const double printed = std::round(1000 * stall_ratio) / 1000;
  if (GradeOf(printed) == GradeOf(stall_ratio)) return FormatPercent(stall_ratio);
  return GradeOf(stall_ratio) == Stall::kHardly ? "just under 5 %" : "just over 20 %";
}

}  // namespace

std::string StallSentence(const std::string& who, const std::string& of_what, double stall_ratio,
                          const std::optional<analysis::Interval>& interval) {
  constexpr const char* kGrades[] = {"NOT means under 5 %", "MODERATELY means 5 to 20 %",
                                     "HIGHLY means over 20 %"};
  return fmt::format("{} waited {} {}{} ({}).", who, StallText(stall_ratio), of_what,
                     interval ? " " + PercentInterval(*interval) : "",
                     kGrades[static_cast<size_t>(GradeOf(stall_ratio))]);
}

}  // namespace headrace::dashboards
