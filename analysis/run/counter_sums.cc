#include "analysis/run/counter_sums.h"

namespace headrace::analysis {

void Add(Count* sum, const Count& value, bool first) {
  if (first) {
    *sum = value;
  } else if (*sum && value) {
    **sum += *value;
  } else {
    sum->reset();
  }
}

void Add(OperatorCounters* sum, const OperatorCounters& x, bool first) {
  sum->completions_count += x.completions_count;
  sum->rows_count += x.rows_count;
  sum->bytes_in_bytes += x.bytes_in_bytes;
  sum->bytes_out_bytes += x.bytes_out_bytes;
  sum->busy_ns += x.busy_ns;
  Add(&sum->on_cpu_ns, x.on_cpu_ns, first);
  Add(&sum->blocked_ns, x.blocked_ns, first);
  Add(&sum->runnable_ns, x.runnable_ns, first);
  Add(&sum->on_cpu_low_ns, x.on_cpu_low_ns, first);
  Add(&sum->on_cpu_high_ns, x.on_cpu_high_ns, first);
  Add(&sum->blocked_low_ns, x.blocked_low_ns, first);
  Add(&sum->blocked_high_ns, x.blocked_high_ns, first);
  sum->lock_wait_ns += x.lock_wait_ns;
  sum->wait_in_ns += x.wait_in_ns;
  sum->wait_out_ns += x.wait_out_ns;
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
