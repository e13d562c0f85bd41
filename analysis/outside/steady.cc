#include "analysis/outside/steady.h"

#include <algorithm>
#include <set>

#include "analysis/statistics/statistics.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// Whether processes of each kind lived for much of the time: not so a tool that is run once.
std::vector<bool> LiveAlong(const Outside& out, const Slices& slices,
                            const std::vector<size_t>& all) {
  std::vector<double> longest(out.kinds.size());
  const Totals totals = Sum(out, slices, all);
  for (size_t g = 0; g < out.groups.size(); ++g) {
    double& seconds = longest[out.groups[g].kind];
    seconds = std::max(seconds, totals.times[g].total());
  }
  const auto most = std::max_element(longest.begin(), longest.end());
  const double enough = most == longest.end() ? 0 : kLivesAlong * *most;
  std::vector<bool> live(longest.size());
  for (size_t k = 0; k < live.size(); ++k) live[k] = longest[k] >= enough;
  return live;
}

// How often the consumer exchanged with others in each slice; or, where other processes work for
// it until near the end, these with any of its threads: a program that loads its libraries starts
// threads of its own, and tools. A helper that is asked now and then works for nobody, and neither
// does a library's service.
std::vector<double> ExchangeIn(const Outside& out, const Slices& slices, size_t consumer,
                               const std::vector<size_t>& all) {
  const size_t kind = out.groups[consumer].kind;
  std::vector<double> with_threads, with_processes;
  size_t working = 0, first = all.size(), last = 0;  // slices in which they did
  const std::vector<bool> live = LiveAlong(out, slices, all);
  const auto serves = [&](size_t k) { return k != kind && out.kinds[k].is_service; };
  for (const size_t s : all) {
    double threads = 0, processes = 0;
    for (size_t e = 0; e < slices.num_edges; ++e) {
      const WakeEdge& edge = out.edges[e];
      if (!edge.waker || *edge.waker == edge.wakee) continue;
      const double count = slices.counts[s][e];
      const size_t of = out.groups[*edge.waker].kind, to = out.groups[edge.wakee].kind;
      if (!live[of] || !live[to] || serves(of) || serves(to)) continue;
      if (*edge.waker == consumer || edge.wakee == consumer) threads += count;
      if (of != to && (of == kind || to == kind)) processes += count;
    }
    with_threads.push_back(threads);
    with_processes.push_back(processes);
    if (processes <= 0) continue;
    ++working;
    first = std::min(first, with_processes.size() - 1);
    last = with_processes.size();
  }
  // What is read every few seconds is in one of several slices.
  const bool is_steady = 4 * last > 3 * all.size() && 3 * working > last - first;
  return is_steady ? with_processes : with_threads;
}

}  // namespace

std::vector<size_t> WithDevice(const RunView& run, const Slices& slices,
                               const std::vector<size_t>& all) {
  std::set<std::string> own;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "gpu_processes_count" && row.process_id) own.insert(row.subject);
  }
  int64_t first_ns = INT64_MAX, last_ns = 0;
  for (const AcceleratorUseRow& row : run.accelerator_use) {
    if (row.use_ratio < kAcceleratorUnused || !own.contains(row.device)) continue;
    first_ns = std::min(first_ns, row.start_ns);
    last_ns = std::max(last_ns, row.start_ns + row.duration_ns);
  }
  std::vector<size_t> used;
  for (const size_t s : all) {
    const int64_t start_ns = slices.index[s] * run.course_slice_ns;
    if (start_ns >= first_ns && start_ns < last_ns) used.push_back(s);
  }
  return static_cast<double>(used.size()) < kFewestSlices ? all : used;
}

std::vector<size_t> Steady(const Outside& out, const Slices& slices, size_t consumer,
                           const std::vector<size_t>& all) {
  const std::vector<double> exchange = ExchangeIn(out, slices, consumer, all);
  if (static_cast<double>(exchange.size()) < kFewestSlices) return all;
  std::vector<double> some = exchange;
  std::erase(some, 0.0);
  if (some.empty()) return all;
  const double enough = kSteadyExchange * Quantile(some, 0.75);
  size_t first = 0, last = exchange.size();
  while (first < last && exchange[first] < enough) ++first;
  while (last > first && exchange[last - 1] < enough) --last;
  // The slices in which it begins and ends are only partly of the pipeline.
  const auto left = [&] { return static_cast<double>(last - first); };
  if (first > 0 && left() > kFewestSlices) ++first;
  if (last < exchange.size() && left() > kFewestSlices) --last;
  if (left() < kFewestSlices) return all;
  return {all.begin() + static_cast<std::ptrdiff_t>(first),
          all.begin() + static_cast<std::ptrdiff_t>(last)};
}

}  // namespace headrace::analysis
