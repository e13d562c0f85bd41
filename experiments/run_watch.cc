#include "experiments/run_watch.h"

#include <algorithm>

#include "analysis/run/read_run.h"
#include "base/clock.h"
#include "base/error.h"
#include "experiments/interrupt.h"

namespace headrace::experiments {
namespace {

constexpr int64_t kLookNs = 50'000'000;  // between looks at how much is recorded
constexpr int64_t kStandsStillNs = 15'000'000'000;
// What a decision may look back on in detail.
constexpr int64_t kLatestNs = 300'000'000'000;

}  // namespace

RunWatch::RunWatch(std::string database, int64_t run_id)
    : database_(std::move(database)), run_id_(run_id) {}

std::optional<int64_t> RunWatch::now_ns() const {
  if (began_ns_ == 0) return std::nullopt;
  return MonotonicNs() - began_ns_;
}

std::optional<analysis::RunView> RunWatch::Observe(int64_t wait_ns,
                                                   const std::function<bool()>& ended) {
  const int64_t wanted_ns = recorded_ns_ + wait_ns;
  while (true) {
    if (Interrupted() || ended()) return std::nullopt;
    // What is recorded now is stored a little later.
    if (began_ns_ != 0 && MonotonicNs() - began_ns_ < wanted_ns) {
      SleepUntilNs(std::min(began_ns_ + wanted_ns, MonotonicNs() + kLookNs));
      continue;
    }
    if (analysis::RecordedNs(database_, run_id_) >= wanted_ns) break;
    if (began_ns_ != 0 && MonotonicNs() - began_ns_ > wanted_ns + kStandsStillNs) {
      throw Error(ExitCode::kFailure, "the recording has stopped, so nothing can be decided",
                  database_, "see whether its disk is full");
    }
    SleepUntilNs(MonotonicNs() + kLookNs);
  }
  analysis::RunView run = analysis::LoadRun(
      database_, std::to_string(run_id_), {std::max<int64_t>(0, wanted_ns - kLatestNs), INT64_MAX});
  if (began_ns_ == 0) began_ns_ = MonotonicNs() - (RealtimeNs() - run.run.started_realtime_ns);
  if (!run.windows.empty()) {
    recorded_ns_ = run.windows.back().start_ns + run.windows.back().duration_ns;
  }
  return run;
}

}  // namespace headrace::experiments
