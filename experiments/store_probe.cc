#include "experiments/store_probe.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "analysis/thresholds.h"
#include "base/clock.h"
#include "base/error.h"
#include "collectors/segment_search.h"

namespace headrace::experiments {
namespace {

using account::SegmentSnapshot;

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSettledNs = 1000 * kMillisecond;  // of the run, before the first look
constexpr int64_t kAgainNs = 1500 * kMillisecond;    // between looks
constexpr int kLooks = 4;
constexpr int64_t kReadNs = 5 * kMillisecond;  // between readings of the accounts
constexpr int64_t kShortestNs = 400 * kMillisecond, kLongestNs = 4000 * kMillisecond;
// Of each thread, for a measurement.
constexpr uint32_t kCompletions = 4;
constexpr uint32_t kFewestCompletions = 4;
constexpr double kSettlePeriods = 1.5;  // of a thread's requests
constexpr uint32_t kMaxThreads = 64;
constexpr double kHardlyFilled = 0.5;     // the queue after the stage
constexpr double kSameRate = 0.3;         // before and after, relative to their mean
constexpr double kShareOfRest = 1.0 / 3;  // of the time that is left

// The operator of the reader that fetches; none where the pipeline has no such.
const SegmentSnapshot::Operator* FetchOf(const SegmentSnapshot& snapshot) {
  for (const SegmentSnapshot::Operator& op : snapshot.operators) {
    if (op.kind == "fetch" && op.stage < snapshot.stages.size()) return &op;
  }
  return nullptr;
}

struct StageTime {
  double lifetime_ns = 0, blocked_ns = 0;
  double queued_ns = 0, queue_ns = 0;  // of the queue after it: occupancy and capacity times time
};

// The blocked time is that of `fetch` and its parts: another operator of the stage waits for
// something else. Empty where CPU time is not split from waiting.
std::optional<StageTime> TimeOf(const SegmentSnapshot& snapshot,
                                const SegmentSnapshot::Operator& fetch) {
  const uint32_t stage = fetch.stage;
  StageTime time;
  time.lifetime_ns = static_cast<double>(snapshot.stages[stage].lifetime_ns);
  for (const SegmentSnapshot::Operator& op : snapshot.operators) {
    if (op.stage != stage || (op.name != fetch.name && !op.name.starts_with(fetch.name + ".")))
      continue;
    if (!op.on_cpu_ns) return std::nullopt;
    time.blocked_ns += static_cast<double>(op.busy_ns - op.lock_wait_ns - *op.on_cpu_ns);
  }
  for (const SegmentSnapshot::Queue& queue : snapshot.queues) {
    if (queue.producer_stage != stage) continue;
    time.queued_ns += static_cast<double>(queue.occupancy_ns);
    time.queue_ns += static_cast<double>(queue.capacity_ns);
  }
  return time;
}

}  // namespace

struct StoreProbe::Fetching {
  double rows_per_s = 0, completions_per_s = 0;
  double blocked_ratio = 0, queue_ratio = 0;
};

StoreProbe::StoreProbe(reader::Pipeline* pipeline, int64_t duration_ns)
    : pipeline_(pipeline), duration_ns_(duration_ns), began_ns_(MonotonicNs()) {
  // A modelled store is known, and a budget of memory decides how many splits are under way.
  const reader::PipelineSpec& spec = pipeline->spec();
  if (spec.synthetic || spec.throttle.enabled() || spec.memory_bytes > 0) return;
  thread_ = std::thread([this] { Watch(); });
}

StoreProbe::~StoreProbe() { Finish(); }

std::optional<collectors::StoreProbeSample> StoreProbe::Finish() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  return found_;
}

bool StoreProbe::Sleep(int64_t ns) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return ending_; });
}

bool StoreProbe::HasTime(double seconds) const {
  const double elapsed = 1e-9 * static_cast<double>(MonotonicNs() - began_ns_);
  double left = HUGE_VAL;
  if (duration_ns_ > 0) {
    left = 1e-9 * static_cast<double>(duration_ns_) - elapsed;
  } else if (const double done = pipeline_->progress().fraction; done >= 0) {
    left = done > 0 ? elapsed * (1 - done) / done : 0;
  }
  return seconds <= kShareOfRest * left;
}

// The slope of a line through the rows that are counted at each reading, from the first completion
// on: threads that share a store complete together, so that one of them more at an end would pass
// for a faster store where rows between two completions are divided by their time.
std::optional<StoreProbe::Fetching> StoreProbe::Measure(uint32_t threads) {
  const int64_t completions = int64_t{kCompletions} * threads;
  const SegmentSnapshot first = segment_->Read(true, {});
  const SegmentSnapshot::Operator* fetch = FetchOf(first);
  if (fetch == nullptr) return std::nullopt;
  const uint32_t stage = fetch->stage;
  const std::optional<StageTime> before = TimeOf(first, *fetch);
  if (!before) return std::nullopt;
  const int64_t first_seen = fetch->completions;
  std::optional<SegmentSnapshot::Operator> began;
  int64_t began_ns = 0;
  double n = 0, sum_t = 0, sum_rows = 0, sum_tt = 0, sum_trows = 0;
  SegmentSnapshot now;
  while (true) {
    if (!Sleep(kReadNs)) return std::nullopt;
    now = segment_->Read(true, {});
    fetch = FetchOf(now);
    if (fetch == nullptr || fetch->stage != stage) return std::nullopt;
    const int64_t elapsed = now.monotonic_ns - first.monotonic_ns;
    if (elapsed >= kLongestNs) break;
    if (!began && fetch->completions == first_seen) continue;
    if (!began) {
      began = *fetch;
      began_ns = now.monotonic_ns;
    }
    const double t = 1e-9 * static_cast<double>(now.monotonic_ns - began_ns);
    const auto rows = static_cast<double>(fetch->rows - began->rows);
    n += 1;
    sum_t += t;
    sum_rows += rows;
    sum_tt += t * t;
    sum_trows += t * rows;
    if (elapsed >= kShortestNs && fetch->completions - began->completions >= completions) break;
  }
  const std::optional<StageTime> after = TimeOf(now, *fetch);
  if (!after || !began || fetch->completions - began->completions < kFewestCompletions) {
    return std::nullopt;
  }
  const double seconds = 1e-9 * static_cast<double>(now.monotonic_ns - began_ns);
  const double spread = n * sum_tt - sum_t * sum_t;
  const double lifetime = after->lifetime_ns - before->lifetime_ns;
  const double queue = after->queue_ns - before->queue_ns;
  if (seconds <= 0 || spread <= 0 || lifetime <= 0) return std::nullopt;
  Fetching fetching;
  fetching.rows_per_s = (n * sum_trows - sum_t * sum_rows) / spread;
  fetching.completions_per_s =
      static_cast<double>(fetch->completions - began->completions) / seconds;
  fetching.blocked_ratio = std::max(0.0, after->blocked_ns - before->blocked_ns) / lifetime;
  fetching.queue_ratio = queue > 0 ? (after->queued_ns - before->queued_ns) / queue : 0;
  return fetching;
}

std::optional<collectors::StoreProbeSample> StoreProbe::Probe(const Fetching& before) {
  const uint32_t few = pipeline_->parallelism(stage_), many = 2 * few;
  // What the added threads ask for first, and last, is under way for as long as any other request.
  const auto settle_ns =
      static_cast<int64_t>(1e9 * kSettlePeriods * few / before.completions_per_s);
  collectors::StoreProbeSample probe;
  probe.stage = stage_;
  probe.few_count = few;
  probe.many_count = many;
  probe.start_realtime_ns = RealtimeNs();
  const int64_t start_ns = MonotonicNs();
  pipeline_->SetParallelism(stage_, many);
  std::optional<Fetching> with_many;
  if (Sleep(settle_ns)) with_many = Measure(many);
  pipeline_->SetParallelism(stage_, few);
  probe.duration_ns = MonotonicNs() - start_ns;
  if (!with_many || !Sleep(2 * settle_ns)) return std::nullopt;
  const std::optional<Fetching> after = Measure(few);
  if (!after) return std::nullopt;
  const double rate = 0.5 * (before.rows_per_s + after->rows_per_s);
  if (std::abs(before.rows_per_s - after->rows_per_s) > kSameRate * rate) return std::nullopt;
  probe.few_rows_per_s = rate;
  probe.many_rows_per_s = with_many->rows_per_s;
  probe.few_blocked_ratio = 0.5 * (before.blocked_ratio + after->blocked_ratio);
  probe.many_blocked_ratio = with_many->blocked_ratio;
  return probe;
}

void StoreProbe::Watch() {
  try {
    // Where containers share a folder, the usual name may be another process's.
    const std::string path = collectors::SegmentSearch(getpid()).FindWhole();
    std::optional<account::AccountSegment> segment;
    if (!path.empty()) segment.emplace(account::AccountSegment::OpenFile(path));
    if (!segment || !Sleep(kSettledNs)) return;
    segment_ = &*segment;
    const SegmentSnapshot first = segment_->Read(true, {});
    const SegmentSnapshot::Operator* fetch = FetchOf(first);
    if (fetch == nullptr) return;
    stage_ = first.stages[fetch->stage].name;
    for (int look = 0; look < kLooks; ++look) {
      const uint32_t few = pipeline_->parallelism(stage_);
      if (few == 0 || 2 * few > kMaxThreads) return;
      const std::optional<Fetching> now = Measure(few);
      if (now && now->blocked_ratio >= analysis::kStageWaits && now->queue_ratio <= kHardlyFilled &&
          HasTime((kSettlePeriods + 2.0 * kCompletions) * few / now->completions_per_s)) {
        found_ = Probe(*now);
        return;
      }
      if (!Sleep(kAgainNs)) return;
    }
  } catch (const Error&) {
    // A stage that may not have more threads, or accounts that cannot be read: there is no probe.
  }
}

}  // namespace headrace::experiments
