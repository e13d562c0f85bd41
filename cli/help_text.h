// What --help says of a command's options: grouped, with what they take and their defaults, and no
// wider than the terminal.
#pragma once
#include <string>
#include <vector>

#include "cli/command_description.h"

namespace headrace::cli {

// Purpose, usage, arguments, subcommands and options of a command in lines of at most `width`
// columns (40 at least, 100 at most: longer lines are hard to read), with an empty line at its end.
std::string HelpText(const CommandDescription& command, int width);

// How wide the text is on a terminal of `width` columns.
int HelpWidth(int width);

// "usage" of a command: "headrace report [OPTIONS] [RUN] [SECTION...]".
std::string Usage(const CommandDescription& command);

// The options under each heading, in the order of headings in --help: positional arguments are left
// out; options without a heading are under "Options".
struct OptionGroup {
  std::string heading;
  std::vector<const OptionDescription*> options;
};
std::vector<OptionGroup> GroupsOf(const CommandDescription& command);

// "-o, --output FILE"; for a positional argument "RUN".
std::string OptionTitle(const OptionDescription& option);
// What it does, in one text: help, what it goes with, "[from 1 to 8; default: 4]".
std::string OptionText(const OptionDescription& option);

// `text` in lines of at most `width` columns, those after the first indented.
std::string Wrapped(const std::string& text, int width, int indent);

}  // namespace headrace::cli
