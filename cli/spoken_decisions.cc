#include "cli/spoken_decisions.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/units.h"

namespace headrace::cli {
namespace {

std::string ActionWords(analysis::TuneAction action) {
  return action == analysis::TuneAction::kScaleDown ? "scale down"
                                                    : analysis::TuneActionName(action);
}

void SayLine(const std::string& line) {
  std::fputs((Printable(line, 1000) + "\n").c_str(), stderr);
}

}  // namespace

void SpokenDecisions::Take(const analysis::Decision& decision) {
  using analysis::TuneVerdict;
  if (decision.action == analysis::TuneAction::kStop && !tells_stop_) return;
  const std::string at = FormatDuration(static_cast<double>(decision.at_ns));
  if (decision.verdict == TuneVerdict::kOpen && !decision.applied_ns) {
    SayLine(fmt::format("at {}: {}{}{}: {}", at, ActionWords(decision.action),
                        decision.changes.empty() ? "" : " ", analysis::Describe(decision.changes),
                        decision.reason));
    if (decision.predicted) {
      SayLine(fmt::format("        predicted {} [{}, {}] instead of {}",
                          FormatRate(*decision.predicted, "batches"),
                          FormatCount(decision.predicted_interval.low),
                          FormatCount(decision.predicted_interval.high),
                          FormatRate(decision.now.value_or(0), "batches")));
    }
  } else if (decision.effect && decision.verdict != TuneVerdict::kOpen) {
    SayLine(fmt::format("        {}: {:+.1f} % [{:.1f}, {:.1f}], {}",
                        analysis::TuneVerdictName(decision.verdict), 100 * *decision.effect,
                        100 * decision.effect_interval.low, 100 * decision.effect_interval.high,
                        FormatRate(decision.observed.value_or(0), "batches")));
  }
}

}  // namespace headrace::cli
