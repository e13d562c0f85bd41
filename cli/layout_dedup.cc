#include "cli/layout_dedup.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "experiments/dedup_sample.h"
#include "reader/dwrf/file_reader.h"

namespace headrace::cli {
namespace {

using reader::DedupFactor;

double Ratio(double a, double b) { return b > 0 ? a / b : 1; }

std::string Clustered(const std::optional<double>& factor) {
  return factor ? fmt::format("{:.2f}", *factor) : "not known";
}

void PrintText(const std::string& name, const reader::DedupSample& sample,
               const std::vector<DedupFactor>& groups,
               const experiments::DedupSampleOptions& options) {
  const experiments::DedupTotals totals = experiments::SumOf(groups);
  fmt::print("{}: {} rows read, in batches of {}, each compared with {}\n\n", Printable(name),
             sample.rows, options.batch_rows,
             options.dedup.scope == reader::DedupScope::kNeighbours ? "the row before it"
                                                                    : "all of its batch");
  fmt::print("{:44} {:>8} {:>10} {:>6} {:>11} {:>14}\n", "group", "features", "bytes/row", "share",
             "factor now", "if clustered");
  for (const DedupFactor& group : groups) {
    fmt::print("{:44} {:>8} {:>10.1f} {:>6} {:>11.2f} {:>14}\n", Printable(group.name),
               group.keys.size(),
               static_cast<double>(group.bytes) / static_cast<double>(sample.rows),
               FormatPercent(static_cast<double>(group.bytes) / totals.bytes), group.now,
               Clustered(group.clustered));
  }
  fmt::print(
      "{:44} {:>8} {:>10.1f} {:>6} {:>11.2f} {:>14}\n", "all", sample.features.size(),
      totals.bytes / static_cast<double>(sample.rows), "", Ratio(totals.bytes, totals.now),
      Clustered(totals.clustered ? std::optional<double>(Ratio(totals.bytes, *totals.clustered))
                                 : std::nullopt));
  if (!totals.clustered)
    fmt::print(
        "\nWhat clustering would give is not known: the table has no column '{}' of "
        "integers (--session names another).\n",
        Printable(options.session));
}

void PrintJson(const std::string& name, const reader::DedupSample& sample,
               const std::vector<DedupFactor>& groups,
               const experiments::DedupSampleOptions& options) {
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
  };
  const experiments::DedupTotals totals = experiments::SumOf(groups);
  nlohmann::ordered_json out = {
      {"schema", "headrace.dedup/1"},
      {"table", name},
      {"rows_count", sample.rows},
      {"batch_rows_count", options.batch_rows},
      {"scope", options.dedup.scope == reader::DedupScope::kNeighbours ? "neighbours" : "batch"}};
  out["list_bytes"] = totals.bytes;
  out["factor_now_ratio"] = Ratio(totals.bytes, totals.now);
  out["factor_clustered_ratio"] =
      number(totals.clustered ? std::optional<double>(Ratio(totals.bytes, *totals.clustered))
                              : std::nullopt);
  out["groups"] = nlohmann::ordered_json::array();
  for (const DedupFactor& group : groups)
    out["groups"].push_back({{"name", group.name},
                             {"features", group.keys},
                             {"weighted", group.weighted},
                             {"list_bytes", group.bytes},
                             {"factor_now_ratio", group.now},
                             {"factor_clustered_ratio", number(group.clustered)}});
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void PrintDedup(const reader::Table& table, const std::string& name,
                reader::dwrf::Projection projection, const experiments::DedupSampleOptions& options,
                bool json) {
  const reader::DedupSample sample =
      experiments::ReadDedupSample(table, std::move(projection), options, INT64_MAX);
  if (sample.features.empty() || sample.rows == 0)
    throw Error(ExitCode::kUsage, "the projection has no sparse feature to deduplicate", "--dedup",
                "add keys of maps of lists to it");
  std::vector<DedupFactor> groups =
      reader::MeasureGroups(sample, options.dedup, options.batch_rows, true);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const DedupFactor& a, const DedupFactor& b) { return a.bytes > b.bytes; });
  json ? PrintJson(name, sample, groups, options) : PrintText(name, sample, groups, options);
}

}  // namespace headrace::cli
