#include "analysis/run/drift.h"

#include <algorithm>
#include <cmath>

#include "analysis/run/counter_sums.h"
#include "analysis/run/window_rates.h"
#include "analysis/statistics/statistics.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

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

// Takes the change of a stage if it is larger than the one that is known.
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

// The changes of all stages and of the consumer, and the latest window after one.
class Changes {
 public:
  Changes(const RunView& run, const std::vector<size_t>& windows) : run_(run), windows_(windows) {}

  void AddStages() {
    for (size_t s = 0; s < run_.stages.size(); ++s) {
      const auto carrier = CarrierOf(run_, run_.stages[s].name);
      if (carrier && run_.operators[*carrier].kind != "consumer") AddStage(s, *carrier);
    }
    if (const auto computing = ComputingShift(run_, windows_)) {
      Note(computing);
      Larger(computing, "consumer", &drift_.cost);
    }
    drift_.stages = drift_.cost && drift_.cost->after < drift_.cost->before ? cheaper_ : dearer_;
  }

  void AddRate() {
    // Windows with few steps are taken together: one without any has no rate to compare.
    const auto shift =
        ShiftOf(PerUnit(
                    run_, windows_, StepsOf,
                    [](const WindowRow& window) { return Seconds(window.duration_ns); }, StepsOf),
                kRateShift);
    if (!shift) return;
    Note(shift);
    drift_.rate = StageDrift{"", shift->shift.before, shift->shift.after};
  }

  bool any() const { return at_.has_value(); }

  // Of the latest change: statements hold after all changes.
  Drift Result() {
    drift_.at_ns = run_.windows[*at_].start_ns;
    size_t left = 0;
    int64_t left_ns = 0;
    for (const size_t w : windows_) {
      if (w < *at_) continue;
      ++left;
      left_ns += run_.windows[w].duration_ns;
    }
    drift_.used = left >= FewestWindows() && static_cast<double>(left_ns) >= kShortestPhaseNs;
    return drift_;
  }

 private:
  void AddStage(size_t index, size_t carrier) {
    const std::string& name = run_.stages[index].name;
    const auto of = [&](const WindowRow& window) { return window.operators[carrier]; };
    const auto completions = [&](const WindowRow& window) {
      return static_cast<double>(of(window).completions_count);
    };
    const auto rows = [&](const WindowRow& window) { return CountOf(of(window)); };
    const auto work = [&](const WindowRow& window) { return WorkOf(run_, window, name); };
    const auto bytes_out = [&](const WindowRow& window) {
      return static_cast<double>(of(window).bytes_out_bytes);
    };
    auto cost = ShiftOf(PerUnit(run_, windows_, work, rows, completions), kCostShift);
    if (cost && !Matters(run_, windows_, index, *cost)) cost.reset();
    const auto bytes = ShiftOf(PerUnit(run_, windows_, bytes_out, rows, completions), kBytesShift);
    Note(cost);
    Note(bytes);
    Larger(cost, name, &drift_.cost);
    Larger(bytes, name, &drift_.bytes);
    if (cost) ++(cost->shift.after > cost->shift.before ? dearer_ : cheaper_);
  }

  void Note(const std::optional<FoundShift>& shift) {
    if (shift && (!at_ || shift->window > *at_)) at_ = shift->window;
  }

  const RunView& run_;
  const std::vector<size_t>& windows_;
  Drift drift_;
  std::optional<size_t> at_;
  size_t dearer_ = 0, cheaper_ = 0;  // stages
};

}  // namespace

std::optional<Drift> DriftWithin(const RunView& run, const std::vector<size_t>& windows) {
  if (windows.size() < 2 * FewestWindows()) return std::nullopt;
  Changes changes(run, windows);
  changes.AddStages();
  if (!changes.any()) changes.AddRate();
  if (!changes.any()) return std::nullopt;
  return changes.Result();
}

std::optional<Drift> FindDrift(const RunView& run) {
  std::vector<size_t> windows;
  for (size_t w = 0; w < run.windows.size(); ++w) {
    if (run.windows[w].duration_ns > 0) windows.push_back(w);
  }
  return DriftWithin(run, windows);
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

}  // namespace headrace::analysis
