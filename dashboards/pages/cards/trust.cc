// Whether these figures can be trusted: what recording cost, what was lost, what was not measured.
#include <fmt/format.h>

#include <algorithm>

#include "dashboards/pages/page_run.h"

namespace headrace::dashboards {
namespace {

std::string ProbesWord(const analysis::RunView& run) {
  const auto active = std::count_if(run.probes.begin(), run.probes.end(),
                                    [](const auto& probe) { return probe.state == "active"; });
  return fmt::format("{} of {} probes worked", active, run.probes.size());
}

Card Trust(const LoadedRun& loaded) {
  Card card;
  card.question = "Can these numbers be trusted?";
  card.sql = "SELECT what, lost_count, total_count FROM loss_summary WHERE run_id = {run}";
  card.read = {
      "Recording takes CPU time and memory of its own. Both are measured and stand here.",
      "What instrumentation takes in the program is estimated, where that can be, and is in it.",
      "An event that was lost is missing from the figures that it belongs to."};
  for (const PageLine& line : loaded.report.first.lines) {
    if (line.label == "cost") card.answer = line.text;
  }
  if (!card.answer.empty() && card.answer[0] >= 'a' && card.answer[0] <= 'z') {
    card.answer[0] = static_cast<char>(card.answer[0] - 'a' + 'A');
  }
  card.answer += (card.answer.empty() ? "" : "; ") + ProbesWord(loaded.run) + ".";
  return card;
}

Card Environment(const LoadedRun& loaded) {
  Card card;
  card.question = "What could be measured here?";
  card.sql = "SELECT probe, state, reason, fix FROM probe_status WHERE run_id = {run}";
  card.read = {"A probe that did not work says why, and what would change it."};
  if (loaded.run.probes.empty()) {
    card.empty = "This run has no list of probes.";
    return card;
  }
  card.answer = ProbesWord(loaded.run) + ".";
  return card;
}

HR_CARD("trust", Trust);
HR_CARD("environment", Environment);

}  // namespace
}  // namespace headrace::dashboards
