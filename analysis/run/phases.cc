#include "analysis/run/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/run/counter_sums.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

size_t FewestWindows() { return static_cast<size_t>(kWindowsOfPhase); }

// The rate of a window, counting half a step where it has none: such a window is too short for its
// rate, which is not 0.
double RateAtLeast(const WindowRow& window) {
  return window.duration_ns > 0 ? std::max(0.5, static_cast<double>(window.steps.steps_count)) /
                                      Seconds(window.duration_ns)
                                : 1e-9;
}

double RateOf(const WindowRow& window) {
  return window.duration_ns > 0
             ? static_cast<double>(window.steps.steps_count) / Seconds(window.duration_ns)
             : 0;
}

int64_t EndOf(const WindowRow& window) { return window.start_ns + window.duration_ns; }

// Whose rows are the stage's: the last operator that bytes leave, told from accounts inside others
// ("fetch.io") and from kinds of transforms. Empty: the stage has no operator.
std::optional<size_t> CarrierOf(const RunView& run, const std::string& stage) {
  std::optional<size_t> last, any;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    const OperatorRow& op = run.operators[i];
    if (op.stage != stage) continue;
    any = i;
    if (op.bytes_out_bytes > 0 && op.name.find('.') == std::string::npos) last = i;
  }
  return last ? last : any;
}

// Working time of the stage's operators; waiting for a lock or a core is none of it.
double WorkOf(const RunView& run, const WindowRow& window, const std::string& stage) {
  double work = 0;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    if (run.operators[i].stage != stage) continue;
    const OperatorCounters& op = window.operators[i];
    const double off = Seconds(op.busy_ns - op.lock_wait_ns);
    if (op.on_cpu_ns && op.blocked_ns) {
      work += Seconds(*op.on_cpu_ns) + std::max(0.0, Seconds(*op.blocked_ns - op.lock_wait_ns));
    } else {
      work += op.on_cpu_ns && 2 * Seconds(*op.on_cpu_ns) > off ? Seconds(*op.on_cpu_ns) : off;
    }
  }
  return work;
}

double CountOf(const OperatorCounters& op) {
  return static_cast<double>(op.rows_count > 0 ? op.rows_count : op.completions_count);
}

// `amount` a unit of `count`, over neighbouring windows that hold some completions together.
struct Series {
  std::vector<double> values;
  std::vector<size_t> first;  // window of each value
};
template <typename Amount, typename Units, typename Completions>
Series PerUnit(const RunView& run, const std::vector<size_t>& windows, Amount amount, Units units,
               Completions completions) {
  constexpr double kTogether = 4;  // completions: those at a window's edge are in two
  Series series;
  double sum = 0, count = 0, done = 0;
  size_t first = 0;
  bool begun = false;
  for (const size_t w : windows) {
    if (!begun) first = w;
    begun = true;
    sum += amount(run.windows[w]);
    count += units(run.windows[w]);
    done += completions(run.windows[w]);
    if (done < kTogether || count <= 0) continue;
    if (sum > 0) {
      series.values.push_back(sum / count);
      series.first.push_back(first);
    }
    sum = count = done = 0;
    begun = false;
  }
  return series;
}

struct FoundShift {
  Shift shift;
  size_t window;  // the first after it
};
std::optional<FoundShift> ShiftOf(const Series& series, double least) {
  const auto shift = FindShift(series.values, least, FewestWindows());
  if (!shift) return std::nullopt;
  return FoundShift{*shift, series.first[shift->at]};
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
    if (phase.kind != PhaseKind::kCold && phase.kind != PhaseKind::kSlow) continue;
    const double share = all_ns > 0 ? Seconds(phase.time_ns) / Seconds(all_ns) : 0;
    if (share < kSlowerPart || rate(phase) >= kSlowerRate * steady) continue;
    found->slower = SlowerPart{phase.kind, phase.time_ns, share, rate(phase), steady};
  }
}

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

// Marks in `edge` the windows around ends of epochs, if they cost enough to be told apart.
void FindEdges(const RunView& run, size_t first, size_t last, std::vector<char>* edge,
               EpochEdges* found) {
  constexpr size_t kWide = 4;  // windows that an edge may take
  if (!run.run.epoch_splits_count || *run.run.epoch_splits_count <= 0) {
    found->unknown = "how much an epoch has is not recorded";
    return;
  }
  const double splits = static_cast<double>(*run.run.epoch_splits_count);
  const std::vector<double> handed = HandedOut(run);
  if (handed.empty() || handed.back() <= splits) {
    found->unknown = "the run ended with its first epoch";
    return;
  }
  std::vector<size_t> edges;
  double next = splits;
  for (size_t w = 0; w < handed.size(); ++w) {
    if (handed[w] < next) continue;
    // Not by steps: beyond 2^53 one more is no more, and a damaged count may be that large.
    next = (std::floor(handed[w] / splits) + 1) * splits;
    // What follows the last row of the last epoch is the end.
    if (w >= first && w + 1 < last) edges.push_back(w);
  }
  const double seconds = Seconds(run.run.duration_ns) / std::max(1.0, handed.back() / splits);
  if (edges.empty()) {
    found->unknown = "no end of an epoch lies within the steady part";
    return;
  }
  if (static_cast<double>(last - first) < kEpochEdgesApart * static_cast<double>(edges.size())) {
    found->unknown = fmt::format(
        "an epoch lasts {:.2g} s, too short for windows of {:.2g} s to separate its edges", seconds,
        Seconds(run.windows[first].duration_ns));
    return;
  }
  std::vector<char> near(run.windows.size(), 0);
  for (const size_t e : edges) {
    for (size_t w = e; w < std::min(last, e + kWide); ++w) near[w] = 1;
  }
  std::vector<double> between;
  for (size_t w = first; w < last; ++w) {
    if (near[w] == 0) between.push_back(RateOf(run.windows[w]));
  }
  if (between.size() < FewestWindows()) {
    found->unknown = "too few windows lie between the ends of epochs";
    return;
  }
  const double typical = Quantile(between, 0.5);
  std::vector<double> losses;
  double window_s = 0;
  for (const size_t e : edges) {
    double lost = 0;
    for (size_t w = e; w < std::min(last, e + kWide); ++w) {
      lost += (typical - RateOf(run.windows[w])) * Seconds(run.windows[w].duration_ns);
    }
    losses.push_back(lost);
    window_s += Seconds(run.windows[e].duration_ns) / static_cast<double>(edges.size());
  }
  // One edge has no spread of its own; between edges, windows vary as much.
  const double noise = std::sqrt(Variance(between) * static_cast<double>(kWide)) * window_s;
  const double spread = std::max(noise, std::sqrt(Variance(losses)));
  const double lost = Mean(losses);
  const double error = 1.645 * spread / std::sqrt(static_cast<double>(losses.size()));
  const double rows = run.steps.steps_count > 0 ? static_cast<double>(run.steps.rows_count) /
                                                      static_cast<double>(run.steps.steps_count)
                                                : 0;
  found->edges = edges.size();
  found->lost_steps = lost;
  found->lost_rows = lost * rows;
  found->lost_interval = {(lost - error) * rows, (lost + error) * rows};
  double steady_s = 0;
  for (size_t w = first; w < last; ++w) steady_s += Seconds(run.windows[w].duration_ns);
  if (typical > 0 && steady_s > 0) {
    found->lost_ratio = lost * static_cast<double>(edges.size()) / (typical * steady_s);
  }
  found->separated = lost - error > 0 && lost > kEpochEdgeWorth * typical * window_s;
  if (found->separated) *edge = near;
}

void Larger(const std::optional<FoundShift>& shift, const std::string& stage,
            std::optional<StageDrift>* change) {
  if (!shift) return;
  const auto size = [](double before, double after) { return std::abs(after - before); };
  if (*change &&
      size((*change)->before, (*change)->after) >= size(shift->shift.before, shift->shift.after)) {
    return;
  }
  *change = StageDrift{stage, shift->shift.before, shift->shift.after};
}

// Whether a change of what stage `index` takes a row can move what the pipeline does: its threads
// are near enough to full on either side of it, or it is much of what all stages work. A stage that
// hardly works may change with the weather, and cutting the run there would throw away what is
// known of all others. True also where that cannot be told.
bool Matters(const RunView& run, const std::vector<size_t>& windows, size_t index,
             const FoundShift& shift) {
  struct Side {
    double work = 0, lifetime = 0, all = 0;
  } before, after;
  for (const size_t w : windows) {
    Side& side = w < shift.window ? before : after;
    const WindowRow& window = run.windows[w];
    side.work += WorkOf(run, window, run.stages[index].name);
    if (index < window.stages.size()) side.lifetime += Seconds(window.stages[index].lifetime_ns);
    for (const StageRow& stage : run.stages) side.all += WorkOf(run, window, stage.name);
  }
  if (before.lifetime <= 0 || after.lifetime <= 0 || before.all <= 0 || after.all <= 0) return true;
  if (std::max(before.work / before.lifetime, after.work / after.lifetime) >= kStageNearlyFull)
    return true;
  const double ratio = shift.shift.after / shift.shift.before;
  // What the side before would have gained or lost by the change alone.
  return std::abs(ratio - 1) * before.work >= kStageShiftMatters * before.all ||
         std::abs(1 / ratio - 1) * after.work >= kStageShiftMatters * after.all;
}

double StepsOf(const WindowRow& window) { return static_cast<double>(window.steps.steps_count); }

// Of what the consumer computes for a row.
std::optional<FoundShift> ComputingShift(const RunView& run, const std::vector<size_t>& windows) {
  const auto computing = ShiftOf(
      PerUnit(
          run, windows, [](const WindowRow& window) { return Seconds(window.steps.compute_ns); },
          [](const WindowRow& window) {
            return static_cast<double>(std::max(window.steps.rows_count, window.steps.steps_count));
          },
          StepsOf),
      kCostShift);
  // A consumer that computes nothing has times of nanoseconds, which double at a whim.
  double compute_s = 0, all_s = 0;
  for (const size_t w : windows) {
    compute_s += Seconds(run.windows[w].steps.compute_ns);
    all_s += Seconds(run.windows[w].duration_ns);
  }
  return compute_s > kConsumerComputes * all_s ? computing : std::nullopt;
}

std::optional<Drift> DriftWithin(const RunView& run, const std::vector<size_t>& windows) {
  if (windows.size() < 2 * FewestWindows()) return std::nullopt;
  Drift drift;
  std::optional<size_t> at;  // the latest: statements hold after all changes
  const auto note = [&](const std::optional<FoundShift>& shift) {
    if (shift && (!at || shift->window > *at)) at = shift->window;
  };
  size_t dearer = 0, cheaper = 0;
  for (size_t s = 0; s < run.stages.size(); ++s) {
    const StageRow& stage = run.stages[s];
    const auto carrier = CarrierOf(run, stage.name);
    if (!carrier || run.operators[*carrier].kind == "consumer") continue;
    const auto of = [&](const WindowRow& window) { return window.operators[*carrier]; };
    const auto completions = [&](const WindowRow& window) {
      return static_cast<double>(of(window).completions_count);
    };
    const auto rows = [&](const WindowRow& window) { return CountOf(of(window)); };
    auto cost = ShiftOf(
        PerUnit(
            run, windows, [&](const WindowRow& window) { return WorkOf(run, window, stage.name); },
            rows, completions),
        kCostShift);
    if (cost && !Matters(run, windows, s, *cost)) cost.reset();
    const auto bytes = ShiftOf(PerUnit(
                                   run, windows,
                                   [&](const WindowRow& window) {
                                     return static_cast<double>(of(window).bytes_out_bytes);
                                   },
                                   rows, completions),
                               kBytesShift);
    note(cost);
    note(bytes);
    Larger(cost, stage.name, &drift.cost);
    Larger(bytes, stage.name, &drift.bytes);
    if (cost) ++(cost->shift.after > cost->shift.before ? dearer : cheaper);
  }
  if (const auto computing = ComputingShift(run, windows)) {
    note(computing);
    Larger(computing, "consumer", &drift.cost);
  }
  if (!at) {
    // Windows with few steps are taken together: one without any has no rate to compare.
    const auto shift =
        ShiftOf(PerUnit(
                    run, windows, StepsOf,
                    [](const WindowRow& window) { return Seconds(window.duration_ns); }, StepsOf),
                kRateShift);
    if (shift) {
      at = shift->window;
      drift.rate = StageDrift{"", shift->shift.before, shift->shift.after};
    }
  }
  if (!at) return std::nullopt;
  drift.stages = drift.cost && drift.cost->after < drift.cost->before ? cheaper : dearer;
  drift.at_ns = run.windows[*at].start_ns;
  size_t left = 0;
  int64_t left_ns = 0;
  for (const size_t w : windows) {
    if (w < *at) continue;
    ++left;
    left_ns += run.windows[w].duration_ns;
  }
  drift.used = left >= FewestWindows() && static_cast<double>(left_ns) >= kShortestPhaseNs;
  return drift;
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
  constexpr const char* kNames[] = {"start",
                                    "fill",
                                    "cold pass",
                                    "slower beginning",
                                    "before the change",
                                    "steady",
                                    "edges of epochs",
                                    "probe of the store",
                                    "end"};
  return kNames[static_cast<int>(kind)];
}

std::string Words(const std::optional<SlowerPart>& slower) {
  if (!slower) return "";
  return fmt::format(
      "the first {}, {} of the run, made {} instead of {}: {}; statements hold for the part after "
      "it, so a job of one epoch is slower than they say",
      FormatDuration(static_cast<double>(slower->time_ns)), FormatPercent(slower->time_ratio),
      FormatRate(slower->rate, "batches"), FormatRate(slower->steady_rate, "batches"),
      slower->kind == PhaseKind::kCold
          ? "the table was read from its device, and from memory from then on"
          : "that is more than queues take to fill, and what it was is not recorded");
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
  if (rates.size() < 3) return {0, rates.size()};
  const double typical =
      Quantile({rates.begin() + static_cast<long>(rates.size() / 3), rates.end()}, 0.5);
  size_t first = 0, last = rates.size();
  while (first < last && rates[first] < kRunsSteadily * typical) ++first;
  while (last > first && rates[last - 1] < kRunsSteadily * typical) --last;
  if (last - first >= 5) ++first;
  if (last - first >= 5) --last;
  if (last <= first) return {0, rates.size()};
  return {first, last};
}

std::optional<Shift> FindShift(const std::vector<double>& values, double least, size_t side) {
  const size_t n = values.size();
  if (side == 0 || n < 2 * side) return std::nullopt;
  std::vector<double> logs;
  for (const double value : values) {
    if (!(value > 0)) return std::nullopt;
    logs.push_back(std::log(value));
  }
  double all = 0, squares = 0;
  for (const double x : logs) {
    all += x;
    squares += x * x;
  }
  double best = 0, sum = 0;
  size_t at = 0;
  for (size_t k = 1; k < n; ++k) {
    sum += logs[k - 1];
    if (k < side || n - k < side) continue;
    const double a = static_cast<double>(k), b = static_cast<double>(n - k);
    const double before = sum / a, after = (all - sum) / b;
    const double within = squares - a * before * before - b * after * after;
    const double spread =
        std::max(kLeastWindowSpread, std::sqrt(std::max(0.0, within) / static_cast<double>(n - 2)));
    const double score = std::abs(after - before) / (spread * std::sqrt(1 / a + 1 / b));
    if (score <= best) continue;
    best = score;
    at = k;
  }
  if (at == 0 || best < kFarBeyondChance) return std::nullopt;
  const auto split = logs.begin() + static_cast<long>(at);
  const std::vector<double> first(logs.begin(), split), second(split, logs.end());
  const double before = Mean(first), after = Mean(second);
  if (std::abs(after - before) < std::log1p(least)) return std::nullopt;
  // Most of one side beyond most of the other, and still so at the end.
  const bool up = after > before;
  if (up ? Quantile(second, 0.25) <= Quantile(first, 0.75)
         : Quantile(second, 0.75) >= Quantile(first, 0.25)) {
    return std::nullopt;
  }
  const double late =
      Quantile({second.begin() + static_cast<long>(2 * second.size() / 3), second.end()}, 0.5);
  if (std::abs(late - after) > std::abs(late - before)) return std::nullopt;
  return Shift{at, std::exp(before), std::exp(after)};
}

std::optional<Drift> FindDrift(const RunView& run) {
  std::vector<size_t> windows;
  for (size_t w = 0; w < run.windows.size(); ++w) {
    if (run.windows[w].duration_ns > 0) windows.push_back(w);
  }
  return DriftWithin(run, windows);
}

Phases FindPhases(const RunView& run) {
  Phases found;
  const std::vector<WindowRow>& windows = run.windows;
  found.last_ns = run.run.duration_ns;
  if (windows.size() < 3) {
    for (size_t i = 0; i < windows.size(); ++i) {
      if (windows[i].duration_ns > 0 && windows[i].steps.steps_count > 0) found.steady.push_back(i);
    }
    found.edges.unknown = "the run is too short to have phases";
    return found;
  }
  std::vector<double> rates;
  for (const WindowRow& window : windows) rates.push_back(RateOf(window));
  const auto [first, last] = SteadyRange(rates);
  const size_t filled = EndOfFill(run, first, last);
  size_t begun = 0;
  while (begun < filled && windows[begun].steps.steps_count == 0) ++begun;
  // A cold pass is slower than what follows, and looks like a long fill.
  const size_t cold = EndOfColdPass(run, begun, last, &found);
  const size_t warm = std::max(cold, filled);
  const bool slow = TakesMoreThanQueues(run, begun, filled);
  std::vector<char> edge(windows.size(), 0);
  FindEdges(run, warm, last, &edge, &found.edges);
  std::vector<size_t> steady;
  for (size_t w = warm; w < last; ++w) {
    if (edge[w] == 0 && windows[w].duration_ns > 0 && !IsProbed(run, windows[w])) {
      steady.push_back(w);
    }
  }
  found.drift = DriftWithin(run, steady);
  const bool cut = found.drift && found.drift->used;
  std::vector<PhaseKind> kinds;
  bool started = false;
  for (size_t w = 0; w < windows.size(); ++w) {
    started = started || windows[w].steps.steps_count > 0;
    PhaseKind kind = PhaseKind::kSteady;
    if (!started && w < filled) {
      kind = PhaseKind::kStart;
    } else if (w < warm) {
      kind = cold > begun ? PhaseKind::kCold : slow ? PhaseKind::kSlow : PhaseKind::kFill;
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
