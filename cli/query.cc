// headrace query: read-only SQL over the run store.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/guarded_output.h"
#include "collectors/store/store.h"

namespace headrace::cli {
namespace {

using collectors::SqlResult;
using collectors::SqlValue;

struct QueryOptions {
  std::string sql, database, format;  // "": by where it goes
  bool json = false;
};

std::string Text(const SqlValue& value) {
  if (auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (auto* text = std::get_if<std::string>(&value)) return *text;
  return "";
}

void PrintTable(const SqlResult& result) {
  std::vector<size_t> widths;
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string> titles;
  for (const std::string& column : result.columns) {
    titles.push_back(Printable(column));
    widths.push_back(titles.back().size());
  }
  for (const auto& row : result.rows) {
    auto& line = cells.emplace_back();
    for (size_t c = 0; c < row.size(); c++) {
      const bool null = std::holds_alternative<std::monostate>(row[c]);
      line.push_back(null ? "NULL" : Printable(Text(row[c])));
      widths[c] = std::max(widths[c], line.back().size());
    }
  }
  const auto print = [&](const std::vector<std::string>& line, size_t row) {
    std::string out;
    for (size_t c = 0; c < line.size(); c++) {
      const bool number = row > 0 && !std::holds_alternative<std::string>(result.rows[row - 1][c]);
      out += number ? fmt::format("{:>{}}", line[c], widths[c])
                    : fmt::format("{:<{}}", line[c], widths[c]);
      if (c + 1 < line.size()) out += "  ";
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    fmt::print("{}\n", out);
  };
  print(titles, 0);
  for (size_t r = 0; r < cells.size(); r++) print(cells[r], r + 1);
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

// Fields are data: a file or a pipe gets them as they are. The first line names columns, and a name
// is text for people: what a terminal would obey is escaped in it wherever it goes.
void PrintCsv(const SqlResult& result) {
  std::FILE* const out = DataOutput();
  for (size_t c = 0; c < result.columns.size(); c++) {
    fmt::print(out, "{}{}", c ? "," : "", CsvField(Printable(result.columns[c], SIZE_MAX)));
  }
  fmt::print(out, "\n");
  for (const auto& row : result.rows) {
    for (size_t c = 0; c < row.size(); c++)
      fmt::print(out, "{}{}", c ? "," : "", CsvField(Text(row[c])));
    fmt::print(out, "\n");
  }
}

void PrintJson(const SqlResult& result) {
  // SQL allows two columns of one name, an object does not: the second "n" is "n_2".
  std::vector<std::string> names = result.columns;
  for (size_t c = 0; c < names.size(); c++) {
    for (int copy = 2; std::find(names.begin(), names.begin() + static_cast<ptrdiff_t>(c),
                                 names[c]) != names.begin() + static_cast<ptrdiff_t>(c);
         copy++) {
      names[c] = fmt::format("{}_{}", result.columns[c], copy);
    }
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& row : result.rows) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (size_t c = 0; c < row.size(); c++) {
      nlohmann::ordered_json value;  // null
      if (auto* integer = std::get_if<int64_t>(&row[c])) value = *integer;
      if (auto* real = std::get_if<double>(&row[c])) value = *real;
      if (auto* text = std::get_if<std::string>(&row[c])) value = *text;
      object[names[c]] = std::move(value);
    }
    rows.push_back(std::move(object));
  }
  const nlohmann::ordered_json out = {
      {"schema", "headrace.query/1"}, {"columns", names}, {"rows", std::move(rows)}};
  fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

int Query(const QueryOptions& options) {
  collectors::ReadStore store(options.database);
  const SqlResult result = store.QueryUntrusted(options.sql);
  // A program that reads the rows wants every field, with a rule where it ends.
  const std::string usual = isatty(STDOUT_FILENO) == 1 ? "table" : "csv";
  const std::string format = options.json             ? "json"
                             : options.format.empty() ? usual
                                                      : options.format;
  if (format == "json") {
    PrintJson(result);
  } else if (format == "csv") {
    PrintCsv(result);
  } else {
    PrintTable(result);
  }
  return 0;
}

HR_COMMAND(
    "query",
    {.summary = "runs one read-only SELECT over the run store",
     .examples =
         "  headrace query \"SELECT operator, busy_ns FROM operator_summary WHERE run_id = 3\"\n"
         "  headrace query \"SELECT * FROM step_interval\" > steps.csv  # CSV, as it is no "
         "terminal\n"
         "  headrace query \"SELECT name FROM sqlite_master WHERE type = 'view'\"  # what there "
         "is\n",
     .exit_codes = "0 ok, 1 took longer than 5 s, 2 wrong or writing SQL, 5 not a run store",
     .next = "docs/store.md lists views and columns",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<QueryOptions>();
       options->database = DefaultDatabase();
       command_line.AddOption("SQL", options->sql, "Run this SELECT")->TypeName("SQL")->Required();
       command_line.AddOption("--db", options->database, "Read this database");
       command_line.AddOption("--format", options->format, "Print the rows like this")
           ->Check(OneOf({"table", "csv", "json"}))
           ->Default("table on a terminal, else csv");
       command_line.AddFlag("--json", options->json,
                            "Print one JSON object (schema headrace.query/1)");
       return [options] { return Query(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
