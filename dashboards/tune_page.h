// The page of a tuning that is over: why it stopped, what its changes gained, the settings that it
// came to, and the command that comes next.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/tuning/tuner.h"

namespace headrace::dashboards {

struct TunePage {
  analysis::TuneResult result;
  // Decisions as they are stored, objects of schema headrace.decision/1, in order.
  std::vector<std::string> decisions;
  std::string then_limited_by;  // by the last decision that says it; may be empty
  std::string pipeline, name;   // the pipeline file and the run's name
  int64_t run_id = 0;
  double rows_per_batch = 0;                          // 0: not known
  std::map<std::string, std::string> start_settings;  // with a cache that was decided for

  // For the commands that the text names.
  bool foreign = false;         // a process of somebody else's, which 'headrace run' cannot start
  std::string program;          // as a shell takes it
  std::string database;         // the file
  std::string file;             // the pipeline file as it was named
  std::string database_option;  // " --db FILE"; empty for the default
  std::string output;           // the plan file that was written; empty: none
};

std::string TuneText(const TunePage& page);

// One object, "schema": "headrace.tune/1" (docs/schema/tune.schema.json), SI base units. What is
// not known is null.
std::string TuneJson(const TunePage& page);

// The settings as a plan file, "schema": "headrace.plan/1": what was verified stands where a plan
// has its prediction.
std::string TunedPlanJson(const TunePage& page);

// The decisions of a run alone, "schema": "headrace.tune_decisions/1"; each as TunePage has them.
std::string TuneDecisionsJson(const std::vector<std::string>& decisions);

}  // namespace headrace::dashboards
