#include "analysis/run/accelerator_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "analysis/run/ranks.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// The longest sample period of NVML, and a stretch of two of them, in which it blurs little.
constexpr int64_t kSamplePeriodNs = 1'000'000'000;
constexpr int64_t kShortestStretchNs = 2 * kSamplePeriodNs;
// Sample periods that a device may have: all of them are tried, none at all first.
constexpr int64_t kPeriodsNs[] = {0,
                                  kSamplePeriodNs / 6,
                                  kSamplePeriodNs / 3,
                                  kSamplePeriodNs / 2,
                                  kSamplePeriodNs * 2 / 3,
                                  kSamplePeriodNs * 5 / 6,
                                  kSamplePeriodNs};
// What is left of the blur, as waits are recorded by the second: 200 courses of each of 60 seeds in
// accelerator_use_test were 0.032 beyond the bounds at most, and all within them with this.
constexpr double kBlur = 0.035;
constexpr int64_t kMostStretches = 300;
constexpr double kStepsOfStretch = 4;   // a wait is recorded when its step ends
constexpr double kWholePercent = 0.01;  // as which NVML tells its shares
constexpr size_t kUseDraws = 300;
constexpr uint64_t kUseSeed = 20261126;

using Shares = std::vector<Real>;  // by stretch; empty: not known
// By sample period: the waits as the device's figures would have them.
using BlurredShares = std::array<Shares, std::size(kPeriodsNs)>;

struct Stretches {
  int64_t first_ns = 0, length_ns = 0;
  size_t count = 0;
};

int64_t EndOf(const WaitRow& row) { return row.start_ns + row.duration_ns; }
int64_t EndOf(const AcceleratorUseRow& row) { return row.start_ns + row.duration_ns; }
double RatioOf(const WaitRow& row) { return row.wait_ratio; }
double RatioOf(const AcceleratorUseRow& row) { return 1 - row.use_ratio; }

// The mean of `rows`, which are in order, in each stretch, `ago_ns` before it; empty where they
// cover less than half of it.
template <typename Row>
Shares MeanIn(const std::vector<Row>& rows, const Stretches& stretches, int64_t ago_ns) {
  Shares shares(stretches.count);
  for (size_t s = 0; s < stretches.count; ++s) {
    const int64_t from =
        stretches.first_ns - ago_ns + static_cast<int64_t>(s) * stretches.length_ns;
    const int64_t to = from + stretches.length_ns;
    double sum = 0;
    int64_t seen_ns = 0;
    auto row = std::partition_point(rows.begin(), rows.end(),
                                    [&](const Row& each) { return EndOf(each) <= from; });
    for (; row != rows.end() && row->start_ns < to; ++row) {
      const int64_t ns = std::min(to, EndOf(*row)) - std::max(from, row->start_ns);
      if (ns <= 0) continue;
      sum += std::clamp(RatioOf(*row), 0.0, 1.0) * static_cast<double>(ns);
      seen_ns += ns;
    }
    if (2 * seen_ns >= stretches.length_ns) shares[s] = sum / static_cast<double>(seen_ns);
  }
  return shares;
}

// What is told at an instant is the mean of a sample period that ended up to one such period ago:
// of the two periods before it, most of the middle. Blurred in the same way, waits and idle time
// still bound what they have in common, because a mean of minima is at most the minimum of means.
Shares Blurred(const std::vector<WaitRow>& waits, const Stretches& stretches, int64_t period_ns) {
  if (period_ns == 0) return MeanIn(waits, stretches, 0);
  constexpr double kWeights[] = {1, 2, 3, 2, 1};
  Shares sum(stretches.count, Real(0));
  for (size_t part = 0; part < std::size(kWeights); ++part) {
    const auto ago_ns = static_cast<int64_t>(part) * period_ns / 2;
    const Shares shares = MeanIn(waits, stretches, ago_ns);
    for (size_t s = 0; s < sum.size(); ++s) {
      sum[s] = sum[s] && shares[s] ? Real(*sum[s] + kWeights[part] / 9 * *shares[s]) : std::nullopt;
    }
  }
  return sum;
}

// Adds to `bounds` those of what `idle` and `waits` have in common.
void AddBounds(const Shares& idle, const Shares& waits, std::optional<Interval>* bounds) {
  double low = 0, high = 0, count = 0;
  for (size_t s = 0; s < idle.size(); ++s) {
    if (!idle[s] || !waits[s]) continue;
    low += std::max(0.0, *idle[s] + *waits[s] - 1);
    high += std::min(*idle[s], *waits[s]);
    count += 1;
  }
  if (count == 0) return;
  if (!*bounds) *bounds = Interval{low / count, high / count};
  (*bounds)->low = std::min((*bounds)->low, low / count);
  (*bounds)->high = std::max((*bounds)->high, high / count);
}

std::optional<DeviceUse> Join(const Shares& idle, const BlurredShares& blurred) {
  const Shares& waits = blurred[0];
  DeviceUse use;
  std::vector<double> known;
  double wait = 0;
  for (size_t s = 0; s < idle.size(); ++s) {
    if (!idle[s] || !waits[s]) continue;
    known.push_back(*idle[s]);
    wait += *waits[s];
  }
  if (known.empty()) return std::nullopt;
  std::optional<Interval> bounds;
  for (const Shares& each : blurred) AddBounds(idle, each, &bounds);
  use.idle_ratio = Mean(known);
  use.wait_ratio = wait / static_cast<double>(known.size());
  use.idle_waiting.high = std::min({bounds->high + kBlur, use.idle_ratio, use.wait_ratio});
  use.idle_waiting.low = std::clamp(bounds->low - kBlur, 0.0, use.idle_waiting.high);
  if (known.size() >= 3) {
    Random random(kUseSeed);
    std::vector<double> draws;
    for (size_t draw = 0; draw < kUseDraws; ++draw) {
      double sum = 0;
      for (const size_t s : BlockResample(known.size(), known.size() >= 12 ? 2 : 1, random)) {
        sum += known[s];
      }
      draws.push_back(sum / static_cast<double>(known.size()));
    }
    const Interval drawn = IntervalAround(use.idle_ratio, draws, 0.9);
    use.idle_interval = Interval{std::max(0.0, drawn.low - kWholePercent / 2),
                                 std::min(1.0, drawn.high + kWholePercent / 2)};
  }
  return use;
}

struct Users {
  std::vector<int64_t> pids;
  bool others = false, unseen = false;
  // Nobody of the run is there, and everybody who is has a pid here.
  bool OnlyOthers() const { return pids.empty() && others && !unseen; }
};

std::map<std::string, Users> UsersOf(const RunView& run) {
  std::map<std::string, Users> users;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "gpu_processes_count" || row.value.value_or(0) <= 0) continue;
    Users& device = users[row.subject];
    if (row.process_id) device.pids.push_back(row.pid);
    if (!row.process_id) (row.cause == "unseen" ? device.unseen : device.others) = true;
  }
  return users;
}

// The rank's own waits instead of those of all. They are known over the whole run only.
void UseOwnWaits(const std::map<int64_t, double>& by_rank, DeviceUse* use) {
  for (const int64_t pid : use->pids) {
    const auto own = by_rank.find(pid);
    if (own == by_rank.end()) continue;
    use->wait_ratio = std::clamp(own->second, 0.0, 1.0);
    use->idle_waiting = {std::max(0.0, use->idle_ratio + use->wait_ratio - 1),
                         std::min(use->idle_ratio, use->wait_ratio)};
    return;
  }
}

struct Seen {
  DeviceUse use;
  Shares idle;
};

Shares MeanOf(const std::vector<Seen>& all) {
  Shares mean = all[0].idle;
  for (size_t s = 0; s < mean.size(); ++s) {
    for (size_t d = 1; d < all.size(); ++d) {
      const Real& other = all[d].idle[s];
      mean[s] = mean[s] && other ? Real(*mean[s] + *other) : std::nullopt;
    }
    if (mean[s]) *mean[s] /= static_cast<double>(all.size());
  }
  return mean;
}

DeviceStory StoryOf(const DeviceUse& use) {
  if (use.busy_ratio() < kAcceleratorUnused) return DeviceStory::kUnused;
  const double waits_while_busy = use.wait_ratio - use.idle_waiting.high;
  const double idle_without_wait = use.idle_ratio - use.idle_waiting.high;
  if (use.busy_ratio() >= kAcceleratorBusy && waits_while_busy >= kSmallStall) {
    return DeviceStory::kBusyAnyway;
  }
  if (use.wait_ratio < kSmallStall && idle_without_wait >= kAcceleratorIdles) {
    return DeviceStory::kHostWork;
  }
  return DeviceStory::kPlain;
}

Stretches StretchesOf(const TrainerWaits& waits) {
  Stretches stretches;
  stretches.first_ns = waits.rows.front().start_ns;
  int64_t all_ns = EndOf(waits.rows.back()) - stretches.first_ns;
  // What a device says is up to a sample period old, and before the first rows it may have idled.
  if (all_ns >= kSamplePeriodNs + kShortestStretchNs) {
    stretches.first_ns += kSamplePeriodNs;
    all_ns -= kSamplePeriodNs;
  }
  stretches.length_ns =
      std::max({kShortestStretchNs, all_ns / kMostStretches,
                static_cast<int64_t>(std::clamp(waits.step_s, 0.0, 1e6) * kStepsOfStretch * 1e9)});
  stretches.count = static_cast<size_t>(std::max<int64_t>(0, all_ns / stretches.length_ns));
  return stretches;
}

// Leaves the devices that the run is known to use, else those on which something ran, else all.
void LeaveUsed(std::vector<Seen>* seen) {
  const auto keep = [&](auto wanted) {
    if (std::none_of(seen->begin(), seen->end(), wanted)) return false;
    seen->erase(std::remove_if(seen->begin(), seen->end(), std::not_fn(wanted)), seen->end());
    return true;
  };
  if (keep([](const Seen& each) { return !each.use.pids.empty(); })) return;
  keep([](const Seen& each) { return each.use.busy_ratio() >= kAcceleratorUnused; });
}

}  // namespace

const char* DeviceStoryName(DeviceStory story) {
  constexpr const char* kNames[] = {"plain", "unused", "busy anyway", "host work", "limits"};
  return kNames[static_cast<int>(story)];
}

Real Accelerators::MostGain() const {
  if (story == DeviceStory::kUnused || devices.size() > 1) return std::nullopt;
  for (const DeviceUse& use : devices) {
    if (use.pids.empty() || use.shared) return std::nullopt;
  }
  return 1 / mean.busy_ratio();
}

std::optional<Accelerators> LookAtAccelerators(const RunView& run, const TrainerWaits& waits) {
  if (waits.rows.empty() || run.accelerator_use.empty()) return std::nullopt;
  std::map<std::string, std::vector<AcceleratorUseRow>> rows;
  for (const AcceleratorUseRow& row : run.accelerator_use) rows[row.device].push_back(row);
  const Stretches stretches = StretchesOf(waits);
  BlurredShares waited;
  for (size_t p = 0; p < waited.size(); ++p) {
    waited[p] = Blurred(waits.rows, stretches, kPeriodsNs[p]);
  }
  const std::map<std::string, Users> users = UsersOf(run);
  std::vector<Seen> seen;
  for (const auto& [device, use_rows] : rows) {
    Seen each;
    each.idle = MeanIn(use_rows, stretches, 0);
    const auto use = Join(each.idle, waited);
    if (!use) continue;
    each.use = *use;
    each.use.device = device;
    if (const auto by = users.find(device); by != users.end()) {
      if (by->second.OnlyOthers()) continue;
      each.use.pids = by->second.pids;
      each.use.shared = !by->second.pids.empty() && (by->second.others || by->second.unseen);
    }
    UseOwnWaits(waits.by_rank, &each.use);
    seen.push_back(std::move(each));
  }
  LeaveUsed(&seen);
  if (seen.empty()) return std::nullopt;
  Accelerators all;
  for (const Seen& each : seen) all.devices.push_back(each.use);
  all.mean = all.devices[0];
  if (all.devices.size() > 1) {
    const auto mean = Join(MeanOf(seen), waited);
    if (!mean) return std::nullopt;
    all.mean = *mean;
    all.mean.shared = std::any_of(all.devices.begin(), all.devices.end(),
                                  [](const DeviceUse& use) { return use.shared; });
  }
  all.story = StoryOf(all.mean);
  all.stretch_s = static_cast<double>(stretches.length_ns) * 1e-9;
  return all;
}

std::optional<Accelerators> AcceleratorsOf(const RunView& run, const Phases& phases) {
  TrainerWaits waits;
  int64_t steps = 0, steady_ns = 0;
  for (const size_t w : phases.steady) {
    const WindowRow& window = run.windows[w];
    const auto wait_ns = static_cast<double>(window.steps.wait_ns);
    const double all_ns = wait_ns + static_cast<double>(window.steps.compute_ns);
    steps += window.steps.steps_count;
    steady_ns += window.duration_ns;
    if (all_ns <= 0) continue;
    waits.rows.push_back({window.start_ns, window.duration_ns, wait_ns / all_ns});
  }
  if (steps > 0) {
    waits.step_s = static_cast<double>(steady_ns) * 1e-9 / static_cast<double>(steps);
  }
  for (const Rank& rank : Ranks(run)) waits.by_rank[rank.pid] = rank.wait_ratio();
  return LookAtAccelerators(run, waits);
}

std::string MeasureOfDevices(const Accelerators& accelerators) {
  return fmt::format(
      "the trainer's waits say input-bound, but {} busy {} of the time: wait once for "
      "the device at the end of each step (PyTorch: torch.cuda.synchronize()), so that the GPU's "
      "work counts as the step's",
      accelerators.devices.size() == 1 ? "the GPU is" : "the GPUs are",
      FormatPercent(accelerators.mean.busy_ratio()));
}

}  // namespace headrace::analysis
