// Fill of each queue: full means the reader is slow, empty that the writer is.
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

std::optional<Section> Queues(const analysis::RunView& run, const analysis::Statements&) {
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
  for (const analysis::QueueRow& queue : run.queues) {
    const std::string reason = "no level was recorded";
    table.rows.push_back({queue.name, queue.producer_stage,
                          queue.consumer_stage.empty() ? "consumer" : queue.consumer_stage,
                          Number(static_cast<double>(queue.capacity_count), Unit::kCount, ""),
                          Ratio(queue.mean_occupancy_ratio, reason),
                          Ratio(queue.full_ratio, reason), Ratio(queue.empty_ratio, reason),
                          Number(static_cast<double>(queue.puts_count), Unit::kCount, "")});
  }
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("queues", 20, Queues);

}  // namespace
}  // namespace headrace::dashboards
