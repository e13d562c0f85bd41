// WorkSplit: where the CPU time of a pipeline goes, by part of the pipeline and by transform, as
// characterization studies print it; and how many cores the consumer needs now and would need to
// never wait.
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

// CPU time of the steady phase by class, in pipeline order; operators without a class one by one;
// "outside every operator" last.
std::vector<WorkShare> StageSplit(const PipelineModel& model);
// CPU time by class of transform, and by transform, the dearest first. Shares are of all
// transforms' time. Empty without accounts of transforms.
std::vector<WorkShare> TransformClasses(const PipelineModel& model);
std::vector<WorkShare> Transforms(const PipelineModel& model);

// Cores that the pipeline keeps busy for its consumer, and cores that it would need for the
// consumer never to wait: CPU time per batch times the rate that the consumer could take.
struct CpuToConsumer {
  Quantity cores_used, cores_wanted;
};
CpuToConsumer CpuToConsumerOf(const PipelineModel& model);

}  // namespace headrace::analysis
