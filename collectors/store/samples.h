// What a recorder gives to the store for one interval of a run: definitions and deltas. Entities
// have small ids that the recorder chooses and keeps throughout the run. columns.def lists the
// members with their meaning.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headrace::collectors {

struct StageSample {
  int64_t id = 0;
#define HR_STAGE_COLUMN(type, member, column, merge, help) type member{};
#include "collectors/store/columns.def"
};
struct OperatorSample {
  int64_t id = 0;
#define HR_OPERATOR_COLUMN(type, member, column, merge, help) type member{};
#include "collectors/store/columns.def"
};
struct QueueSample {
  int64_t id = 0;
#define HR_QUEUE_COLUMN(type, member, column, merge, help) type member{};
#include "collectors/store/columns.def"
};
struct ResourceSample {
  int64_t id = 0;
#define HR_RESOURCE_COLUMN(type, member, column, merge, help) type member{};
#include "collectors/store/columns.def"
};
// A single step; `end_ns` since the run began.
struct StepRecord {
  int64_t end_ns = 0, wait_ns = 0, compute_ns = 0, rows = 0;
};
struct StepSample {
  int64_t steps = 0, rows = 0, wait_ns = 0, compute_ns = 0;
  // Begin of the first and end of the last step in `durations_ns`, since the run began.
  std::optional<int64_t> first_ns, last_ns;
  std::vector<int64_t> durations_ns;     // wait + compute of single steps, for quantiles
  std::vector<StepRecord> records = {};  // the same steps; stored where full detail is kept
};
struct IntervalSample {
  int64_t start_ns = 0, duration_ns = 0;  // since the run began
  std::vector<StageSample> stages;
  std::vector<OperatorSample> operators;
  std::vector<QueueSample> queues;
  std::vector<ResourceSample> resources;
  StepSample steps;
};

}  // namespace headrace::collectors
