// A pipeline file with other operators or another table, for commands that measure variants of it;
// what `--set` cannot change. Settings that are scalars stay with `--set`.
#pragma once
#include <string>

namespace headrace::experiments {

struct PipelineEdit {
  std::string table;          // absolute; empty: as it is
  bool rowmap = false;        // "rowmap" behind "extract"
  bool rebatch = false;       // a stage "client" with "rebatch" behind all others
  int one_stage_threads = 0;  // above 0: all operators in one stage of so many threads
};

// Reads `path`, writes the edited file to `to` by rename. Relative paths of the file are not
// resolved, but for the table. Throws Error kBadData where it is no TOML or has no stages.
void WriteEdited(const std::string& path, const PipelineEdit& edit, const std::string& to);

}  // namespace headrace::experiments
