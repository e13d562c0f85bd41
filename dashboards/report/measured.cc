#include "dashboards/report/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/ascii.h"

namespace headrace::dashboards {
namespace {

Source SourceOf(const std::string& name) {
  for (const Source source :
       {Source::kCounter, Source::kEbpf, Source::kAccount, Source::kEstimate}) {
    if (name == SourceName(source)) return source;
  }
  return Source::kEstimate;
}

}  // namespace

std::optional<double> SumOf(const analysis::RunView& run, const std::string& metric,
                            const Wanted& wanted) {
  std::optional<double> sum;
  for (const analysis::MeasurementRow& row : run.measurements) {
    if (row.metric != metric || !row.value || (wanted && !wanted(row))) continue;
    sum = sum.value_or(0) + *row.value;
  }
  return sum;
}

Quantity Measured(const analysis::RunView& run, const std::string& metric, Unit unit,
                  const std::string& reason, const Wanted& wanted) {
  const auto sum = SumOf(run, metric, wanted);
  if (!sum) return Quantity::Unavailable(reason, unit);
  Source source = Source::kCounter;
  for (const analysis::MeasurementRow& row : run.measurements) {
    if (row.metric == metric && (!wanted || wanted(row))) {
      source = std::max(source, SourceOf(row.source));
    }
  }
  return Quantity::Of(*sum, unit, source);
}

std::optional<double> PerSecond(const analysis::RunView& run, std::optional<double> amount) {
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  if (!amount || seconds <= 0) return std::nullopt;
  return *amount / seconds;
}

std::map<int64_t, double> HistogramOf(const analysis::RunView& run, const std::string& metric,
                                      const Wanted& wanted) {
  std::map<int64_t, double> histogram;
  for (const analysis::MeasurementRow& row : run.measurements) {
    if (row.metric != metric || !row.bucket || !row.value || (wanted && !wanted(row))) continue;
    histogram[*row.bucket] += *row.value;
  }
  return histogram;
}

std::optional<double> HistogramQuantile(const std::map<int64_t, double>& histogram, double q) {
  double total = 0;
  for (const auto& [bucket, events] : histogram) total += std::max(0.0, events);
  if (total <= 0) return std::nullopt;
  double before = 0;
  for (const auto& [bucket, events] : histogram) {
    if (events <= 0) continue;
    if (before + events >= q * total) {
      const double inside = std::clamp((q * total - before) / events, 0.0, 1.0);
      if (bucket <= 0) return inside;  // the first bucket holds 0 and 1
      return static_cast<double>(bucket) * std::exp2(inside);
    }
    before += events;
  }
  return static_cast<double>(histogram.rbegin()->first) * 2;
}

std::string WhyNot(const analysis::RunView& run, const std::vector<std::string>& words) {
  bool ran = false;
  std::string why;
  for (const analysis::ProbeRow& probe : run.probes) {
    const std::string name = LowerCase(probe.probe);
    const bool meant = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return name.find(LowerCase(word)) != std::string::npos;
    });
    if (!meant) continue;
    if (probe.state == "unavailable") {
      if (why.empty()) why = probe.reason + (probe.fix.empty() ? "" : " -> " + probe.fix);
    } else {
      ran = true;
    }
  }
  if (ran) return "measured, but nothing of it was seen";
  if (!why.empty()) return why;
  return fmt::format("not measured at level {}", run.run.accounting_level);
}

std::string OwnerOf(const analysis::MeasurementRow& row) {
  if (!row.operator_name.empty()) {
    return row.stage.empty() || row.stage == row.operator_name
               ? row.operator_name
               : fmt::format("{} ({})", row.operator_name, row.stage);
  }
  if (!row.thread.empty()) return row.thread;
  return row.process.empty() ? "all" : row.process;
}

}  // namespace headrace::dashboards
