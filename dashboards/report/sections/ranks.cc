// Ranks of one job, each with its own loader: who waits, and for whom the others do.
#include "analysis/run/ranks.h"

#include <fmt/format.h>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {
namespace {

std::optional<Section> RanksSection(const analysis::RunView& run,
                                    const analysis::Statements& statements) {
  const std::vector<analysis::Rank> ranks = analysis::Ranks(run);
  if (ranks.empty()) return std::nullopt;
  Section section{
      "ranks", "Ranks (from the reading after each one's first batches on)", {}, {}, {}};
  const double count = static_cast<double>(ranks.size());
  section.facts = {{"ranks_count", Number(count, Unit::kCount, "")}};
  if (statements.slow_rank) {
    const analysis::SlowRank& slow = *statements.slow_rank;
    section.facts.push_back({"slow.pid", std::to_string(slow.rank.pid)});
    section.sentences.push_back({"slow", analysis::Words(slow)});
  }
  Table table{"ranks",
              "",
              {{"pid", "pid"},
               {"process", "process"},
               {"batches", "batches"},
               {"batches_per_second", "batches/s"},
               {"wait_ratio", "waits for batches"},
               {"wait_seconds", "a batch: wait"},
               {"compute_seconds", "compute, and waits for other ranks"}},
              {},
              false};
  for (const analysis::Rank& rank : ranks) {
    table.rows.push_back(
        {std::to_string(rank.pid), rank.process, Number(rank.steps, Unit::kCount, ""),
         Number(rank.steps_per_s(), Unit::kPerSecond, ""), Ratio(rank.wait_ratio(), ""),
         Number(1e9 * rank.wait_s / rank.steps, Unit::kNanoseconds, ""),
         Number(1e9 * rank.compute_s / rank.steps, Unit::kNanoseconds, "")});
  }
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("ranks", 12, RanksSection);

}  // namespace
}  // namespace headrace::dashboards
