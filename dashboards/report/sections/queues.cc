// Fill of each queue: full means the reader is slow, empty that the writer is.
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

std::optional<Section> Queues(const analysis::RunView& run,
                              const analysis::Statements& statements) {
  if (run.queues.empty()) return std::nullopt;
  Section section{
      "queue_fill", "Queues (full: what reads it is slow; empty: what writes it is)", {}, {}, {}};
  Table table{"queues",
              "",
              {{"queue", "queue"},
               {"producer", "from"},
               {"consumer", "to"},
               {"capacity_count", "capacity"},
               {"mean_occupancy_ratio", "mean fill"},
               {"full_ratio", "full"},
               {"empty_ratio", "empty"},
               {"puts_count", "puts"}},
              {}};
  for (size_t i = 0; i < run.queues.size(); ++i) {
    const analysis::QueueRow& queue = run.queues[i];
    const std::string doubt = analysis::Doubts::Of(statements.doubts.queues, i);
    const std::string reason = doubt.empty() ? "no level was recorded" : doubt;
    const auto told = [&](std::optional<double> value) {
      return doubt.empty() ? value : std::nullopt;
    };
    table.rows.push_back(
        {queue.name, queue.producer_stage,
         queue.consumer_stage.empty() ? "consumer" : queue.consumer_stage,
         Number(static_cast<double>(queue.capacity_count), Unit::kCount, ""),
         Ratio(told(queue.mean_occupancy_ratio), reason), Ratio(told(queue.full_ratio), reason),
         Ratio(told(queue.empty_ratio), reason),
         Number(told(static_cast<double>(queue.puts_count)), Unit::kCount, reason)});
  }
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("queues", 20, Queues);

}  // namespace
}  // namespace headrace::dashboards
