// Accelerators of a run that is made up: what they told of their use, and who uses them.
#pragma once
#include <string>

#include "analysis/run/run_view.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

// A device that is busy `busy` of each second, within +-`noise` of it.
inline void AddDevice(RunView* run, const std::string& device, double busy, double noise = 0.02,
                      uint64_t seed = 5) {
  Random random(seed);
  constexpr int64_t kSecond = 1'000'000'000;
  for (int64_t at = 0; at + kSecond <= run->run.duration_ns; at += kSecond) {
    const double ratio = busy * (1 + noise * (2 * random.Uniform() - 1));
    run->accelerator_use.push_back({at, kSecond, device, std::min(1.0, ratio)});
  }
  MeasurementRow row;
  row.metric = "gpu_use_ratio";
  row.kind = "gauge";
  row.source = "counter";
  row.subject = device;
  row.cause = "compute";
  row.value = row.last_value = busy;
  run->measurements.push_back(row);
  if (!run->Has("gpu_use_ratio")) run->metrics.push_back("gpu_use_ratio");
}

// A process of the run that computes on the device; pid 0: `cause` says whose, "others" or
// "unseen".
inline void AddUser(RunView* run, const std::string& device, int64_t pid,
                    const std::string& cause = "") {
  MeasurementRow row;
  row.metric = "gpu_processes_count";
  row.kind = "gauge";
  row.source = "counter";
  row.subject = device;
  row.cause = cause;
  if (pid != 0) row.process_id = row.pid = pid;
  row.value = row.last_value = 1;
  run->measurements.push_back(row);
}

}  // namespace headrace::analysis
