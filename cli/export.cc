// headrace export: a recorded run in the file format of another tool.
#include "dashboards/export/export.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/guarded_output.h"
#include "dashboards/export/otlp.h"

namespace headrace::cli {
namespace {

struct ExportOptions {
  std::string run = "latest", database = DefaultDatabase(), format, since, until, view;
  std::string kind = "cpu", output, endpoint;
  bool list = false, estimate = false, replace = false;
};

std::string ChosenFormat(const ExportOptions& options) {
  if (!options.format.empty()) return options.format;
  if (!options.endpoint.empty()) return "otlp";
  const std::string format = dashboards::FormatOfFile(options.output);
  if (!format.empty()) return format;
  if (options.output.empty()) {
    throw Error(ExitCode::kUsage, "no format given", "--format",
                "'headrace export --list' has the formats");
  }
  throw Error(ExitCode::kUsage, "no format has files that end so", options.output,
              "give --format; 'headrace export --list' has the formats");
}

void WriteToFile(const ExportOptions& options, const std::string& name,
                 const dashboards::ExportRequest& request) {
  AtomicFile file(options.output, options.replace);
  dashboards::WriteExport(name, request, [&](std::string_view bytes) { file.Write(bytes); });
  file.Commit();
  fmt::print(stderr, "wrote {}, {} bytes\n", Printable(options.output), file.size());
}

void WriteToOutput(const std::string& name, const dashboards::ExportRequest& request) {
  std::FILE* const out = DataOutput();
  dashboards::WriteExport(name, request, [&](std::string_view bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size()) {
      throw ErrnoError(errno, "write to", "standard output");
    }
  });
  if (std::fflush(out) != 0) throw ErrnoError(errno, "write to", "standard output");
}

void Send(const ExportOptions& options, const dashboards::ExportRequest& request) {
  const char* headers = std::getenv("OTEL_EXPORTER_OTLP_HEADERS");
  dashboards::SendOtlp(options.endpoint, headers == nullptr ? "" : headers,
                       dashboards::OtlpMetrics(request.store, request.run_id));
  fmt::print(stderr, "sent to {}\n", Printable(options.endpoint));
}

int Export(const ExportOptions& options) {
  if (options.list) {
    fmt::print("{}", dashboards::ListExports());
    return 0;
  }
  const std::string name = ChosenFormat(options);
  const dashboards::ExportFormat& format = dashboards::FindExport(name);
  collectors::ReadStore store(options.database);
  dashboards::ExportRequest request{store, store.FindRun(options.run)};
  if (!options.since.empty()) request.since_ns = ParseDuration(options.since, "--since");
  if (!options.until.empty()) request.until_ns = ParseDuration(options.until, "--until");
  request.view = options.view;
  request.kind = options.kind;
  request.database = options.database;
  dashboards::CheckExport(name, request);
  if (!options.endpoint.empty()) {
    dashboards::OtlpAddress(options.endpoint);  // a wrong one is said before any work
    if (name != "otlp") throw Error(ExitCode::kUsage, "--endpoint goes with format otlp");
  }
  const bool to_output = options.output.empty() && options.endpoint.empty() && !options.estimate;
  if (to_output && format.binary && isatty(STDOUT_FILENO) == 1) {
    throw Error(ExitCode::kUsage, fmt::format("format {} is binary, not for a terminal", name), "",
                "give -o FILE, or a pipe");
  }
  if (!options.output.empty() && !options.estimate)
    AtomicFile::Check(options.output, options.replace);
  const std::string size = dashboards::SizeText(name, dashboards::EstimateExport(name, request));
  fmt::print(options.estimate ? stdout : stderr, "{}\n", size);
  if (options.estimate) return 0;
  if (!options.endpoint.empty()) {
    Send(options, request);
    return 0;
  }
  options.output.empty() ? WriteToOutput(name, request) : WriteToFile(options, name, request);
  fmt::print(stderr, "opens with: {}\n", format.opens);
  return 0;
}

HR_COMMAND(
    "export",
    {.summary = "writes a recorded run in the file format of another tool",
     .examples =
         "  headrace export --list                                     # the formats\n"
         "  headrace export latest -o run.pftrace                      # for ui.perfetto.dev\n"
         "  headrace export latest --format chrome --since 500ms --until 1s > part.json\n"
         "  headrace export latest --format csv --view step_interval   # one view of the store\n"
         "  headrace export latest --format perfetto --estimate        # how large it will be\n",
     .exit_codes = "0 ok, 1 a collector did not take it, 2 no such format or view, or the file "
                   "exists, 5 not a run store or nothing to export",
     .next = "docs/export.md says what each format has",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<ExportOptions>();
       command_line.AddOption("RUN", options->run, "Export this run: an id, a name, or latest")
           ->ShowDefault();
       command_line.AddOption("--format", options->format, "Write this format; --list names them")
           ->Default("as the file's name ends");
       command_line.AddFlag("--list", options->list,
                            "List the formats, what each has, and which tool opens it");
       command_line.AddOption("-o,--output", options->output,
                              "Write to this file instead of standard output, whole or not at all");
       command_line.AddFlag("-f,--force", options->replace, "Replace the output file if it exists");
       command_line.AddOption(
           "--since", options->since,
           "Leave out windows that begin before this time of the run (2s, 1m30s)");
       command_line.AddOption("--until", options->until,
                              "Leave out windows that begin at or after this time");
       command_line
           .AddOption("--view", options->view, "csv, ndjson, arrow: write this view of the store")
           ->TypeName("NAME");
       command_line
           .AddOption("--kind", options->kind,
                      "folded: write stacks of this kind: cpu, off_cpu, waiting, python")
           ->TypeName("KIND")
           ->Default("cpu");
       command_line
           .AddOption("--endpoint", options->endpoint,
                      "otlp: send it to this collector (http://localhost:4318); headers from "
                      "$OTEL_EXPORTER_OTLP_HEADERS")
           ->TypeName("URL")
           ->Excludes({"--output"});
       command_line.AddFlag("--estimate", options->estimate,
                            "Print the size that the output will have, and write nothing");
       command_line.AddOption("--db", options->database, "Read this database");
       return [options] { return Export(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
