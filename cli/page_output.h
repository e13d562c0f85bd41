// Where a command's page goes, and in which format.
#pragma once
#include <functional>
#include <string>

#include "dashboards/render/render.h"

namespace CLI {
class App;
}

namespace headrace::cli {

struct PageOutput {
  std::string format = "text";  // or md, html, json
  bool json = false;            // --json: the same as the format json
  std::string file;             // "": standard output
  bool replace = false;         // the file, if it exists
};

// Adds --format and --json, with this help.
void AddFormatOptions(CLI::App* app, PageOutput* output, const std::string& json_help);

// Prints the page, or writes it to the file, whole or not at all, and says so on standard error.
// `json` makes the page as JSON; `after_text` follows it as text. Throws Error as AtomicFile does.
void WritePage(const PageOutput& output, const dashboards::Report& report,
               const std::function<std::string()>& json, const std::string& after_text = "");

}  // namespace headrace::cli
