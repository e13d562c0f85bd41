#include "experiments/tuned_pipeline.h"

#include <algorithm>

#include "base/error.h"

namespace headrace::experiments {
namespace {

constexpr std::string_view kThreads = ".parallelism", kQueue = ".queue";

}  // namespace

TunedPipeline::TunedPipeline(reader::Pipeline* pipeline, std::string database, int64_t run_id,
                             const std::atomic<bool>* ended)
    : pipeline_(pipeline), watch_(std::move(database), run_id), ended_(ended) {}

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
      throw Error(ExitCode::kUsage, "is not a knob of a running pipeline", knob,
                  "turn STAGE.parallelism or STAGE.queue");
    }
  }
  return now_ns().value_or(watch_.recorded_ns());
}

std::optional<analysis::RunView> TunedPipeline::Observe(int64_t wait_ns) {
  return watch_.Observe(wait_ns, [this] { return ended_->load(); });
}

}  // namespace headrace::experiments
