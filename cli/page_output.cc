#include "cli/page_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/file.h"
#include "base/terminal_text.h"
#include "cli/verdict.h"

namespace headrace::cli {
namespace {

constexpr int kFileWidth = 120;  // columns of text in a file

std::string Page(const PageOutput& output, const dashboards::Report& report,
                 const std::function<std::string()>& json, const std::string& after_text) {
  if (output.json || output.format == "json") return json();
  if (output.format == "md") return dashboards::RenderMarkdown(report);
  if (output.format == "html") return dashboards::RenderHtml(report);
  const int width = output.file.empty() ? TerminalWidth(STDOUT_FILENO) : kFileWidth;
  return dashboards::RenderText(report, {width, AsciiOnly()}) + after_text;
}

}  // namespace

void AddFormatOptions(CLI::App* app, PageOutput* output, const std::string& json_help) {
  app->add_option("--format", output->format, "Write text, md, html or json")
      ->check(CLI::IsMember({"text", "md", "html", "json"}))
      ->capture_default_str();
  app->add_flag("--json", output->json, json_help);
}

void WritePage(const PageOutput& output, const dashboards::Report& report,
               const std::function<std::string()>& json, const std::string& after_text) {
  const std::string page = Page(output, report, json, after_text);
  if (output.file.empty()) {
    std::fputs(page.c_str(), stdout);
    return;
  }
  AtomicFile file(output.file, output.replace);
  file.Write(page);
  file.Commit();
  fmt::print(stderr, "wrote {}\n", Printable(output.file));
}

}  // namespace headrace::cli
