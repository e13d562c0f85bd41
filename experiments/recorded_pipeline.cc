#include "experiments/recorded_pipeline.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "dashboards/terminal/progress.h"
#include "experiments/interrupt.h"

namespace headrace::experiments {

PipelineWatcher::PipelineWatcher(reader::Pipeline* pipeline, int64_t duration_ns, bool quiet)
    : pipeline_(pipeline), duration_ns_(duration_ns), quiet_(quiet), thread_([this] { Watch(); }) {}

PipelineWatcher::~PipelineWatcher() {
  done_ = true;
  thread_.join();
}

void PipelineWatcher::Watch() {
  int64_t start = MonotonicNs();
  bool begun = !pipeline_->spec().repeat_first_batch;
  std::optional<dashboards::Progress> progress;
  if (!quiet_) progress.emplace("running " + pipeline_->spec().name);
  while (!done_) {
    SleepUntilNs(MonotonicNs() + 20'000'000);
    // What is repeated has to be made first, and that is no part of its time.
    if (!begun) {
      start = MonotonicNs();
      begun = pipeline_->progress().batches > 0;
    }
    const int64_t elapsed = MonotonicNs() - start;
    if (Interrupted() || (duration_ns_ > 0 && elapsed >= duration_ns_)) pipeline_->RequestStop();
    if (!progress) continue;
    const reader::PipelineProgress now = pipeline_->progress();
    double fraction = duration_ns_ > 0
                          ? static_cast<double>(elapsed) / static_cast<double>(duration_ns_)
                          : now.fraction;
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    const double seconds = static_cast<double>(elapsed) / 1e9;
    progress->Update(fraction,
                     fmt::format("{}, {:.1f} batches/s",
                                 FormatRate(static_cast<double>(now.rows) / seconds, "rows"),
                                 static_cast<double>(now.batches) / seconds));
  }
}

collectors::Agent StartRecording(const RecordingOptions& options, const reader::Pipeline& pipeline,
                                 collectors::RunConditions conditions) {
  // The collector reads this process's accounts and /proc; a restrictive ptrace scope must not stop
  // it.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  collectors::AgentOptions agent_options;
  agent_options.database = options.database;
  agent_options.run_name = options.name.empty() ? pipeline.spec().name : options.name;
  agent_options.pipeline_path = std::filesystem::absolute(options.pipeline_path).string();
  agent_options.arguments = options.arguments;
  collectors::Agent agent = collectors::Agent::Start(agent_options);
  const uint64_t splits = pipeline.epoch_splits();
  if (splits > 0) conditions.epoch_splits_count = static_cast<int64_t>(splits);
  // Before the first batch, so that no end of the run can lose it.
  collectors::RunStore(options.database).SetConditions(agent.run_id(), conditions);
  return agent;
}

}  // namespace headrace::experiments
