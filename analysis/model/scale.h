// Scale: the demands of a pipeline of which one part is cheaper or dearer than recorded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

enum class Scaled : uint8_t { kOperator, kStage, kResource, kConsumer, kAdded, kCacheDisk };

struct Scale {
  Scaled part = Scaled::kStage;
  // Of the operator, stage or resource, or of the cache's tier; of no meaning for the consumer.
  size_t index = 0;
  // Its cost multiplied by this, 0 and more. kAdded: seconds a batch added to an operator;
  // kCacheDisk: to a disk that is not in the pipeline as recorded.
  double factor = 1;
  bool cpu = true;  // kAdded: computing, else blocked
  bool operator==(const Scale&) const = default;
};

// A pipeline as it might be.
struct Variant {
  Settings settings;
  std::vector<Scale> scales;
  bool operator==(const Variant&) const = default;
};

// `demands` with each scale applied in turn. A cheaper operator holds what it shares for less time,
// a resource that serves faster makes its users cheaper by what they held it; sums of stages and
// cores follow.
Demands Apply(const PipelineModel& model, Demands demands, const std::vector<Scale>& scales);

}  // namespace headrace::analysis
