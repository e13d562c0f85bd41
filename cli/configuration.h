// The configuration file: defaults of options that a user would otherwise give with every call.
//
//   db = "~/headrace.db"     # of every command that has the option
//   color = "never"
//   [run]                    # of one command
//   level = 2
//   without = ["nvml", "links"]
//
// A key is the long name of an option without its dashes. The file is less than an environment
// variable of the same option, and that less than the option on the command line.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace headrace::cli {

struct ConfiguredOption {
  std::string command;  // "run"; "": every command that has the option
  std::string option;   // "--level"
  std::vector<std::string> values;
  int line = 0;
};

// Throws Error kUsage, with file, line and column: no TOML, a table in a table, or a value that an
// option cannot have. Whether there are such commands and options is for others to say
// (cli/configured_command.h).
std::vector<ConfiguredOption> ParseConfiguration(std::string_view text, const std::string& path);

struct ConfigurationFile {
  std::string path;  // where it is, or would be; "": none is read
  bool exists = false;
  std::vector<ConfiguredOption> options;

  std::string Place(const ConfiguredOption& option) const;  // "FILE:LINE"
};

// $HEADRACE_CONFIG, $XDG_CONFIG_HOME/headrace/config.toml or ~/.config/headrace/config.toml, read
// at the first call. Throws Error as ParseConfiguration; kUsage also where $HEADRACE_CONFIG names
// no readable file.
const ConfigurationFile& Configuration();

// From here on no other headrace that this process starts reads the file.
void HideConfiguration();
// Gives $HEADRACE_CONFIG back to programs that are not headrace's own, as the user has it.
void RestoreConfigurationVariable();

// What this file says of the option in this command, the command's own table before the top; null:
// nothing.
const ConfiguredOption* FindConfigured(const ConfigurationFile& file, const std::string& command,
                                       const std::string& option);

}  // namespace headrace::cli
