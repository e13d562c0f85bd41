// CSV (RFC 4180, lines end in \n): the first line has the columns' names. NULL is an empty field,
// an empty text is "". Fields keep the store's bytes.
#include <fmt/format.h>

#include "dashboards/export/escape.h"
#include "dashboards/export/rows.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

std::string CsvValue(const collectors::SqlValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return "";
  return CsvField(TextOf(value));
}

void WriteCsv(const ExportRequest& request, const ExportSink& sink) {
  std::string line;
  for (const std::string& column : ColumnsOfView(request)) {
    line += (line.empty() ? "" : ",") + CsvField(column);
  }
  if (request.part != ExportPart::kCourses) sink(line + "\n");
  ForEachRow(request, [&](const std::vector<collectors::SqlValue>& row) {
    line.clear();
    for (size_t c = 0; c < row.size(); ++c) line += (c == 0 ? "" : ",") + CsvValue(row[c]);
    sink(line + "\n");
  });
}

HR_EXPORT("csv",
          {.ending = ".csv",
           .holds = "the rows of one view of docs/store.md, named by --view; a column's unit "
                    "is in its name",
           .opens = "spreadsheets, pandas, DuckDB, R",
           .by_time = true,
           .by_view = true,
           .write = WriteCsv,
           .count_rows = CountViewRows});

}  // namespace
}  // namespace headrace::dashboards
