// A command with its command line: its own options and those that all commands have.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/configuration.h"

namespace headrace::cli {

class ConfiguredCommand {
 public:
  // `command` must live as long as this.
  ConfiguredCommand(const std::string& name, const Command& command);

  CommandLine& line() const { return *line_; }
  const Command& command() const { return command_; }
  // Parses the words, and runs the command unless they ask for help. Returns its exit code; throws
  // UsageFault, and what the command throws.
  int Run(const std::vector<std::string>& words) const;

 private:
  const Command& command_;
  std::unique_ptr<std::string> color_;
  std::unique_ptr<CommandLine> line_;
  std::function<int()> run_;
};

// Makes the file's values the defaults of a command's options, but for those that an environment
// variable decides, and those that cannot stand beside an option that `asked`, which has read the
// words (AsksForHelp), names. From here on no other headrace that this process starts reads the
// file: it is told everything by options. Throws Error kUsage for a value that the option refuses.
void ApplyConfiguration(const std::string& command, const CommandLine& asked, CommandLine* line);

// Throws Error kUsage where the file names a command or an option that is not there, or one that
// each call has to say (--force).
void CheckNames(const ConfigurationFile& file);

}  // namespace headrace::cli
