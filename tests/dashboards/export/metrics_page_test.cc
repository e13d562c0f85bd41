// docs/metrics.md is made from the project's list of metrics and those that exports add;
// HEADRACE_UPDATE_GOLDEN=1 rewrites it. The Grafana dashboard and the alert rules name nothing
// else.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "dashboards/export/run_metrics.h"
#include "probes/metric.h"

namespace headrace::dashboards {
namespace {

std::string Contents(const std::string& path) {
  std::ifstream file(std::string(HEADRACE_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string SampleName(const MetricFamily& family) {
  return family.full_name() + (family.counter ? "_total" : "");
}

MetricFamily FamilyOfMetric(const probes::Metric& metric) {
  const BaseUnit base = InBaseUnits(metric.name, metric.unit);
  return {base.name,
          base.unit,
          metric.kind == probes::MetricKind::kCounter,
          std::string(metric.help),
          {}};
}

// A histogram: no export has it.
bool HasBuckets(const probes::Metric& metric) {
  return metric.help.find("the bucket is") != std::string_view::npos;
}

std::string Page() {
  std::string page =
      "# Metrics\n"
      "\n"
      "Every figure that headrace measures, with its unit, and the name it has in OpenMetrics and "
      "Prometheus\n"
      "(`headrace export RUN --format openmetrics`, and `/metrics` of `headrace serve`). OTLP has "
      "the same names as\n"
      "`headrace.NAME`, without `_total`. In exports units are base units: seconds, "
      "bytes, "
      "ratios from 0 to 1; the store\n"
      "keeps `_ns` and `_bytes`. What was not measured has no sample.\n"
      "\n"
      "Labels are `run`, and what a figure is about: `stage`, `operator`, `queue`, `resource`, "
      "`kind`, `what`, `probe`, `state`,\n"
      "`process`, `pid`, `process_id`, `subject` (device, interface, socket), `cause` (cause, "
      "direction, state). Figures by thread and\n"
      "buckets of histograms are not exported: views `thread_summary`, `io_histogram` and "
      "`io_size_latency` have them\n"
      "([store.md](store.md)).\n"
      "\n"
      "This page is made by `HEADRACE_UPDATE_GOLDEN=1 build/dashboards_test "
      "--gtest_filter='MetricsPage.*'`.\n"
      "\n"
      "## Totals of a run\n"
      "\n"
      "| name in OpenMetrics | meaning |\n"
      "|---|---|\n";
  for (const MetricFamily& family : RunFamilies()) {
    page += fmt::format("| `{}` | {} |\n", SampleName(family), family.help);
  }
  page +=
      "\n"
      "## Measurements of probes\n"
      "\n"
      "`metric_list` of a run says which of them it holds. The source is where values come from: "
      "the kernel's or a device's counters,\n"
      "eBPF, the pipeline's instrumentation, or an estimate. Counters are those whose exported "
      "name ends in `_total`, and histograms (`-`);\n"
      "the rest are gauges. What has nothing in \"needs\" is measured without a privilege.\n"
      "\n"
      "| metric | unit | source | needs | name in OpenMetrics | meaning |\n"
      "|---|---|---|---|---|---|\n";
  for (const probes::Metric& metric : probes::Metrics()) {
    const std::string needs =
        metric.privilege == "none" ? "" : fmt::format(" {}", metric.privilege);
    page += fmt::format("| `{}` | {} | `{}` |{} | {} | {} |\n", metric.name, metric.unit,
                        SourceName(metric.source), needs,
                        HasBuckets(metric) ? "-" : "`" + SampleName(FamilyOfMetric(metric)) + "`",
                        metric.help);
  }
  return page;
}

TEST(MetricsPage, IsInStepWithTheListOfMetrics) {
  const std::string page = Page();
  if (std::getenv("HEADRACE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(std::string(HEADRACE_SOURCE_DIR) + "/docs/metrics.md") << page;
  }
  EXPECT_EQ(Contents("docs/metrics.md"), page)
      << "docs/metrics.md; HEADRACE_UPDATE_GOLDEN=1 rewrites it, review the difference";
}

TEST(MetricsPage, DashboardAndAlertsNameWhatThereIs) {
  std::set<std::string> known;
  for (const MetricFamily& family : RunFamilies()) known.insert(SampleName(family));
  for (const probes::Metric& metric : probes::Metrics()) {
    if (!HasBuckets(metric)) known.insert(SampleName(FamilyOfMetric(metric)));
  }
  for (const char* path : {"packaging/grafana/headrace.json", "packaging/grafana/alerts.yml"}) {
    const std::string text = Contents(path);
    const std::regex name("headrace_[a-z0-9_]+");
    size_t seen = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it, ++seen) {
      EXPECT_TRUE(known.contains(it->str())) << path << ": no metric " << it->str();
    }
    EXPECT_GE(seen, 5u) << path;
  }
}

TEST(MetricsPage, DashboardHasPanelsApartFromEachOther) {
  const auto dashboard = nlohmann::json::parse(Contents("packaging/grafana/headrace.json"));
  std::set<int> ids;
  std::set<std::pair<int, int>> places;
  ASSERT_GE(dashboard["panels"].size(), 8u);
  for (const auto& panel : dashboard["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second);
    EXPECT_FALSE(panel["title"].get<std::string>().empty());
    EXPECT_FALSE(panel["targets"].empty()) << panel["title"];
    const auto& at = panel["gridPos"];
    for (int x = at["x"]; x < at["x"].get<int>() + at["w"].get<int>(); ++x) {
      ASSERT_LT(x, 24);
      for (int y = at["y"]; y < at["y"].get<int>() + at["h"].get<int>(); ++y) {
        EXPECT_TRUE(places.insert({x, y}).second) << panel["title"] << " covers another";
      }
    }
  }
}

}  // namespace
}  // namespace headrace::dashboards
