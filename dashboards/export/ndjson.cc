// A JSON object a line, with the columns of a view as names. NULL is null. What is not UTF-8
// becomes U+FFFD, which JSON needs.
#include <fmt/format.h>

#include "dashboards/export/escape.h"
#include "dashboards/export/rows.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

void WriteNdjson(const ExportRequest& request, const ExportSink& sink) {
  std::vector<std::string> names;
  for (const std::string& column : ColumnsOfView(request)) names.push_back(JsonString(column));
  std::string line;
  ForEachRow(request, [&](const std::vector<collectors::SqlValue>& row) {
    line = "{";
    for (size_t c = 0; c < row.size(); ++c) {
      line += fmt::format("{}{}:{}", c == 0 ? "" : ",", names[c], JsonValue(row[c]));
    }
    sink(line + "}\n");
  });
}

HR_EXPORT("ndjson", {.ending = ".ndjson",
                     .holds = "the rows of one view of docs/store.md, named by --view; an object a "
                              "line",
                     .opens = "jq, DuckDB, pandas.read_json(lines=True), ClickHouse",
                     .by_time = true,
                     .by_view = true,
                     .write = WriteNdjson,
                     .count_rows = CountViewRows});

}  // namespace
}  // namespace headrace::dashboards
