// The consumer that a pipeline file asks for: emulated steps (workloads/trainer.h), a model being
// trained, or nothing but taking batches.
#pragma once
#include <cstdint>
#include <memory>

#include "reader/pipeline/pipeline.h"
#include "workloads/trainer.h"

namespace headrace::workloads {

// What training did. Losses are means over the first and the last kLossSteps steps, fewer when
// there were fewer.
struct TrainingFigures {
  static constexpr uint64_t kLossSteps = 20;
  uint64_t steps = 0, parameters = 0;
  double first_loss = 0, last_loss = 0;
};

// `checksums`, `figures` and `log` may be null; the first two outlive the consumer. Figures are
// complete while no step is running. A model is not part of a checkpoint: a run that trains cannot
// be resumed.
std::unique_ptr<reader::Consumer> MakeConsumer(const reader::PipelineSpec& spec,
                                               RowChecksums* checksums, TrainingFigures* figures,
                                               std::unique_ptr<RowLog> log = nullptr);

}  // namespace headrace::workloads
