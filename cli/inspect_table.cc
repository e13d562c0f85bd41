#include "cli/inspect_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "dashboards/terminal/terminal.h"
#include "dashboards/terminal/text_columns.h"
#include "reader/source/open.h"

namespace headrace::cli {
namespace {

namespace dwrf = reader::dwrf;

struct InspectedFile {
  std::string name;   // without the table's place
  std::string fault;  // why nothing else is known; empty: it is
  uint64_t bytes = 0, rows = 0;
  size_t stripes = 0;
  std::string compression, columns;
  bool encrypted = false;
  bool other_columns = false;  // than the first file that could be read
};

InspectedFile InspectOne(const std::string& path, const reader::SourceOptions& source,
                         const dwrf::OpenOptions& open) {
  InspectedFile file;
  file.name = path.substr(path.rfind('/') + 1);
  try {
    const auto reader = dwrf::FileReader::Open(reader::OpenSource(path, source), open);
    const dwrf::FileTail& tail = reader->tail();
    file.bytes = tail.file_size;
    file.rows = tail.number_of_rows;
    file.stripes = reader->num_stripes();
    file.compression = dwrf::CompressionKindName(tail.compression);
    file.columns = reader->schema().ToString();
    file.encrypted = std::find(tail.encrypted_nodes.begin(), tail.encrypted_nodes.end(), true) !=
                     tail.encrypted_nodes.end();
  } catch (const Error& error) {
    if (error.code() != ExitCode::kBadData) throw;
    file.fault = error.fact();
  }
  return file;
}

struct TableSums {
  uint64_t bytes = 0, rows = 0;
  size_t stripes = 0, damaged = 0, differ = 0;
  std::string columns;
};

TableSums SumsOf(std::vector<InspectedFile>* files) {
  TableSums sums;
  for (InspectedFile& file : *files) {
    if (!file.fault.empty()) {
      ++sums.damaged;
      continue;
    }
    if (sums.columns.empty()) sums.columns = file.columns;
    file.other_columns = file.columns != sums.columns;
    sums.differ += file.other_columns;
    sums.bytes += file.bytes;
    sums.rows += file.rows;
    sums.stripes += file.stripes;
  }
  return sums;
}

void PrintTableText(const std::string& place, const std::vector<InspectedFile>& files,
                    const TableSums& sums) {
  const auto width = static_cast<size_t>(dashboards::TerminalWidth(STDOUT_FILENO));
  fmt::print("{}: {} file{}, {} rows, {} stripes, {}\n", Printable(place), files.size(),
             files.size() == 1 ? "" : "s", sums.rows, sums.stripes,
             FormatBytes(static_cast<double>(sums.bytes)));
  if (!sums.columns.empty()) fmt::print("  columns  {}\n", Printable(sums.columns, 4000));
  constexpr size_t kOthers = 60, kLeastName = 20;
  size_t name_width = 4;
  for (const InspectedFile& file : files) {
    name_width = std::max(name_width, dashboards::TextColumns(Printable(file.name)));
  }
  name_width = std::min(name_width, std::max(kLeastName, width > kOthers ? width - kOthers : 0));
  fmt::print("\n  {}  {:>12} {:>8} {:>10} {:>11}  {}\n", dashboards::FitName("file", name_width),
             "rows", "stripes", "size", "rows/stripe", "compression");
  for (const InspectedFile& file : files) {
    const std::string name = dashboards::FitName(Printable(file.name), name_width);
    if (!file.fault.empty()) {
      fmt::print("  {}  damaged: {}\n", name, Printable(file.fault));
      continue;
    }
    const std::string per_stripe =
        file.stripes == 0 ? "-" : std::to_string(file.rows / file.stripes);
    fmt::print("  {}  {:>12} {:>8} {:>10} {:>11}  {}{}{}\n", name, file.rows, file.stripes,
               FormatBytes(static_cast<double>(file.bytes)), per_stripe, file.compression,
               file.encrypted ? ", encrypted columns" : "",
               file.other_columns ? ", OTHER COLUMNS than the first file" : "");
  }
  std::fflush(stdout);
  if (sums.damaged + sums.differ > 0) return;  // layout takes whole tables only
  fmt::print(stderr, "next: {} layout {}\n", ShellWord(ProgramName()), ShellWord(place));
}

void PrintTableJson(const std::string& place, const std::vector<InspectedFile>& files,
                    const TableSums& sums) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const InspectedFile& file : files) {
    if (!file.fault.empty()) {
      list.push_back({{"name", file.name}, {"error", file.fault}});
      continue;
    }
    list.push_back({{"name", file.name},
                    {"size_bytes", file.bytes},
                    {"rows_count", file.rows},
                    {"stripes_count", file.stripes},
                    {"compression", file.compression},
                    {"has_encrypted_columns", file.encrypted},
                    {"has_other_columns", file.other_columns}});
  }
  const Json out = {{"schema", "headrace.inspect_table/1"},
                    {"table", place},
                    {"columns", sums.columns.empty() ? Json() : Json(sums.columns)},
                    {"size_bytes", sums.bytes},
                    {"rows_count", sums.rows},
                    {"stripes_count", sums.stripes},
                    {"damaged_files_count", sums.damaged},
                    {"files", std::move(list)}};
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

int InspectTable(const std::string& place, const std::vector<std::string>& paths,
                 const reader::SourceOptions& source, const dwrf::OpenOptions& open, bool json) {
  std::vector<InspectedFile> files;
  for (const std::string& path : paths) files.push_back(InspectOne(path, source, open));
  const TableSums sums = SumsOf(&files);
  json ? PrintTableJson(place, files, sums) : PrintTableText(place, files, sums);
  return static_cast<int>(sums.damaged + sums.differ > 0 ? ExitCode::kBadData : ExitCode::kOk);
}

}  // namespace headrace::cli
