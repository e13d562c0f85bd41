// What reaches the devices: requests by size and latency.
#include <fmt/format.h>

#include "analysis/run/settings.h"
#include "base/units.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/report/measured.h"

namespace headrace::dashboards {
namespace {

constexpr int64_t kSmallBytes = 128 << 10;

Card Requests(const LoadedRun& loaded) {
  Card card;
  card.question = "What reaches the device?";
  card.sql =
      "SELECT metric, direction, bucket, SUM(events_count) AS events_count FROM io_histogram WHERE "
      "run_id = {run} AND operator IS NOT NULL GROUP BY metric, direction, bucket ORDER BY metric, "
      "direction, bucket";
  const analysis::RunView& run = loaded.run;
  const bool operators = !run.operators.empty();
  const auto own = [&](const analysis::MeasurementRow& row) {
    return row.cause == "read" &&
           (operators ? !row.operator_name.empty() : row.process_id.has_value());
  };
  double all = 0, small = 0;
  for (const auto& [bucket, events] : HistogramOf(run, "block_size_count", own)) {
    all += events;
    if (bucket < kSmallBytes) small += events;
  }
  if (all == 0) {
    const std::string why = WhyNot(run, {"block"});
    const bool none_seen = why.find("nothing of it was seen") != std::string::npos ||
                           !HistogramOf(run, "block_size_count").empty();
    card.empty = none_seen ? "No read of this program reached a block device: it came from memory "
                             "or over a network."
                           : "Requests were not seen: " + why + ".";
    if (none_seen && !run.run.pipeline_path.empty()) {
      card.command = fmt::format("{} run {} --cold{}", run.program, analysis::PipelineWord(run.run),
                                 run.database_option);
    }
    return card;
  }
  card.answer =
      fmt::format("{:.0f} reads, {} of them below 128 KiB.", all, FormatPercent(small / all));
  card.read = {
      "Sizes and latencies of requests that operators of this program caused at block devices.",
      "Reads that the page cache answered are not among them."};
  return card;
}

HR_CARD("requests", Requests);

}  // namespace
}  // namespace headrace::dashboards
