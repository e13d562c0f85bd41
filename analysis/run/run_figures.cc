#include "analysis/run/run_figures.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/run/phases.h"

namespace headrace::analysis {
namespace {

constexpr double kNs = 1e-9;

void Put(RunFigures* out, Figure figure, Real value, const char* reason) {
  const auto i = static_cast<size_t>(figure);
  if (value && !std::isfinite(*value)) value.reset();
  out->values[i] = value;
  out->reasons[i] = value ? "" : reason;
}

// CPU of all threads in a window: the scheduler's where every stage has it, else the operators'.
Real CpuOf(const WindowRow& window) {
  double cpu_ns = 0;
  bool known = !window.stages.empty();
  for (const StageCounters& stage : window.stages) {
    if (!stage.on_cpu_ns && stage.lifetime_ns > 0) known = false;
    cpu_ns += static_cast<double>(stage.on_cpu_ns.value_or(0));
  }
  if (known) return cpu_ns * kNs;
  cpu_ns = 0;
  known = !window.operators.empty();
  for (const OperatorCounters& op : window.operators) {
    if (!op.on_cpu_ns && op.busy_ns > 0) known = false;
    cpu_ns += static_cast<double>(op.on_cpu_ns.value_or(0));
  }
  return known ? Real(cpu_ns * kNs) : std::nullopt;
}

// What the windows hold themselves.
void PutWindows(const RunView& run, const std::vector<size_t>& windows, RunFigures* out) {
  double seconds = 0, rows = 0, wait = 0, compute = 0;
  Real cpu = 0;
  for (const size_t w : windows) {
    const WindowRow& window = run.windows[w];
    seconds += static_cast<double>(window.duration_ns) * kNs;
    rows += static_cast<double>(window.steps.rows_count);
    wait += static_cast<double>(window.steps.wait_ns);
    compute += static_cast<double>(window.steps.compute_ns);
    const Real of_window = CpuOf(window);
    if (cpu) cpu = of_window ? Real(*cpu + *of_window) : std::nullopt;
  }
  const bool any = seconds > 0 && rows > 0;
  Put(out, Figure::kRowsPerSecond, any ? Real(rows / seconds) : std::nullopt, "no rows recorded");
  Put(out, Figure::kWait, wait + compute > 0 ? Real(wait / (wait + compute)) : std::nullopt,
      "no steps recorded");
  Put(out, Figure::kCpuPerRow, any && cpu && *cpu > 0 ? Real(*cpu / rows) : std::nullopt,
      any ? "CPU time was not measured" : "no rows recorded");
}

// CPU time of all processes, of whichever source saw it.
Real CpuSeconds(const RunView& run) {
  double cpu_ns = 0;
  bool known = false;
  for (const ProcessRow& process : run.processes) {
    if (!process.cpu_ns) continue;
    known = true;
    cpu_ns += static_cast<double>(*process.cpu_ns);
  }
  const HostRow* host = run.FindHost("process_cpu_ns");
  if (host != nullptr && host->last_value) {
    known = known || *host->last_value > 0;
    cpu_ns = std::max(cpu_ns, *host->last_value);
  }
  // The kernel's view sees also what lived too short for a reading of /proc.
  double seen_ns = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "on_cpu_ns" || !row.value || !row.process_id) continue;
    known = true;
    seen_ns += *row.value;
  }
  cpu_ns = std::max(cpu_ns, seen_ns);
  return known ? Real(cpu_ns * kNs) : std::nullopt;
}

Real PeakRss(const RunView& run) {
  Real peak;
  const HostRow* host = run.FindHost("process_rss_bytes");
  if (host != nullptr) peak = host->maximum_value;
  for (const ProcessRow& process : run.processes) {
    if (process.maximum_rss_bytes) peak = std::max(peak.value_or(0), *process.maximum_rss_bytes);
  }
  return peak && *peak > 0 ? peak : std::nullopt;
}

std::vector<size_t> AllWindows(const RunView& run) {
  std::vector<size_t> all(run.windows.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

}  // namespace

RunFigures FiguresOf(const RunView& run) {
  RunFigures out;
  const Phases phases = FindPhases(run);
  if (!phases.steady.empty()) {
    out.steady_first_ns = phases.first_ns;
    out.steady_last_ns = phases.last_ns;
    out.steady_windows = phases.steady.size();
  }
  PutWindows(run, phases.steady.empty() ? AllWindows(run) : phases.steady, &out);
  const auto rows = static_cast<double>(run.steps.rows_count);
  const auto per_row = [&](const Count& bytes) {
    return rows > 0 && bytes ? Real(static_cast<double>(*bytes) / rows) : std::nullopt;
  };
  const auto seconds = [](const Count& ns) {
    return ns ? Real(static_cast<double>(*ns) * kNs) : std::nullopt;
  };
  Put(&out, Figure::kPeakRss, PeakRss(run), "the run ended before memory was read");
  Put(&out, Figure::kStepP50, seconds(run.steps.step_p50_ns), "no steps recorded");
  Put(&out, Figure::kStepP99, seconds(run.steps.step_p99_ns), "no steps recorded");
  Put(&out, Figure::kReadPerRow, per_row(run.fetched_bytes), "the pipeline reads no files");
  Put(&out, Figure::kDevicePerRow, per_row(run.device_bytes), "not counted");
  Put(&out, Figure::kElapsed, seconds(run.run.duration_ns), "");
  Put(&out, Figure::kCpu, CpuSeconds(run), "it ended before its CPU time was read");
  Put(&out, Figure::kRead,
      run.device_bytes ? Real(static_cast<double>(*run.device_bytes)) : std::nullopt,
      "not counted");
  return out;
}

std::vector<RunFigures> BlocksOf(const RunView& run, int64_t block_ns) {
  const Phases phases = FindPhases(run);
  std::vector<std::vector<size_t>> blocks;
  int64_t filled_ns = block_ns;  // of the last block
  for (const size_t w : phases.steady) {
    if (filled_ns >= block_ns) {
      blocks.emplace_back();
      filled_ns = 0;
    }
    blocks.back().push_back(w);
    filled_ns += run.windows[w].duration_ns;
  }
  if (blocks.size() > 1 && 2 * filled_ns < block_ns) {
    std::vector<size_t>& last = blocks[blocks.size() - 2];
    last.insert(last.end(), blocks.back().begin(), blocks.back().end());
    blocks.pop_back();
  }
  std::vector<RunFigures> out;
  for (const std::vector<size_t>& windows : blocks) {
    RunFigures& block = out.emplace_back();
    for (size_t i = 0; i < kFigures; ++i) block.reasons[i] = kOfWholeRun;
    PutWindows(run, windows, &block);
    block.steady_windows = windows.size();
    block.steady_first_ns = run.windows[windows.front()].start_ns;
    block.steady_last_ns =
        run.windows[windows.back()].start_ns + run.windows[windows.back()].duration_ns;
  }
  return out;
}

}  // namespace headrace::analysis
