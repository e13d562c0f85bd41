// One run of a pipeline file, made by a child process as a user would make it: `headrace run
// PIPELINE ... --json --quiet`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::experiments {

struct RecordedRun {
  std::string pipeline, database, name;
  std::vector<std::string> settings;   // KEY=VALUE, as --set
  std::vector<std::string> arguments;  // further options of `headrace run`: "--duration", "5s"
  std::string where = {};              // name of the run in errors; "": "run 'NAME'"
  int64_t timeout_ns = 0;              // it is killed after this time; 0: never
  bool recorded = true;                // false: it only warms up, and is not recorded
};

struct RecordedRunEnd {
  int64_t run_id = 0;  // 0: not recorded
  double rows_per_second = 0;
};

// Runs it and waits for its end. An interrupt is passed on to it, and throws Error kInterrupted.
// Throws the child's Error, by its exit code and last line.
RecordedRunEnd RecordRun(const RecordedRun& run);

}  // namespace headrace::experiments
