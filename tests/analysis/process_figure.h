// A figure that was recorded of one process.
#pragma once
#include <cstdint>
#include <string>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

inline void AddProcessFigure(RunView* run, int64_t pid, const std::string& metric, double value) {
  MeasurementRow row;
  row.metric = metric;
  row.process_id = row.pid = pid;
  row.process = "python";
  row.value = value;
  run->measurements.push_back(row);
}

}  // namespace headrace::analysis
