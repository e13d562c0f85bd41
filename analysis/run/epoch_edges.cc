#include "analysis/run/epoch_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/run/counter_sums.h"
#include "analysis/run/window_rates.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr size_t kEdgeWindows = 4;  // that an edge may take

// What the source had handed out by the end of each window.
std::vector<double> HandedOut(const RunView& run) {
  std::vector<double> sums;
  std::optional<size_t> source;
  for (size_t i = 0; i < run.operators.size() && !source; ++i) {
    const OperatorRow& op = run.operators[i];
    const bool first_stage = run.stages.empty() || op.stage == run.stages[0].name;
    if (op.kind == "fetch" || (first_stage && op.name.find('.') == std::string::npos)) source = i;
  }
  double sum = 0;
  for (const WindowRow& window : run.windows) {
    for (size_t i = 0; i < run.operators.size(); ++i) {
      // Splits that a cache holds go past `fetch`.
      if (i == source || run.operators[i].name == "cache.hit") {
        sum += static_cast<double>(window.operators[i].completions_count);
      }
    }
    sums.push_back(sum);
  }
  return sums;
}

// The windows of [first, last) in which an epoch of so many splits ended.
std::vector<size_t> EndsOfEpochs(const std::vector<double>& handed, double splits, size_t first,
                                 size_t last) {
  std::vector<size_t> ends;
  double next = splits;
  for (size_t w = 0; w < handed.size(); ++w) {
    if (handed[w] < next) continue;
    // Not by steps: beyond 2^53 one more is no more, and a damaged count may be that large.
    next = (std::floor(handed[w] / splits) + 1) * splits;
    // What follows the last row of the last epoch is the end.
    if (w >= first && w + 1 < last) ends.push_back(w);
  }
  return ends;
}

// What each end cost in steps, against the rates of the windows between them.
void MeasureEdges(const RunView& run, const std::vector<size_t>& ends, size_t first, size_t last,
                  const std::vector<double>& between, EpochEdges* found) {
  const double typical = Quantile(between, 0.5);
  std::vector<double> losses;
  double window_s = 0;
  for (const size_t e : ends) {
    double lost = 0;
    for (size_t w = e; w < std::min(last, e + kEdgeWindows); ++w) {
      lost += (typical - RateOf(run.windows[w])) * Seconds(run.windows[w].duration_ns);
    }
    losses.push_back(lost);
    window_s += Seconds(run.windows[e].duration_ns) / static_cast<double>(ends.size());
  }
  // One edge has no spread of its own; between edges, windows vary as much.
  const double noise = std::sqrt(Variance(between) * static_cast<double>(kEdgeWindows)) * window_s;
  const double spread = std::max(noise, std::sqrt(Variance(losses)));
  const double lost = Mean(losses);
  const double error = 1.645 * spread / std::sqrt(static_cast<double>(losses.size()));
  const double rows = run.steps.steps_count > 0 ? static_cast<double>(run.steps.rows_count) /
                                                      static_cast<double>(run.steps.steps_count)
                                                : 0;
  found->edges = ends.size();
  found->lost_steps = lost;
  found->lost_rows = lost * rows;
  found->lost_interval = {(lost - error) * rows, (lost + error) * rows};
  double steady_s = 0;
  for (size_t w = first; w < last; ++w) steady_s += Seconds(run.windows[w].duration_ns);
  if (typical > 0 && steady_s > 0) {
    found->lost_ratio = lost * static_cast<double>(ends.size()) / (typical * steady_s);
  }
  found->separated = lost - error > 0 && lost > kEpochEdgeWorth * typical * window_s;
}

EpochEdges UnknownEdges(std::string why) {
  EpochEdges edges;
  edges.unknown = std::move(why);
  return edges;
}

}  // namespace

EpochEdges FindEpochEdges(const RunView& run, size_t first, size_t last, std::vector<char>* edge) {
  if (!run.run.epoch_splits_count || *run.run.epoch_splits_count <= 0) {
    return UnknownEdges("how much an epoch has is not recorded");
  }
  const double splits = static_cast<double>(*run.run.epoch_splits_count);
  const std::vector<double> handed = HandedOut(run);
  if (handed.empty() || handed.back() <= splits) {
    return UnknownEdges("the run ended with its first epoch");
  }
  const std::vector<size_t> ends = EndsOfEpochs(handed, splits, first, last);
  if (ends.empty()) return UnknownEdges("no end of an epoch lies within the steady part");
  if (static_cast<double>(last - first) < kEpochEdgesApart * static_cast<double>(ends.size())) {
    return UnknownEdges(fmt::format(
        "an epoch lasts {:.2g} s, too short for windows of {:.2g} s to separate its edges",
        Seconds(run.run.duration_ns) / std::max(1.0, handed.back() / splits),
        Seconds(run.windows[first].duration_ns)));
  }
  std::vector<char> near(run.windows.size(), 0);
  for (const size_t e : ends) {
    for (size_t w = e; w < std::min(last, e + kEdgeWindows); ++w) near[w] = 1;
  }
  std::vector<double> between;
  for (size_t w = first; w < last; ++w) {
    if (near[w] == 0) between.push_back(RateOf(run.windows[w]));
  }
  if (between.size() < FewestWindows()) {
    return UnknownEdges("too few windows lie between the ends of epochs");
  }
  EpochEdges found;
  MeasureEdges(run, ends, first, last, between, &found);
  if (found.separated) *edge = near;
  return found;
}

}  // namespace headrace::analysis
