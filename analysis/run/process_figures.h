// Figures that were recorded of single processes, as structs with a member for each.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string_view>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// One of them: the metric, the member that takes it, and its unit: the member is value * scale.
template <typename Process>
struct ProcessFigure {
  std::string_view metric;
  double Process::*member;
  double scale = 1;
};

// By id of the process; those of which none of `figures` was recorded are left out, and members
// that were not keep their value. `Process` has members pid and process, its name.
template <typename Process>
std::map<int64_t, Process> FiguresByProcess(const RunView& run,
                                            std::initializer_list<ProcessFigure<Process>> figures) {
  std::map<int64_t, Process> all;
  for (const MeasurementRow& row : run.measurements) {
    if (!row.process_id || !row.value) continue;
    for (const ProcessFigure<Process>& figure : figures) {
      if (row.metric != figure.metric) continue;
      Process& process = all[*row.process_id];
      process.pid = row.pid;
      process.process = row.process;
      process.*figure.member = *row.value * figure.scale;
    }
  }
  return all;
}

}  // namespace headrace::analysis
