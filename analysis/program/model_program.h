// ModelProgram: the integer program of a recorded pipeline within a budget.
#pragma once
#include <vector>

#include "analysis/program/budget.h"
#include "analysis/program/host_program.h"
#include "analysis/program/memory_budget.h"

namespace headrace::analysis {

struct ModelProgram {
  HostProblem problem;
  std::vector<int> most;  // the most threads of each stage
};

// `base`: the settings that a plan starts from, with the cores it may use.
ModelProgram ProgramOf(const PipelineModel& model, const Budget& budget, const Settings& base,
                       const MemoryBudget& memory);

}  // namespace headrace::analysis
