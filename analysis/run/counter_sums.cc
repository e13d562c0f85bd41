#include "analysis/run/counter_sums.h"

namespace headrace::analysis {

void Add(OperatorCounters* sum, const OperatorCounters& x, bool first) {
#define HR_OPERATOR_COUNTER(type, member, column, help) Add(&sum->column, x.column, first);
#include "collectors/store/columns.def"
  Add(&sum->blocked_ns, x.blocked_ns, first);
  Add(&sum->blocked_low_ns, x.blocked_low_ns, first);
  Add(&sum->blocked_high_ns, x.blocked_high_ns, first);
}

Count LikelyCpuNs(const OperatorCounters& op) {
  if (op.on_cpu_ns || !op.on_cpu_low_ns || !op.on_cpu_high_ns) return op.on_cpu_ns;
  return *op.on_cpu_low_ns + (*op.on_cpu_high_ns - *op.on_cpu_low_ns) / 2;
}

std::optional<double> ShareOfCores(const WindowRow& sum) {
  double on_cpu_s = 0, runnable_s = 0;
  for (const StageCounters& stage : sum.stages) {
    if (!stage.on_cpu_ns || !stage.runnable_ns) continue;
    on_cpu_s += Seconds(*stage.on_cpu_ns);
    runnable_s += Seconds(*stage.runnable_ns);
  }
  if (on_cpu_s <= 0) return std::nullopt;
  return on_cpu_s / (on_cpu_s + runnable_s);
}

double OffCpuNs(const RunView& run, const OperatorRow& op, std::string_view cause) {
  double wait_ns = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "off_cpu_ns" || row.cause != cause || !row.value) continue;
    if (row.operator_name == op.name && (row.stage.empty() || row.stage == op.stage)) {
      wait_ns += *row.value;
    }
  }
  return wait_ns;
}

}  // namespace headrace::analysis
