#include "dashboards/export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "dashboards/sql_values.h"
#include "dashboards/stack_kinds.h"

namespace headrace::dashboards {
namespace {

using collectors::ReadStore;
using collectors::SqlResult;

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const auto& [name, format] : Registry<ExportFormat>::Global().entries()) {
    names.push_back(name);
  }
  return names;
}

Error Refused(const std::string& name, const std::string& what, const std::string& fix) {
  return Error(ExitCode::kUsage, what, "format " + name, fix);
}

// Words of `text` in lines of at most `width` columns, further ones after `indent` blanks.
std::string Wrapped(const std::string& text, size_t width, size_t indent) {
  std::string out;
  size_t column = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find(' ', begin);
    if (end == std::string::npos) end = text.size();
    const size_t length = end - begin;
    if (column > 0 && column + 1 + length > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out.append(text, begin, length);
    column += length;
    begin = end + 1;
  }
  return out;
}

}  // namespace

const ExportFormat& FindExport(const std::string& name) {
  const ExportFormat* format = Registry<ExportFormat>::Global().Find(name);
  if (format != nullptr) return *format;
  const std::string nearest = NearestName(name, FormatNames());
  throw Error(ExitCode::kUsage, fmt::format("unknown format '{}'", Printable(name, 60)), "",
              nearest.empty() ? "'headrace export --list' has the formats"
                              : fmt::format("did you mean '{}'?", nearest));
}

std::string FormatOfFile(std::string_view file) {
  std::string found;
  for (const auto& [name, format] : Registry<ExportFormat>::Global().entries()) {
    if (!file.ends_with(format.ending)) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

void CheckExport(const std::string& name, const ExportRequest& request) {
  const ExportFormat& format = FindExport(name);
  if (!request.whole_run() && !format.by_time) {
    throw Refused(name, "has totals of the whole run, so no part of it can be chosen",
                  "leave --since and --until out");
  }
  if (request.view.empty() == format.by_view) {
    throw format.by_view
        ? Refused(name, "holds one view of the store", "name it with --view NAME")
        : Refused(name, "holds no single view of the store", "--view goes with csv and ndjson");
  }
  FindStackKind(request.kind);
  if (request.kind != "cpu" && !format.by_kind) {
    throw Refused(name, "does not hold a single kind of stacks", "leave --kind out");
  }
  if (request.since_ns >= request.until_ns) {
    throw Error(ExitCode::kUsage, "--until is not after --since");
  }
  const int64_t duration_ns = ReadExportedRun(request.store, request.run_id).duration_ns;
  if (request.since_ns > duration_ns) {
    throw Error(ExitCode::kUsage,
                fmt::format("--since {} is after the run's end",
                            FormatDuration(static_cast<double>(request.since_ns))),
                "", "the run is " + FormatDuration(static_cast<double>(duration_ns)) + " long");
  }
}

void WriteExport(const std::string& name, const ExportRequest& request, const ExportSink& sink) {
  constexpr size_t kPieceBytes = 64 << 10;
  std::string piece;
  FindExport(name).write(request, [&](std::string_view bytes) {
    piece += bytes;
    if (piece.size() < kPieceBytes) return;
    sink(piece);
    piece.clear();
  });
  if (!piece.empty()) sink(piece);
}

std::string ListExports() {
  std::string text;
  for (const auto& [name, format] : Registry<ExportFormat>::Global().entries()) {
    constexpr size_t kIndent = 18, kWidth = 100 - kIndent;
    text += fmt::format("{:<17} {}\n", name, Wrapped(format.holds, kWidth, kIndent));
    text += fmt::format("{:<17} {}\n", format.ending,
                        Wrapped("opens with: " + format.opens, kWidth, kIndent));
  }
  return text;
}

ExportedRun ReadExportedRun(ReadStore& store, int64_t run_id) {
  const SqlResult result = store.Query(
      "SELECT name, tags, state, program, command, hostname, kernel, cpu_model, headrace_version, "
      "pid, started_realtime_ns, duration_ns, accounting_level, accounting_note "
      "FROM run_summary WHERE run_id = ?1",
      {run_id});
  if (result.rows.empty()) throw Error(ExitCode::kBadData, fmt::format("no run {}", run_id));
  const auto& row = result.rows[0];
  ExportedRun run;
  run.run_id = run_id;
  run.name = TextOf(row[0]);
  run.tags = TextOf(row[1]);
  run.state = TextOf(row[2]);
  run.program = TextOf(row[3]);
  run.command = TextOf(row[4]);
  run.hostname = TextOf(row[5]);
  run.kernel = TextOf(row[6]);
  run.cpu_model = TextOf(row[7]);
  run.headrace_version = TextOf(row[8]);
  run.pid = WholeOf(row[9]).value_or(0);
  run.started_realtime_ns = std::max<int64_t>(0, WholeOf(row[10]).value_or(0));
  run.duration_ns = std::max<int64_t>(0, WholeOf(row[11]).value_or(0));
  run.accounting_level = WholeOf(row[12]).value_or(0);
  run.accounting_note = TextOf(row[13]);
  return run;
}

}  // namespace headrace::dashboards
