// headrace plan --nodes FILE: the fleet that reaches a rate, planned from one recorded run.
#pragma once
#include <optional>
#include <string>

#include "analysis/model/pipeline_model.h"
#include "analysis/run/run_view.h"

namespace headrace::cli {

class CommandLine;

struct FleetOptions {
  std::string nodes;                  // the nodes file
  std::optional<double> target_rows;  // rows per second; empty: what the clients demand
  std::string format = "text";        // text, md, json
  std::string output, lp;             // files to write; empty: standard output, none
  std::string database;               // of the run: its job, if it has one, is what to check with
  bool force = false, explain = false, simulate = true;
};

// --nodes and --format, after the options that do not go with them.
void AddFleetOptions(CommandLine* command_line, std::string* nodes, std::string* format);

// Prints the page. Returns the exit code; throws Error kInconclusive, after printing, when no fleet
// reaches the target.
int PlanFleet(const analysis::RunView& view, const analysis::PipelineModel& model,
              const FleetOptions& options);

}  // namespace headrace::cli
