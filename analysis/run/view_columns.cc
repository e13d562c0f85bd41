#include "analysis/run/view_columns.h"

namespace headrace::analysis {

void ReadColumn(const ViewRow& row, const char* name, std::string* text) { *text = row.Text(name); }
void ReadColumn(const ViewRow& row, const char* name, int64_t* number) {
  *number = row.Number(name);
}
void ReadColumn(const ViewRow& row, const char* name, bool* set) { *set = row.Number(name) != 0; }
void ReadColumn(const ViewRow& row, const char* name, double* real) {
  const Real value = row.Real(name);
  *real = value.value_or(0);
}
void ReadColumn(const ViewRow& row, const char* name, Count* count) { *count = row.Integer(name); }
void ReadColumn(const ViewRow& row, const char* name, Real* real) { *real = row.Real(name); }
void ReadColumn(const ViewRow& row, const char* name, std::optional<std::string>* text) {
  if (row.Has(name)) *text = row.Text(name);
}

OperatorCounters ReadOperatorCounters(const ViewRow& row) {
  OperatorCounters op;
#define HR_OPERATOR_COUNTER(type, member, column, help) ReadColumn(row, #column, &op.column);
#include "collectors/store/columns.def"
  op.blocked_ns = row.Integer("blocked_ns");
  op.blocked_low_ns = row.Integer("blocked_low_ns");
  op.blocked_high_ns = row.Integer("blocked_high_ns");
  return op;
}

StageCounters ReadStageCounters(const ViewRow& row) {
  StageCounters stage;
  stage.parallelism_count = row.Real("parallelism_count").value_or(0);
  stage.lifetime_ns = row.Number("lifetime_ns");
  stage.on_cpu_ns = row.Integer("on_cpu_ns");
  stage.runnable_ns = row.Integer("runnable_ns");
  stage.unattributed_ns = row.Integer("unattributed_ns");
  return stage;
}

QueueCounters ReadQueueCounters(const ViewRow& row) {
  QueueCounters queue;
  queue.mean_occupancy_ratio = row.Real("mean_occupancy_ratio");
  queue.full_ratio = row.Real("full_ratio");
  queue.empty_ratio = row.Real("empty_ratio");
  queue.puts_count = row.Number("puts_count");
  queue.gets_count = row.Number("gets_count");
  return queue;
}

ResourceCounters ReadResourceCounters(const ViewRow& row) {
  ResourceCounters resource;
#define HR_RESOURCE_COUNTER(type, member, column, help) ReadColumn(row, #column, &resource.column);
#include "collectors/store/columns.def"
  return resource;
}

StepCounters ReadStepCounters(const ViewRow& row) {
  return {row.Number("steps_count"), row.Number("rows_count"), row.Number("wait_ns"),
          row.Number("compute_ns")};
}

}  // namespace headrace::analysis
