#include "dashboards/export/openmetrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "dashboards/export/escape.h"
#include "dashboards/export/export.h"
#include "dashboards/export/run_metrics.h"

namespace headrace::dashboards {
namespace {

enum class MetricsText { kOpenMetrics, kPrometheus };

// A family's samples under `name`.
void AddSamples(const MetricFamily& family, const std::string& name, std::string* text) {
  for (const MetricFamily::Sample& sample : family.samples) {
    std::string labels;
    for (const auto& [label, value] : sample.labels) {
      labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", label, MetricText(value));
    }
    *text += fmt::format("{}{{{}}} {}\n", name, labels, sample.value);
  }
}

// A help text of one line. The older format has no escape for a quote in it.
std::string HelpText(std::string help) {
  std::replace(help.begin(), help.end(), '"', '\'');
  return MetricText(help);
}

// OpenMetrics describes a counter by its name without "_total", and knows units and infos; the
// older format has neither.
std::string RunMetricsText(collectors::ReadStore& store, int64_t run_id, MetricsText format) {
  std::string text;
  const bool open = format == MetricsText::kOpenMetrics;
  for (const MetricFamily& family : ReadRunMetrics(store, run_id)) {
    const std::string name = family.full_name();
    const std::string sample_name = name + (family.counter ? "_total" : "");
    const bool info = open && name.ends_with("_info");
    const std::string described = !open  ? sample_name
                                  : info ? name.substr(0, name.size() - 5)
                                         : name;
    text += fmt::format("# TYPE {} {}\n", described,
                        info             ? "info"
                        : family.counter ? "counter"
                                         : "gauge");
    if (open && !family.unit.empty()) text += fmt::format("# UNIT {} {}\n", name, family.unit);
    text += fmt::format("# HELP {} {}\n", described, HelpText(family.help));
    AddSamples(family, sample_name, &text);
  }
  if (open) text += "# EOF\n";
  return text;
}

HR_EXPORT("openmetrics",
          {.ending = ".om",
           .holds = "totals of the run by stage, operator, queue, lock, process and device",
           .opens = "Prometheus 2.5 and later, VictoriaMetrics, Grafana Alloy; 'headrace serve' "
                    "answers /metrics with it",
           .write = [](const ExportRequest& request, const ExportSink& sink) {
             sink(OpenMetrics(request.store, request.run_id));
           }});

HR_EXPORT("prometheus",
          {.ending = ".prom",
           .holds = "the same totals in Prometheus' older text format",
           .opens = "node_exporter's textfile collector, promtool check metrics, pushgateway",
           .write = [](const ExportRequest& request, const ExportSink& sink) {
             sink(PrometheusText(request.store, request.run_id));
           }});

}  // namespace

std::string OpenMetrics(collectors::ReadStore& store, int64_t run_id) {
  return RunMetricsText(store, run_id, MetricsText::kOpenMetrics);
}

std::string PrometheusText(collectors::ReadStore& store, int64_t run_id) {
  return RunMetricsText(store, run_id, MetricsText::kPrometheus);
}

}  // namespace headrace::dashboards
