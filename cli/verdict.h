// What several commands say of a recorded run: the verdict block of its report and what to do next.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "collectors/recorder.h"

namespace headrace::cli {

// Columns of the terminal on stream `descriptor` ($COLUMNS first), else 120.
int TerminalWidth(int descriptor);
// True when the locale does not ask for UTF-8.
bool AsciiOnly();

// The verdict of a run as lines of text, and the next commands. `decided`: whether there is one.
struct VerdictBlock {
  std::string text;
  bool decided = false;
};
// Never throws: what cannot be said is said.
VerdictBlock MakeVerdictBlock(const std::string& database, int64_t run_id, int descriptor);

// " --db FILE" for commands to paste; "" for the default database.
std::string DatabaseOption(const std::string& database);

// The options with which `run`, `profile` and `collect` say what to measure.
struct MeasureOptions {
  int level = -1;  // -1: all that works
  bool deep = false;
  std::string ring, trigger;

  void AddTo(CLI::App* app);
  // Checks them and puts them into a recorder's. Throws Error kUsage.
  void Apply(collectors::RecorderOptions* options) const;
};

}  // namespace headrace::cli
