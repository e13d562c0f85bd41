#include "cli/tuned_pipeline.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "cli/command.h"

namespace headrace::cli {
namespace {

constexpr int64_t kLookNs = 50'000'000;  // between looks at how much is recorded
constexpr int64_t kStandsStillNs = 15'000'000'000;
constexpr std::string_view kThreads = ".parallelism", kQueue = ".queue";

}  // namespace

TunedPipeline::TunedPipeline(reader::Pipeline* pipeline, std::string database, int64_t run_id,
                             const std::atomic<bool>* ended)
    : pipeline_(pipeline), database_(std::move(database)), run_id_(run_id), ended_(ended) {}

analysis::KnobValues TunedPipeline::knobs() const {
  analysis::KnobValues knobs;
  for (const reader::StageSpec& stage : pipeline_->spec().stages) {
    if (stage.max_parallelism != 1) {
      knobs[stage.name + std::string(kThreads)] =
          static_cast<int>(pipeline_->parallelism(stage.name));
    }
    knobs[stage.name + std::string(kQueue)] = static_cast<int>(stage.queue);
  }
  return knobs;
}

int64_t TunedPipeline::Apply(const std::vector<analysis::Change>& changes) {
  for (const analysis::Change& change : changes) {
    const std::string& knob = change.knob;
    const size_t dot = knob.rfind('.');
    const std::string stage = knob.substr(0, dot);
    const std::string_view what = std::string_view(knob).substr(std::min(dot, knob.size()));
    const uint32_t value = static_cast<uint32_t>(std::max(0, change.to));
    if (what == kThreads) {
      pipeline_->SetParallelism(stage, value);
    } else if (what == kQueue) {
      pipeline_->SetQueueCapacity(stage, value);
    } else {
      throw Error(ExitCode::kUsage, "is no knob of a running pipeline", knob,
                  "turn STAGE.parallelism or STAGE.queue");
    }
  }
  return now_ns().value_or(recorded_ns_);
}

std::optional<int64_t> TunedPipeline::now_ns() {
  if (began_ns_ == 0) return std::nullopt;
  return MonotonicNs() - began_ns_;
}

std::optional<analysis::RunView> TunedPipeline::Observe(int64_t wait_ns) {
  const int64_t wanted_ns = recorded_ns_ + wait_ns;
  while (true) {
    if (*ended_ || Interrupted()) return std::nullopt;
    // What is recorded now is stored a little later.
    if (began_ns_ != 0 && MonotonicNs() - began_ns_ < wanted_ns) {
      SleepUntilNs(std::min(began_ns_ + wanted_ns, MonotonicNs() + kLookNs));
      continue;
    }
    if (analysis::RecordedNs(database_, run_id_) >= wanted_ns) break;
    if (began_ns_ != 0 && MonotonicNs() - began_ns_ > wanted_ns + kStandsStillNs) {
      throw Error(ExitCode::kFailure, "the recording stands still, so that nothing can be decided",
                  database_, "see whether its disk is full");
    }
    SleepUntilNs(MonotonicNs() + kLookNs);
  }
  analysis::RunView run = analysis::LoadRun(database_, std::to_string(run_id_));
  if (began_ns_ == 0) began_ns_ = MonotonicNs() - (RealtimeNs() - run.run.started_realtime_ns);
  if (!run.windows.empty()) {
    recorded_ns_ = run.windows.back().start_ns + run.windows.back().duration_ns;
  }
  return run;
}

}  // namespace headrace::cli
