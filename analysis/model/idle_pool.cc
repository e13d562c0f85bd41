// PipelineModel::ReadIdlePool: who asks a pool for one result, waits for it and computes has its
// workers idle meanwhile. Results wait in no bounded queue, so that workers without a call are
// those that nobody called. Where results are there while the consumer waits, it waits for the one
// that is due, or for Python's interpreter, and not for what it did not ask for.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "analysis/model/pipeline_model.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// A function that a pool of Python's calls.
bool IsCall(const std::string& kind) { return kind == "call" || kind == "thread_call"; }

// Whether threads of the consumer's process other than its first one wait for devices for long: one
// of them may make the calls of what it reads.
bool OthersWaitForDevices(const RunView& run, const std::vector<size_t>& consumer_stages) {
  std::set<std::string> stages;
  for (const size_t row : consumer_stages) stages.insert(run.stages[row].name);
  std::set<int64_t> processes;
  for (const MeasurementRow& row : run.measurements) {
    if (row.process_id && stages.contains(row.stage)) processes.insert(*row.process_id);
  }
  double waited_ns = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "off_cpu_ns" || !row.value || !row.process_id) continue;
    if (!processes.contains(*row.process_id) || row.thread.ends_with(" (main)")) continue;
    const bool device = row.cause == "network" || row.cause == "storage";
    if (row.operator_name.empty() && device) waited_ns += *row.value;
  }
  return waited_ns > kIdlePool * static_cast<double>(run.run.duration_ns);
}

}  // namespace

void PipelineModel::ReadIdlePool() {
  if (consumers_ > 1 || !(demands_.rate > 0) || stall_ratio_ < kIdlePool) return;
  // Another thread of the trainer's process may be what calls late: it pickles what calls are
  // given, or reads it.
  const double others_s = demands_.unattributed_cpu_s - demands_.consumer_cpu_s;
  if (others_s * demands_.rate > kIdlePool) return;
  if (OthersWaitForDevices(*run_, consumer_rows_)) return;
  const double most_cores = (1 - kIdleCores) * cores_available_;
  if (cores_known_ && cores_used_.value_or(0) > most_cores) return;
  std::optional<IdlePool> found;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const StageModel& stage = stages_[s];
    if (stage.on_consumer) continue;
    if (stage.wait_out_ratio < kIdlePool) return;  // it may be what the consumer waits for
    const bool calls = std::any_of(stage.operators.begin(), stage.operators.end(),
                                   [&](size_t op) { return IsCall(operators_[op].kind); });
    const bool feeds_consumer = !stage.output || stages_[*stage.output].on_consumer;
    if (found || !calls || !feeds_consumer || stage.parallelism < 2 || !stage.queue) continue;
    if (run_->queues[*stage.queue].empty_ratio.value_or(0) < kNoResults) continue;
    // As many as there are workers, and more: they work while the consumer computes, too.
    const double at_once = demands_.stage_s[s] * demands_.rate / stall_ratio_;
    if (at_once < stage.parallelism) found = {s, stage.wait_out_ratio, at_once};
  }
  idle_pool_ = found;
}

}  // namespace headrace::analysis
