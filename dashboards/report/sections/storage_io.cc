// Block requests and file reads: how many, how large, how fast, in what order, and what was read in
// vain.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/table_rows.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;
using analysis::RunView;

struct Place {
  std::string owner, device, direction;
  auto operator<=>(const Place&) const = default;
};

// Owner of requests that are not the target's.
constexpr const char* kOthers = "others";

Table Requests(const RunView& run, bool by_owner) {
  Table table{by_owner ? "block_io_by_owner" : "block_io",
              by_owner ? "By operator or thread" : "",
              {{"device", "device"},
               {"direction", "direction"},
               {"owner", "owner"},
               {"requests_per_second", "requests/s"},
               {"bytes_per_second", "bytes/s"},
               {"mean_size_bytes", "mean size"},
               {"size_p50_bytes", "p50 size"},
               {"mean_latency_seconds", "mean time"},
               {"latency_p50_seconds", "p50"},
               {"latency_p99_seconds", "p99"},
               {"sequential_ratio", "sequential"}},
              {}};
  table.text_rows = by_owner ? 6 : 8;
  const auto owner_of = [&](const MeasurementRow& row) -> std::string {
    if (!by_owner) return "all";
    return !row.process_id ? kOthers : OwnerOf(row);
  };
  std::set<Place> places;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "block_requests_count" || row.bucket) continue;
    places.insert({owner_of(row), row.subject, row.cause});
  }
  std::vector<WeightedRow> rows;
  for (const Place& place : places) {
    const Wanted of = [&](const MeasurementRow& row) {
      return row.subject == place.device && row.cause == place.direction &&
             owner_of(row) == place.owner;
    };
    const Wanted plain = [&](const MeasurementRow& row) { return of(row) && !row.bucket; };
    const double requests = SumOf(run, "block_requests_count", plain).value_or(0);
    const auto bytes = SumOf(run, "block_bytes", plain);
    const auto latency = SumOf(run, "block_latency_ns", plain);
    const auto sequential = SumOf(run, "block_sequential_count", plain);
    const auto each = [&](std::optional<double> sum) {
      return sum && requests > 0 ? std::optional<double>(*sum / requests) : std::nullopt;
    };
    const auto sizes = HistogramOf(run, "block_size_count", of);
    const auto times = HistogramOf(run, "block_latency_count", of);
    const std::string none = "no request ended while it was watched";
    rows.push_back({requests,
                    {place.device, place.direction, place.owner,
                     Number(PerSecond(run, requests), Unit::kCount, "no duration recorded"),
                     Number(PerSecond(run, bytes), Unit::kBytesPerSecond, none),
                     Bytes(each(bytes), none), Bytes(HistogramQuantile(sizes, 0.5), none),
                     Number(each(latency), Unit::kNanoseconds, none),
                     Number(HistogramQuantile(times, 0.5), Unit::kNanoseconds, none),
                     Number(HistogramQuantile(times, 0.99), Unit::kNanoseconds, none),
                     Ratio(each(sequential), "the order of requests was not measured")}});
  }
  AddHeaviestFirst(std::move(rows), &table);
  return table;
}

std::optional<Section> BlockIo(const RunView& run, const analysis::Statements&) {
  Section section{"block_io_summary", "", {}, {}, {}};
  if (!run.Has("block_requests_count")) {
    section.facts.push_back({"unavailable", WhyNot(run, {"block"})});
    return section;
  }
  section.title = "Block requests (percentiles within a factor of two)";
  section.tables.push_back(Requests(run, false));
  Table owners = Requests(run, true);
  const bool any_own =
      std::any_of(run.measurements.begin(), run.measurements.end(), [](const MeasurementRow& row) {
        return row.metric == "block_requests_count" && row.process_id.has_value();
      });
  if (any_own && owners.rows.size() > 1) section.tables.push_back(std::move(owners));
  return section;
}

std::optional<Section> FileIo(const RunView& run, const analysis::Statements&) {
  Section section{"file_io", "", {}, {}, {}};
  if (!run.Has("file_reads_count") && !run.Has("file_read_bytes")) {
    section.facts.push_back({"unavailable", WhyNot(run, {"file"})});
    return section;
  }
  section.title = "File reads";
  const std::string none = "none was seen";
  const auto by = [](const char* cause) {
    return [cause](const MeasurementRow& row) { return row.cause == cause; };
  };
  const Quantity cache = Measured(run, "file_read_bytes", Unit::kBytes, none, by("cache"));
  const Quantity device = Measured(run, "file_read_bytes", Unit::kBytes, none, by("device"));
  const Quantity all = Measured(run, "file_read_bytes", Unit::kBytes, none);
  const Quantity added = Measured(run, "page_cache_added_bytes", Unit::kBytes, none);
  const Quantity unused = Measured(run, "readahead_unused_bytes", Unit::kBytes, none);
  const Quantity reads = Measured(run, "file_reads_count", Unit::kCount, none);
  const Quantity over = Divide(added, all, Unit::kRatio);
  section.facts = {{"reads_count", reads},
                   {"read_bytes", all},
                   {"read_from_cache_bytes", cache},
                   {"read_from_device_bytes", device},
                   {"page_cache_added_bytes", added},
                   {"readahead_unused_bytes", unused},
                   {"device_bytes_per_byte_read", over}};
  std::string text;
  if (all.available()) text += FormatBytes(all.value()) + " read";
  if (reads.available()) text += fmt::format(" in {} calls", FormatCount(reads.value()));
  if (cache.available() && all.available() && all.value() > 0) {
    text += fmt::format(", {} of it from the page cache",
                        FormatPercent(std::min(1.0, cache.value() / all.value())));
  }
  if (over.available()) {
    text += fmt::format("; {:.2f} bytes were brought into memory for each byte read", over.value());
  }
  if (unused.available()) {
    text += fmt::format("; {} read ahead and never used", FormatBytes(unused.value()));
  }
  if (!text.empty()) section.sentences.push_back({"files", text});
  return section;
}

HR_SECTION("block io", 14, BlockIo);
HR_SECTION("file io", 15, FileIo);

}  // namespace
}  // namespace headrace::dashboards
