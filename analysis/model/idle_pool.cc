// PipelineModel::ReadIdlePool: who asks a pool for one result, waits for it and computes has its
// workers idle meanwhile. Results wait in no bounded queue, so that workers without a call are
// those that nobody called. Where results are there while the consumer waits, it waits for the one
// that is due, or for Python's interpreter, and not for what it did not ask for.
#include <algorithm>
#include <string>

#include "analysis/model/pipeline_model.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// A function that a pool of Python's calls.
bool IsCall(const std::string& kind) { return kind == "call" || kind == "thread_call"; }

}  // namespace

void PipelineModel::ReadIdlePool() {
  if (consumers_ > 1 || !(demands_.rate > 0) || stall_ratio_ < kIdlePool) return;
  // Another thread of the trainer's process may be what calls late: it pickles what calls are
  // given.
  const double others_s = demands_.unattributed_cpu_s - demands_.consumer_cpu_s;
  if (others_s * demands_.rate > kIdlePool) return;
  const double most_cores = (1 - kIdleCores) * cores_available_;
  if (cores_known_ && cores_used_.value_or(0) > most_cores) return;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const StageModel& stage = stages_[s];
    const bool calls = std::any_of(stage.operators.begin(), stage.operators.end(),
                                   [&](size_t op) { return IsCall(operators_[op].kind); });
    const bool feeds_consumer = !stage.output || stages_[*stage.output].on_consumer;
    if (!calls || !feeds_consumer || stage.on_consumer || stage.parallelism < 2) continue;
    if (stage.wait_out_ratio < kIdlePool || !stage.queue) continue;
    if (run_->queues[*stage.queue].empty_ratio.value_or(0) < kNoResults) continue;
    const double wait_s = stall_ratio_ / demands_.rate;
    idle_pool_ = {s, stage.wait_out_ratio, demands_.stage_s[s] / wait_s};
    return;
  }
}

}  // namespace headrace::analysis
