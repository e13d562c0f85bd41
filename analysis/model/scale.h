// Scale: changes the demands of a pipeline as if one part of it were cheaper or dearer than
// recorded. Out of order (kOrder) nobody waits for the slowest worker either: what workers differ
// by goes with it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

enum class Scaled : uint8_t {
  kOperator,
  kStage,
  kResource,
  kConsumer,
  kAdded,
  kCacheDisk,
  kOrder,
  kUneven,
  kAskedLate,
  kOther
};

struct Scale {
  Scaled part = Scaled::kStage;
  // Index of the operator, stage, resource or cache tier; unused for the consumer, the order, what
  // workers differ by and the time in which a pool is asked for nothing.
  size_t index = 0;
  // Its cost is multiplied by this, at least 0. kOther: CPU time outside all operators and outside
  // the consumer's threads. kAdded: seconds per batch that are added to an
  // operator; kCacheDisk: seconds per batch on a disk that the recorded pipeline does not have.
  double factor = 1;
  bool cpu = true;  // kAdded: true: CPU time, false: blocked time
  bool operator==(const Scale&) const = default;
};

// A pipeline as it might be.
struct Variant {
  Settings settings;
  std::vector<Scale> scales;
  bool operator==(const Variant&) const = default;
};

// `demands` with each scale applied in turn. A cheaper operator holds shared resources for less
// time; a faster resource makes its users cheaper by the time that they hold it less. The sums per
// stage and for the cores follow.
Demands Apply(const PipelineModel& model, Demands demands, const std::vector<Scale>& scales);

}  // namespace headrace::analysis
