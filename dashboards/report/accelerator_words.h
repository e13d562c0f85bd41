// What the first page, and programs, are told of accelerators beside the trainer's waits.
#pragma once
#include <string>

#include "analysis/run/accelerator_use.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

// "GPU 0 is idle 71.0 % of the time [68, 74]; the trainer waits for data in 65 to 100 % of that
// time". `who`: "the trainer" or "the consumer".
std::string AcceleratorLine(const analysis::Accelerators& accelerators, const std::string& who);

// The same for machines, under the keys "accelerator.*".
void AddAcceleratorFacts(const analysis::Accelerators& accelerators, const std::string& who,
                         Section* section);

// A row for each device that the run uses, and what its figures mean.
void AddAcceleratorTable(const analysis::RunView& run, const analysis::Statements& statements,
                         Section* section);

}  // namespace headrace::dashboards
