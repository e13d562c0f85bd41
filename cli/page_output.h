// Where a command's page goes, and in which format.
#pragma once
#include <functional>
#include <string>

#include "dashboards/render/render.h"

namespace headrace::cli {

class CommandLine;

struct PageOutput {
  std::string format = "text";  // or md, html, json
  bool json = false;            // --json: same as format = "json"
  std::string file;             // "": standard output
  bool replace = false;         // the file, if it exists
  bool first_only = false;      // text: the first page alone
  bool pager = false;           // text longer than the screen goes through $PAGER, or less
  // Makes the page as HTML; without it it is the report's tables.
  std::function<std::string()> html;
};

// Adds --format and --json; `json_help` is the help of --json.
void AddFormatOptions(CommandLine* command_line, PageOutput* output, const std::string& json_help);

// Prints the page, or writes it to the file (completely or not at all) and says so on standard
// error. `json` makes the page as JSON; `after_text` is printed after the page in text format.
// Throws Error as AtomicFile does.
void WritePage(const PageOutput& output, const dashboards::Report& report,
               const std::function<std::string()>& json, const std::string& after_text = "");

// Shows `text` in $PAGER, or less, if it is longer than the terminal on standard output; returns
// whether it did. False without a terminal, and where there is no such program.
bool ShowInPager(const std::string& text);

}  // namespace headrace::cli
