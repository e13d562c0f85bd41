// WorkSplit: where the CPU time of a pipeline goes, by part of the pipeline and by transform, as
// characterization studies print it; and how many cores the consumer takes and would take.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/pipeline_model.h"
#include "analysis/run/operator_class.h"
#include "base/quantity.h"

namespace headrace::analysis {

struct WorkShare {
  std::string name;  // of the class, or of the operator
  OperatorClass cls = OperatorClass::kOther;
  Quantity cpu_per_row;   // ns; unavailable where CPU time was not split from waiting
  Quantity cpu_share;     // of the process's CPU time, or of the transforms', with its interval
  Quantity busy_per_row;  // ns of thread time in it: on a CPU, blocked, or runnable
};

// By class, in pipeline order, operators of no class one by one, and "outside every operator" last.
// Steady phase.
std::vector<WorkShare> StageSplit(const PipelineModel& model);
// By class of transform, then by transform, each the dearest first; shares are of all transforms.
// Empty without accounts of transforms.
std::vector<WorkShare> TransformClasses(const PipelineModel& model);
std::vector<WorkShare> Transforms(const PipelineModel& model);

// Cores that the pipeline keeps busy for its consumer, and those that would let the consumer work
// without a wait: CPU of a batch times the rate it could take.
struct CpuToConsumer {
  Quantity cores_used, cores_wanted;
};
CpuToConsumer CpuToConsumerOf(const PipelineModel& model);

}  // namespace headrace::analysis
