#include "analysis/model/running_ahead.h"

#include <fmt/format.h>

namespace headrace::analysis {
namespace {

const StageModel* Ahead(const PipelineModel& model) {
  const StageModel* last = nullptr;
  for (const StageModel& stage : model.stages()) {
    if (stage.taken_ratio < 1 && stage.queue) last = &stage;
  }
  return last;
}

}  // namespace

std::string StageAhead(const PipelineModel& model) {
  const StageModel* stage = Ahead(model);
  return stage == nullptr ? "" : stage->name;
}

std::string AheadWords(const PipelineModel& model) {
  const StageModel* stage = Ahead(model);
  if (stage == nullptr) return "";
  const QueueRow& queue = model.run().queues[*stage->queue];
  return fmt::format(
      "{} makes {:.1f} results for each one that is taken, and nothing bounds how many wait: {} do",
      stage->name, 1 / stage->taken_ratio, queue.puts_count - queue.gets_count);
}

}  // namespace headrace::analysis
