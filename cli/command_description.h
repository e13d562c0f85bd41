// What a command line takes, as data: --help, the manual and completions are made of it.
#pragma once
#include <string>
#include <vector>

namespace headrace::cli {

// What is said of one option or positional argument in --help, the manual and completions.
struct OptionDescription {
  std::vector<std::string> names;            // "-o", "--output"; of a positional argument its word
  std::string value;                         // what it takes: "FILE"; "": it is a flag
  std::string help;                          // begins with a verb
  std::string default_text;                  // "": none, or it is no news
  std::string condition;                     // "from 1 to 8"; "": none
  std::string group;                         // its heading; "": none of its own
  std::vector<std::string> choices;          // the values it takes; empty: any
  std::vector<std::string> needs, excludes;  // names of options
  bool positional = false, required = false, several = false;

  // "--output"; of a positional argument and of "-o" alone that.
  const std::string& long_name() const { return names.back(); }
};
struct CommandDescription {
  std::string name;                        // "headrace runs"; of a subcommand "rm"
  std::string purpose;                     // without the name
  std::vector<OptionDescription> options;  // in the order in which they were added
  std::vector<CommandDescription> subcommands;
  bool takes_command = false;  // after the options: -- COMMAND [ARGUMENTS]
};

}  // namespace headrace::cli
