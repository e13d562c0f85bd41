// Queries of sections on a run's measurements: sums over labels, percentiles of histograms, and why
// something is missing.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run/run_view.h"
#include "base/quantity.h"

namespace headrace::dashboards {

using Wanted = std::function<bool(const analysis::MeasurementRow&)>;

// Sum of a metric's values over the rows for which `wanted` is true; nothing if there is no such
// row.
std::optional<double> SumOf(const analysis::RunView& run, const std::string& metric,
                            const Wanted& wanted = nullptr);
// The same as a quantity with its source, or the reason why it is not there.
Quantity Measured(const analysis::RunView& run, const std::string& metric, Unit unit,
                  const std::string& reason, const Wanted& wanted = nullptr);

// An amount of the whole run by its duration; absent where either is unknown.
std::optional<double> PerSecond(const analysis::RunView& run, std::optional<double> amount);

// Lower bound of a power-of-two bucket -> events.
std::map<int64_t, double> HistogramOf(const analysis::RunView& run, const std::string& metric,
                                      const Wanted& wanted = nullptr);
// The q-quantile of a histogram, interpolated within its bucket on a logarithmic scale: exact
// within a factor of two. Nothing for no events.
std::optional<double> HistogramQuantile(const std::map<int64_t, double>& histogram, double q);

// Why no probe whose name contains one of `words` delivered: its reason and what would change it;
// "no event was seen" where it ran; "not measured at accounting level N" where there is none.
std::string WhyNot(const analysis::RunView& run, const std::vector<std::string>& words);

// "operator (stage)", "process thread", or "all"; what a row of a measurement is about.
std::string OwnerOf(const analysis::MeasurementRow& row);

}  // namespace headrace::dashboards
