// Writes a variant of a pipeline file with other operators or another table, for commands that
// measure variants. It makes only changes that `--set` cannot make; scalar settings are left to
// `--set`.
#pragma once
#include <string>

namespace headrace::experiments {

struct PipelineEdit {
  std::string table;          // absolute; empty: as it is
  bool rowmap = false;        // "rowmap" behind "extract"
  bool rebatch = false;       // a stage "client" with "rebatch" behind all others
  int one_stage_threads = 0;  // above 0: all operators in one stage with this many threads
};

// Reads `path`, writes the edited file to `to` by rename. Relative paths in the file are not
// resolved, except the table's. Throws Error kBadData where it is not TOML or has no stages.
void WriteEdited(const std::string& path, const PipelineEdit& edit, const std::string& to);

}  // namespace headrace::experiments
