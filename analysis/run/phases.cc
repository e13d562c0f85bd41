#include "analysis/run/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/run/counter_sums.h"
#include "analysis/run/first_steps.h"
#include "analysis/run/window_rates.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// The rate of a window, counting half a step where it has none: such a window is too short for its
// rate, which is not 0.
double RateAtLeast(const WindowRow& window) {
  return window.duration_ns > 0 ? std::max(0.5, static_cast<double>(window.steps.steps_count)) /
                                      Seconds(window.duration_ns)
                                : 1e-9;
}

// Queues may still be filling when the rate is already there: the stages before them then run
// faster than they will. Windows at the front whose rate and fill both differ from what follows.
size_t EndOfFill(const RunView& run, size_t first, size_t last) {
  const size_t n = last - first;
  if (n < 4 * FewestWindows() || run.queues.empty()) return first;
  std::vector<double> rates, fills;
  for (size_t w = first; w < last; ++w) {
    double fill = 0;
    for (const QueueCounters& queue : run.windows[w].queues) {
      fill += queue.mean_occupancy_ratio.value_or(0);
    }
    fills.push_back(fill / static_cast<double>(run.queues.size()));
    rates.push_back(RateAtLeast(run.windows[w]));
  }
  const auto shift = FindShift(rates, kFillShift, FewestWindows());
  if (!shift || shift->at > n / 2) return first;
  const auto middle = fills.begin() + static_cast<long>(shift->at);
  const double before = Mean(std::vector<double>(fills.begin(), middle));
  const double after = Mean(std::vector<double>(middle, fills.end()));
  return after - before > kQueuesFilled ? first + shift->at : first;
}

double FetchedBytes(const RunView& run, const WindowRow& window) {
  double bytes = 0;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    if (run.operators[i].kind != "io" || run.operators[i].name.ends_with(".retry")) continue;
    bytes += static_cast<double>(window.operators[i].bytes_out_bytes);
  }
  return bytes;
}

// The first window after a pass in which devices delivered most of what was read, where memory
// delivered it ever after; `first` where there was no such pass, or too little of the run is left.
size_t EndOfColdPass(const RunView& run, size_t first, size_t last, Phases* found) {
  if (run.run.cold.value_or(0) != 0 || run.device_reads.size() < 3) return first;
  struct Slice {
    int64_t end_ns;
    double device = 0, fetched = 0;
  };
  std::vector<Slice> slices;
  for (const DeviceReadRow& row : run.device_reads) {
    slices.push_back({row.start_ns + row.duration_ns, row.read_bytes, 0});
  }
  // A counter that did not grow has no row: what comes after the last one was read from memory.
  slices.push_back({run.run.duration_ns, 0, 0});
  for (const WindowRow& window : run.windows) {
    const int64_t middle = window.start_ns + window.duration_ns / 2;
    size_t s = 0;
    while (s + 1 < slices.size() && slices[s].end_ns <= middle) ++s;
    slices[s].fetched += FetchedBytes(run, window);
  }
  // What was read where nothing was fetched is not of the table.
  size_t warm = slices.size();
  while (warm > 0 && (slices[warm - 1].fetched <= 0 ||
                      slices[warm - 1].device <= kWarmFromDevice * slices[warm - 1].fetched)) {
    --warm;
  }
  if (warm == 0 || warm == slices.size()) return first;
  double cold_device = 0, cold_fetched = 0;
  for (size_t s = 0; s < warm; ++s) {
    if (slices[s].fetched <= 0) continue;
    cold_device += slices[s].device;
    cold_fetched += slices[s].fetched;
  }
  if (cold_device <= kColdFromDevice * cold_fetched) return first;
  size_t begin = first;
  while (begin < last && run.windows[begin].start_ns < slices[warm - 1].end_ns) ++begin;
  if (last - begin < FewestWindows() || 4 * (last - begin) < last - first) return first;
  double device = 0, fetched = 0;
  for (size_t s = warm; s < slices.size(); ++s) {
    if (slices[s].fetched <= 0) continue;
    device += slices[s].device;
    fetched += slices[s].fetched;
  }
  if (fetched > 0) found->warm_device_ratio = device / fetched;
  return begin;
}

// Whether the windows [first, last) made more batches than all queues and threads of the pipeline
// hold twice over: what fills them is long past.
bool TakesMoreThanQueues(const RunView& run, size_t first, size_t last) {
  if (run.queues.empty() || last <= first) return false;
  int64_t held = 0, steps = 0;
  for (const QueueRow& queue : run.queues) held += queue.capacity_count;
  for (const StageRow& stage : run.stages) held += stage.last_parallelism_count;
  for (size_t w = first; w < last; ++w) steps += run.windows[w].steps.steps_count;
  return steps > 2 * held && static_cast<double>(EndOf(run.windows[last - 1]) -
                                                 run.windows[first].start_ns) > kShortestPhaseNs;
}

void FindSlower(Phases* found) {
  const auto rate = [](const Phase& phase) {
    return static_cast<double>(phase.steps_count) / std::max(1e-9, Seconds(phase.time_ns));
  };
  int64_t all_ns = 0;
  double steady = 0;
  for (const Phase& phase : found->phases) {
    all_ns += phase.time_ns;
    if (phase.kind == PhaseKind::kSteady) steady = rate(phase);
  }
  for (const Phase& phase : found->phases) {
    if (phase.kind != PhaseKind::kCold && phase.kind != PhaseKind::kSlow &&
        phase.kind != PhaseKind::kFirstSteps) {
      continue;
    }
    const double share = all_ns > 0 ? Seconds(phase.time_ns) / Seconds(all_ns) : 0;
    if (share < kSlowerPart || rate(phase) >= kSlowerRate * steady) continue;
    // What a job meets again is said before what a program does once.
    const bool once = phase.kind == PhaseKind::kFirstSteps;
    if (once && found->slower) continue;
    found->slower =
        SlowerPart{phase.kind, phase.time_ns, share, rate(phase), steady, phase.steps_count};
  }
}

// The phases in order, of what each window is.
void Assemble(const RunView& run, const std::vector<PhaseKind>& kinds, Phases* found) {
  for (size_t w = 0; w < run.windows.size(); ++w) {
    const WindowRow& window = run.windows[w];
    Phase* phase = nullptr;
    for (Phase& known : found->phases) {
      if (known.kind == kinds[w]) phase = &known;
    }
    if (phase == nullptr) {
      phase = &found->phases.emplace_back();
      phase->kind = kinds[w];
      phase->start_ns = window.start_ns;
    }
    phase->end_ns = EndOf(window);
    phase->time_ns += window.duration_ns;
    phase->steps_count += window.steps.steps_count;
    if (kinds[w] == PhaseKind::kSteady && window.duration_ns > 0) found->steady.push_back(w);
  }
}

// When the first step began, of which `window` holds the end.
int64_t FirstAskedNs(const WindowRow& window) {
  return EndOf(window) - window.steps.wait_ns - window.steps.compute_ns;
}

// Whether a probe changed the stages' threads in that window, or what they had fetched more was
// still being used up.
bool IsProbed(const RunView& run, const WindowRow& window) {
  constexpr int64_t kUsedUpNs = 200'000'000;
  return std::any_of(run.store_probes.begin(), run.store_probes.end(),
                     [&](const StoreProbeRow& probe) {
                       return window.start_ns < probe.start_ns + probe.duration_ns + kUsedUpNs &&
                              EndOf(window) > probe.start_ns;
                     });
}

}  // namespace

const char* PhaseKindName(PhaseKind kind) {
  constexpr const char* kNames[] = {"start",     "first steps",      "fill",
                                    "cold pass", "slower beginning", "before the change",
                                    "steady",    "edges of epochs",  "probe of the store",
                                    "end"};
  return kNames[static_cast<int>(kind)];
}

std::string Words(const std::optional<SlowerPart>& slower) {
  if (!slower) return "";
  if (slower->kind == PhaseKind::kFirstSteps) {
    return fmt::format(
        "the first {} took {}, {} of the run, and {} left out. A program sets up its "
        "device then, or compiles",
        slower->steps_count == 1 ? std::string("step")
                                 : fmt::format("{} steps", slower->steps_count),
        FormatDuration(static_cast<double>(slower->time_ns)), FormatPercent(slower->time_ratio),
        slower->steps_count == 1 ? "is" : "are");
  }
  return fmt::format(
      "the first {}, {} of the run, made {} instead of {}: {}; statements are about the time after "
      "it, so a job of one epoch is slower than they say",
      FormatDuration(static_cast<double>(slower->time_ns)), FormatPercent(slower->time_ratio),
      FormatRate(slower->rate, "batches"), FormatRate(slower->steady_rate, "batches"),
      slower->kind == PhaseKind::kCold
          ? "the table was read from its device, and from memory from then on"
          : "queues fill sooner, and the cause was not recorded");
}

std::optional<double> SteadyRate(RunView run) {
  if (run.windows.empty()) return std::nullopt;
  run.run.duration_ns = EndOf(run.windows.back());
  double steps = 0, seconds = 0;
  for (const size_t w : FindPhases(run).steady) {
    steps += static_cast<double>(run.windows[w].steps.steps_count);
    seconds += Seconds(run.windows[w].duration_ns);
  }
  return steps > 0 && seconds > 0 ? std::optional<double>(steps / seconds) : std::nullopt;
}

std::pair<size_t, size_t> SteadyRange(const std::vector<double>& rates) {
  constexpr double kPauses = 0.01;  // of the mean rate: callers may put something in place of 0
  if (rates.size() < 3) return {0, rates.size()};
  size_t first = 0, last = rates.size();
  while (first < last && rates[first] <= 0) ++first;
  while (last > first && rates[last - 1] <= 0) --last;
  if (last <= first) return {0, rates.size()};
  const double typical = Quantile({rates.begin() + static_cast<long>(first + (last - first) / 3),
                                   rates.begin() + static_cast<long>(last)},
                                  0.5);
  // Where steps come in bursts, whole cycles count: from the end of the first to that of the last.
  double mean = 0;
  for (size_t w = first; w < last; ++w) mean += rates[w] / static_cast<double>(last - first);
  if (const double pause = kPauses * mean; typical < pause) {
    while (first < last && rates[first] < pause) ++first;
    while (last > first && rates[last - 1] < pause) --last;
    size_t ended = first, begun = last;
    double first_burst = 0, last_burst = 0;
    for (; ended < last && rates[ended] >= pause; ++ended) first_burst += rates[ended];
    for (; begun > first && rates[begun - 1] >= pause; --begun) last_burst += rates[begun - 1];
    // A burst that has just begun ends no cycle.
    const bool cycles = ended < begun && 2 * last_burst >= first_burst;
    return cycles ? std::pair(ended, last) : std::pair(first, last);
  }
  while (first < last && rates[first] < kRunsSteadily * typical) ++first;
  while (last > first && rates[last - 1] < kRunsSteadily * typical) --last;
  if (last - first >= 5) ++first;
  if (last - first >= 5) --last;
  if (last <= first) return {0, rates.size()};
  return {first, last};
}

namespace {

// Of a run with too few windows to tell phases.
Phases OnePhase(const RunView& run) {
  Phases found;
  found.last_ns = run.run.duration_ns;
  for (size_t i = 0; i < run.windows.size(); ++i) {
    const WindowRow& window = run.windows[i];
    if (window.duration_ns > 0 && window.steps.steps_count > 0) found.steady.push_back(i);
  }
  found.edges.unknown = "the run is too short to have phases";
  return found;
}

}  // namespace

Phases FindPhases(const RunView& run) {
  Phases found;
  const std::vector<WindowRow>& windows = run.windows;
  found.last_ns = run.run.duration_ns;
  if (windows.size() < 3) return OnePhase(run);
  std::vector<double> rates;
  for (const WindowRow& window : windows) rates.push_back(RateOf(window));
  const auto [first, last] = SteadyRange(rates);
  size_t begun = 0;
  while (begun < first && windows[begun].steps.steps_count == 0) ++begun;
  const size_t first_steps = EndOfFirstSteps(run, begun, last);
  const size_t filled = EndOfFill(run, std::max(first, first_steps), last);
  // A cold pass is slower than what follows, and looks like a long fill.
  const size_t cold = EndOfColdPass(run, first_steps, last, &found);
  const size_t warm = std::max(cold, filled);
  const PhaseKind before_steady = cold > first_steps ? PhaseKind::kCold
                                  : TakesMoreThanQueues(run, first_steps, filled)
                                      ? PhaseKind::kSlow
                                      : PhaseKind::kFill;
  std::vector<char> edge(windows.size(), 0);
  found.edges = FindEpochEdges(run, warm, last, &edge);
  std::vector<size_t> steady;
  for (size_t w = warm; w < last; ++w) {
    if (edge[w] == 0 && windows[w].duration_ns > 0 && !IsProbed(run, windows[w])) {
      steady.push_back(w);
    }
  }
  found.drift = DriftWithin(run, steady);
  const bool cut = found.drift && found.drift->used;
  std::vector<PhaseKind> kinds;
  const int64_t first_asked_ns = first_steps > begun ? FirstAskedNs(windows[begun]) : INT64_MAX;
  bool started = false;
  for (size_t w = 0; w < windows.size(); ++w) {
    started = started || windows[w].steps.steps_count > 0 || windows[w].start_ns >= first_asked_ns;
    PhaseKind kind = PhaseKind::kSteady;
    if (!started && w < filled) {
      kind = PhaseKind::kStart;
    } else if (w < first_steps) {
      kind = PhaseKind::kFirstSteps;
    } else if (w < warm) {
      kind = before_steady;
    } else if (w >= last) {
      kind = PhaseKind::kEnd;
    } else if (IsProbed(run, windows[w])) {
      kind = PhaseKind::kProbe;
    } else if (cut && windows[w].start_ns < found.drift->at_ns) {
      kind = PhaseKind::kEarlier;
    } else if (edge[w] != 0) {
      kind = PhaseKind::kEdge;
    }
    kinds.push_back(kind);
  }
  Assemble(run, kinds, &found);
  if (!found.steady.empty()) {
    found.first_ns = windows[found.steady.front()].start_ns;
    found.last_ns = EndOf(windows[found.steady.back()]);
  }
  FindSlower(&found);
  return found;
}

}  // namespace headrace::analysis
