// The live view: reads a run again and again, has verdicts made beside it, paints the screen and
// obeys keys.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dashboards/terminal/keys.h"
#include "dashboards/terminal/layout.h"
#include "dashboards/terminal/top_model.h"

namespace headrace::dashboards {

struct TopOptions {
  std::string database;
  int64_t run_id = 0;
  std::string program = "headrace", database_option;  // for commands to paste (RunView)
  std::vector<std::string> notes;                     // shown under the head
  int64_t interval_ns = 1'000'000'000;                // between two looks at the store
  bool ascii = false, color = false;
  std::function<bool()> interrupted;  // by SIGINT or SIGTERM: the view ends
  // Whether a command that was started for this view still runs; null: there is none.
  std::function<bool()> command_runs;
};

struct TopEnd {
  bool interrupted = false;
  bool end_command = false;  // the user wants the command that was started to be ended
  // A verdict was still being made: its thread goes on, so the process must end with std::_Exit.
  bool unfinished = false;
};

// Shows the run until the user quits. The terminal is as it was before on every way out. Throws
// Error as Screen and LiveRun.
TopEnd RunTop(const TopOptions& options);

// The run as it is now, with its verdict; what a screen shows once.
TopModel LookOnce(const TopOptions& options);

}  // namespace headrace::dashboards
