// What was asked of the storage: requests, their sizes, what was read beside the wanted.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/run/reads.h"
#include "analysis/run/settings.h"
#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;
using analysis::RunView;

// Own requests where any were seen, else all of the machine's.
Wanted Reading(const RunView& run, bool* own) {
  *own =
      std::any_of(run.measurements.begin(), run.measurements.end(), [](const MeasurementRow& row) {
        return row.metric == "block_size_count" && row.cause == "read" &&
               row.process_id.has_value();
      });
  return [only = *own](const MeasurementRow& row) {
    return row.cause == "read" && (!only || row.process_id.has_value());
  };
}

Table Histogram(const std::map<int64_t, double>& sizes, double total) {
  Table table{"io_sizes",
              "",
              {{"from_bytes", "from"},
               {"to_bytes", "below"},
               {"requests_ratio", "requests"},
               {"requests_below_ratio", "up to here"},
               {"bytes_ratio", "bytes (by the middle of each row)"}},
              {}};
  double bytes = 0, before = 0;
  const auto middle = [](int64_t bucket) {
    return std::max(1.0, static_cast<double>(bucket)) * std::sqrt(2.0);
  };
  for (const auto& [bucket, events] : sizes) bytes += std::max(0.0, events) * middle(bucket);
  for (const auto& [bucket, events] : sizes) {
    if (events <= 0) continue;
    before += events;
    table.rows.push_back(
        {Bytes(static_cast<double>(bucket), ""),
         Bytes(2 * std::max(1.0, static_cast<double>(bucket)), ""), Ratio(events / total, ""),
         Ratio(before / total, ""),
         Quantity::Of(events * middle(bucket) / bytes, Unit::kRatio, Source::kEstimate)});
  }
  return table;
}

std::optional<Section> ReadSizes(const RunView& run, const analysis::Statements& statements) {
  if (run.operators.empty()) return std::nullopt;
  Section section{"reads", "", {}, {}, {}};
  const std::string doubt = statements.doubts.any() ? statements.doubts.Summary() : "";
  const std::optional<analysis::Reads> reads =
      doubt.empty() ? analysis::ReadsOf(run) : std::nullopt;
  if (reads) {
    const std::optional<double> bytes = analysis::BytesSettingOf(run.run, "source.coalesce_gap");
    const std::string gap =
        bytes ? FormatBytes(*bytes)
              : analysis::SettingOf(run.run, "source.coalesce_gap").value_or("a size not recorded");
    section.facts = {{"requests_per_row", Number(reads->requests_per_row, Unit::kCount, "")},
                     {"mean_size_bytes", Bytes(reads->mean_bytes, "")},
                     {"requests_per_stripe", Number(reads->requests_per_stripe, Unit::kCount, "")},
                     {"stripe_rows", Number(reads->stripe_rows, Unit::kRows, "")},
                     {"over_read_ratio", Ratio(reads->over_read_ratio, "")},
                     {"coalesce_gap", gap}};
    section.sentences.push_back(
        {"requests",
         fmt::format("{:.3g} per 1000 rows, {} each on average; {:.3g} a stripe of {:.0f} rows; "
                     "over-read {} of what is read (reads are joined over holes up to {})",
                     1000 * reads->requests_per_row, FormatBytes(reads->mean_bytes),
                     reads->requests_per_stripe, reads->stripe_rows,
                     FormatPercent(reads->over_read_ratio), gap)});
  } else {
    section.facts.push_back(
        {"requests_unavailable",
         doubt.empty() ? "nothing counts requests to the storage (fetch.io)" : doubt});
  }
  bool own = false;
  const auto sizes = HistogramOf(run, "block_size_count", Reading(run, &own));
  double total = 0;
  for (const auto& [bucket, events] : sizes) total += std::max(0.0, events);
  if (total > 0) {
    std::string text;
    for (const auto& [name, q] : {std::pair<const char*, double>{"p5", 0.05},
                                  {"p25", 0.25},
                                  {"p50", 0.5},
                                  {"p75", 0.75},
                                  {"p95", 0.95}}) {
      const auto size = HistogramQuantile(sizes, q);
      section.facts.push_back({std::string("device_size_") + name + "_bytes", Bytes(size, "")});
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, FormatBytes(*size));
    }
    section.sentences.push_back(
        {"device",
         fmt::format("{} read requests {}: {} (within a factor of two)", FormatCount(total),
                     own ? "of this run" : "of all processes", text)});
    section.tables.push_back(Histogram(sizes, total));
  } else {
    section.facts.push_back({"device_sizes_unavailable", WhyNot(run, {"block"})});
  }
  if (!section.sentences.empty()) section.title = "Reads from the storage";
  return section;
}

HR_SECTION("read sizes", 13, ReadSizes);

}  // namespace
}  // namespace headrace::dashboards
