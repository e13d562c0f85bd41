// When it happens: whether the run was alike all the time, and the longest gap without a batch.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

constexpr int64_t kGapNs = 300'000'000;  // shorter ones are a window without a batch by chance

struct Gap {
  int64_t start_ns = 0, length_ns = 0;
};

// The longest time without a step between two instants, and the share of such times that are gaps.
std::pair<Gap, double> Gaps(const analysis::RunView& run, int64_t from_ns, int64_t to_ns) {
  Gap longest, current;
  int64_t all_ns = 0, idle_ns = 0;
  for (const analysis::WindowRow& window : run.windows) {
    if (window.start_ns < from_ns || window.start_ns + window.duration_ns > to_ns) continue;
    all_ns += window.duration_ns;
    if (window.steps.steps_count > 0) {
      current = {};
      continue;
    }
    if (current.length_ns == 0) current.start_ns = window.start_ns;
    const int64_t before_ns = current.length_ns;
    current.length_ns = window.start_ns + window.duration_ns - current.start_ns;
    if (current.length_ns > kGapNs)
      idle_ns += current.length_ns - (before_ns > kGapNs ? before_ns : 0);
    if (current.length_ns > longest.length_ns) longest = current;
  }
  return {longest, all_ns > 0 ? static_cast<double>(idle_ns) / static_cast<double>(all_ns) : 0};
}

int64_t LongestWindow(const analysis::RunView& run, int64_t from_ns, int64_t to_ns) {
  int64_t longest = 0;
  for (const analysis::WindowRow& window : run.windows) {
    if (window.start_ns >= from_ns && window.start_ns + window.duration_ns <= to_ns) {
      longest = std::max(longest, window.duration_ns);
    }
  }
  return longest;
}

Card When(const LoadedRun& loaded) {
  Card card;
  card.question = "When does it happen?";
  card.sql =
      "SELECT start_ns, duration_ns, stage, busy_ns, operators_on_cpu_ns, operators_blocked_ns, "
      "operators_runnable_ns, wait_in_ns, wait_out_ns FROM stage_interval WHERE run_id = {run} "
      "ORDER BY start_ns, stage_index";
  const analysis::RunView& run = loaded.run;
  if (run.windows.empty() || run.stages.empty()) {
    card.empty = run.operators.empty()
                     ? "Without instrumentation there is no course of stages and batches."
                     : "This run has no course over time.";
    return card;
  }
  card.read = {
      "Lanes stand in the order of the pipeline, with a queue between two stages.",
      "Read them from top to bottom: a lack of input moves down, a lack of room moves up.",
      "Drag over a range to see it alone. The cursor and the range stay when you change the page."};
  int64_t from_ns = 0, to_ns = run.run.duration_ns;
  if (loaded.statements.model) {
    from_ns = loaded.statements.model->steady_first_ns();
    to_ns = loaded.statements.model->steady_last_ns();
    if (const std::string drift = DriftText(loaded.statements.model->phases()); !drift.empty()) {
      card.answer = "It changed while it ran: " + drift + ".";
      return card;
    }
  }
  const auto [gap, share] = Gaps(run, from_ns, to_ns);
  if (gap.length_ns > kGapNs) {
    card.answer =
        fmt::format("No batch came for {} at {}; such gaps are {} of its steady part.",
                    FormatDuration(static_cast<double>(gap.length_ns)),
                    FormatDuration(static_cast<double>(gap.start_ns)), FormatPercent(share));
  } else {
    // A gap is seen where no window is longer than it.
    card.answer = fmt::format(
        "All through its steady part: no gap without a batch is longer than {}.",
        FormatDuration(static_cast<double>(std::max(kGapNs, LongestWindow(run, from_ns, to_ns)))));
  }
  return card;
}

HR_CARD("when", When);

}  // namespace
}  // namespace headrace::dashboards
