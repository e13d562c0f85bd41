#include "cli/page_output.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/terminal_text.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/verdict.h"
#include "dashboards/terminal/terminal.h"

namespace headrace::cli {
namespace {

constexpr int kFileWidth = 120;  // columns of text in a file

std::string Page(const PageOutput& output, const dashboards::Report& report,
                 const std::function<std::string()>& json, const std::string& after_text) {
  if (output.json || output.format == "json") return json();
  if (output.format == "md") return dashboards::RenderMarkdown(report);
  if (output.format == "html") return output.html ? output.html() : dashboards::RenderHtml(report);
  dashboards::TextOptions options = TextFor(STDOUT_FILENO);
  options.first_only = output.first_only;
  if (!output.file.empty()) {
    options.width = kFileWidth;
    options.color = false;
  }
  return dashboards::RenderText(report, options) + after_text;
}

}  // namespace

void AddFormatOptions(CommandLine* command_line, PageOutput* output, const std::string& json_help) {
  command_line->AddOption("--format", output->format, "Write the page like this")
      ->Check(OneOf({"text", "md", "html", "json"}))
      ->ShowDefault();
  command_line->AddFlag("--json", output->json, json_help);
}

void WritePage(const PageOutput& output, const dashboards::Report& report,
               const std::function<std::string()>& json, const std::string& after_text) {
  const std::string page = Page(output, report, json, after_text);
  if (output.file.empty()) {
    if (!output.pager || !ShowInPager(page)) std::fputs(page.c_str(), stdout);
    return;
  }
  AtomicFile file(output.file, output.replace);
  file.Write(page);
  file.Commit();
  fmt::print(stderr, "wrote {}\n", Printable(output.file));
}

bool ShowInPager(const std::string& text) {
  const auto rows = dashboards::TerminalRows(STDOUT_FILENO);
  if (!rows || std::count(text.begin(), text.end(), '\n') < *rows) return false;
  const char* wanted = std::getenv("PAGER");
  if (wanted != nullptr && (*wanted == '\0' || std::strcmp(wanted, "cat") == 0)) return false;
  // Colours as they are; the page stays on the screen when it is left.
  setenv("LESS", "FRX", 0);
  constexpr const char* kLess = "command -v less > /dev/null || exit 127; exec less";
  FILE* pager = popen(wanted != nullptr ? wanted : kLess, "w");
  if (pager == nullptr) return false;
  const bool written = std::fputs(text.c_str(), pager) >= 0 && std::fflush(pager) == 0;
  constexpr int kNotFound = 127;
  const int status = pclose(pager);
  const bool missing = WIFEXITED(status) && WEXITSTATUS(status) == kNotFound;
  return !missing && (written || WIFEXITED(status));  // whoever leaves it early has seen enough
}

}  // namespace headrace::cli
