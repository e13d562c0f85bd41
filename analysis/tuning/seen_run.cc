#include "analysis/tuning/seen_run.h"

#include <algorithm>
#include <cmath>

#include "analysis/run/phases.h"
#include "analysis/run/run_slice.h"
#include "analysis/statistics/statistics.h"
#include "analysis/tuning/tuner_plan.h"

namespace headrace::analysis {
namespace {

double RateOf(const WindowRow& window) {
  return window.duration_ns > 0 ? static_cast<double>(window.steps.steps_count) /
                                      (static_cast<double>(window.duration_ns) * 1e-9)
                                : 0;
}

}  // namespace

void SeenRun::Read(const RunView& view, const KnobValues& current) {
  run = &view;
  std::vector<double> lengths;
  for (size_t i = view.windows.size() - std::min<size_t>(20, view.windows.size());
       i < view.windows.size(); ++i) {
    lengths.push_back(static_cast<double>(view.windows[i].duration_ns));
  }
  if (lengths.empty()) return;
  window_ns = std::max<int64_t>(1'000'000, std::llround(Quantile(lengths, 0.5)));
  now_ns = view.windows.back().start_ns + view.windows.back().duration_ns;
  // In the last window, at the settings in force.
  const std::vector<size_t> last = {view.windows.size() - 1};
  if (view.windows.back().start_ns < segments_.back().settled_ns) return;
  const std::optional<double> rest = RestOfProcess(PartAt(current, last));
  if (!rest) return;
  constexpr size_t kLooks = 20;
  rests_.push_back(*rest);
  if (rests_.size() > kLooks) rests_.erase(rests_.begin());
}

void SeenRun::Changed(const KnobValues& knobs, int64_t at_ns, int64_t settled_ns) {
  segments_.back().to_ns = std::min(segments_.back().to_ns, at_ns);
  segments_.push_back({knobs, settled_ns, kForever});
}

std::optional<double> SeenRun::Rest() const {
  if (rests_.empty()) return std::nullopt;
  return Quantile(rests_, 0.9) + extra_bytes;  // not too little
}

bool SeenRun::Usable(const WindowRow& window) const {
  if (window.duration_ns <= 0) return false;
  const int64_t end_ns = window.start_ns + window.duration_ns;
  for (const auto& [from_ns, to_ns] : disturbed_) {
    if (window.start_ns < to_ns && end_ns > from_ns) return false;
  }
  return true;
}

std::vector<size_t> SeenRun::WindowsAt(const KnobValues& knobs) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < run->windows.size(); ++i) {
    const WindowRow& window = run->windows[i];
    if (window.start_ns < known_from_ns || !Usable(window)) continue;
    for (const Segment& segment : segments_) {
      if (segment.knobs != knobs || window.start_ns < segment.settled_ns ||
          window.start_ns + window.duration_ns > segment.to_ns)
        continue;
      found.push_back(i);
      break;
    }
  }
  return found;
}

std::vector<size_t> SeenRun::WindowsSince(int64_t from_ns) const {
  std::vector<size_t> found;
  const int64_t first_ns = std::max({from_ns, segments_.back().settled_ns, known_from_ns});
  for (size_t i = 0; i < run->windows.size(); ++i) {
    if (run->windows[i].start_ns >= first_ns && Usable(run->windows[i])) found.push_back(i);
  }
  return found;
}

double SeenRun::RateOver(const std::vector<size_t>& windows) const {
  double steps = 0, ns = 0;
  for (const size_t w : windows) {
    steps += static_cast<double>(run->windows[w].steps.steps_count);
    ns += static_cast<double>(run->windows[w].duration_ns);
  }
  return ns > 0 ? steps / ns * 1e9 : 0;
}

std::vector<double> SeenRun::RatesOf(const std::vector<size_t>& windows) const {
  std::vector<double> rates;
  for (const size_t w : windows) rates.push_back(std::max(1e-9, RateOf(run->windows[w])));
  return rates;
}

std::vector<size_t> SeenRun::Steady(const std::vector<size_t>& windows) const {
  const auto [first, last] = SteadyRange(RatesOf(windows));
  return {windows.begin() + static_cast<long>(first), windows.begin() + static_cast<long>(last)};
}

double SeenRun::Spread(const std::vector<size_t>& windows) const {
  const std::vector<double> rates = RatesOf(windows);
  const double mean = Mean(rates);
  return mean > 0 ? std::sqrt(Variance(rates)) / mean : 1;
}

// What a batch cost at each of the settings seen, for the growth of costs with load.
std::vector<LoadRow> SeenRun::Loads(const KnobValues& own) const {
  std::vector<LoadRow> loads;
  for (const LoadRow& load : run->loads) {
    if (!load.own) loads.push_back(load);
  }
  std::vector<KnobValues> seen;
  for (const Segment& segment : segments_) {
    if (std::find(seen.begin(), seen.end(), segment.knobs) != seen.end()) continue;
    seen.push_back(segment.knobs);
    double cpu_s = 0, rows = 0, seconds = 0;
    const std::vector<size_t> windows = WindowsAt(segment.knobs);
    for (const size_t w : windows) {
      const WindowRow& window = run->windows[w];
      for (const StageCounters& stage : window.stages) {
        cpu_s += static_cast<double>(stage.on_cpu_ns.value_or(0)) * 1e-9;
      }
      rows += static_cast<double>(window.steps.rows_count);
      seconds += static_cast<double>(window.duration_ns) * 1e-9;
    }
    if (windows.size() < 5 || cpu_s <= 0 || rows <= 0) continue;
    loads.push_back({cpu_s / rows, cpu_s / seconds, segment.knobs == own});
  }
  return loads;
}

RunView SeenRun::PartAt(const KnobValues& knobs, const std::vector<size_t>& windows) const {
  RunView part = SliceOf(*run, windows);
  for (StageRow& stage : part.stages) {
    const auto threads = knobs.find(stage.name + ".parallelism");
    if (threads != knobs.end()) stage.last_parallelism_count = threads->second;
  }
  for (QueueRow& queue : part.queues) {
    const auto capacity = knobs.find(queue.producer_stage + ".queue");
    if (capacity != knobs.end()) queue.capacity_count = capacity->second;
  }
  part.loads = Loads(knobs);
  return part;
}

}  // namespace headrace::analysis
