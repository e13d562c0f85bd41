// The options of headrace compare: what two sides are, how they are run, what is said of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "cli/command.h"
#include "cli/page_output.h"

namespace headrace::cli {

class CommandLine;

struct CompareOptions {
  std::vector<std::string> sides, a, b, set;
  std::string a_command, b_command, split, duration, time, margin = "3%", prepare, name;
  std::string database = DefaultDatabase();
  PageOutput page;
  std::vector<std::string> fail_on;
  std::optional<size_t> pairs;
  std::optional<uint64_t> seed;
  std::optional<int64_t> show;
  size_t warmup = 0;
  int level = -1;  // -1: all that works
  bool cold = false, no_early_stop = false, force = false, quiet = false, list = false;
};

void AddCompareOptions(CommandLine* command_line, CompareOptions* options);

// "3%" or "0.03" as a share. Throws Error kUsage for anything but a share above 0 and below 1.
double ParseMargin(const std::string& text);

// Those of --fail-on. Throws Error kUsage.
std::vector<analysis::Gate> ParseGates(const CompareOptions& options);

// Throws Error kUsage, saying `why` and `fix`, if an option is given that says how sides are run,
// where none is.
void RefuseRunning(const CompareOptions& options, const char* why, const char* fix);

// The command line that makes the same comparison, but for the number of pairs.
std::string RepeatCommand(const CompareOptions& options);

}  // namespace headrace::cli
