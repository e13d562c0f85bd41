// Views as CSV and NDJSON, read again.
#include "dashboards/export/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "dashboards/export/escape.h"
#include "dashboards/export/intervals.h"
#include "dashboards/sql_values.h"
#include "tests/dashboards/export/exported_store.h"

namespace headrace::dashboards {
namespace {

using collectors::SqlResult;
using collectors::SqlValue;
using testing::HasSubstr;

struct CsvCell {
  std::string text;
  bool quoted = false;
  bool operator==(const CsvCell&) const = default;
};

// RFC 4180, lines ending in \n.
std::vector<std::vector<CsvCell>> ReadCsv(const std::string& text) {
  std::vector<std::vector<CsvCell>> rows;
  std::vector<CsvCell> row;
  CsvCell cell;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c != '"') {
        cell.text += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell.text += '"';
        ++i;
      } else {
        inside = false;
      }
    } else if (c == '"') {
      EXPECT_TRUE(cell.text.empty() && !cell.quoted);
      inside = cell.quoted = true;
    } else if (c == ',' || c == '\n') {
      row.push_back(cell);
      cell = {};
      if (c == ',') continue;
      rows.push_back(row);
      row.clear();
    } else {
      EXPECT_FALSE(cell.quoted) << "text behind a closing quote";
      cell.text += c;
    }
  }
  EXPECT_FALSE(inside);
  EXPECT_TRUE(row.empty()) << "the last line has no end";
  return rows;
}

class Rows : public ExportedStore {
 protected:
  std::string Refusal(const ExportRequest& request, const std::string& format = "csv") {
    try {
      CheckExport(format, request);
      Written(format, request);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.what();
    }
    return "nothing refused";
  }
};

TEST_F(Rows, EveryViewIsWrittenAsItIs) {
  RecordedNames names;
  names.op = names.subject = names.run = kHostileName;
  Record(names);
  collectors::ReadStore store(path_);
  ASSERT_GT(ExportedViews().size(), 30u);
  size_t with_rows = 0;
  for (const std::string& view : ExportedViews()) {
    SCOPED_TRACE(view);
    ExportRequest request{store, 1};
    request.view = view;
    std::vector<std::vector<SqlValue>> stored;
    ForEachRow(request, [&](const std::vector<SqlValue>& row) { stored.push_back(row); });
    const SqlResult all = store.Query("SELECT COUNT(*) FROM " + view);  // of the one run
    EXPECT_EQ(static_cast<int64_t>(stored.size()), std::get<int64_t>(all.rows[0][0]));
    with_rows += stored.empty() ? 0 : 1;

    const auto csv = ReadCsv(Written("csv", request));
    ASSERT_EQ(csv.size(), stored.size() + 1);
    const std::vector<std::string> columns = ColumnsOfView(request);
    for (size_t r = 0; r < csv.size(); ++r) {
      ASSERT_EQ(csv[r].size(), columns.size());
      for (size_t c = 0; c < columns.size(); ++c) {
        if (r == 0) {
          EXPECT_EQ(csv[0][c].text, columns[c]);
          continue;
        }
        const SqlValue& value = stored[r - 1][c];
        EXPECT_EQ(csv[r][c].text, TextOf(value));
        const bool null = std::holds_alternative<std::monostate>(value);
        EXPECT_EQ(null, csv[r][c].text.empty() && !csv[r][c].quoted)
            << "NULL and an empty text differ";
      }
    }

    std::istringstream lines(Written("ndjson", request));
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      ASSERT_LT(count, stored.size());
      const auto json = nlohmann::json::parse(line);
      for (size_t c = 0; c < columns.size(); ++c) {
        const SqlValue& value = stored[count][c];
        if (std::holds_alternative<std::monostate>(value)) {
          EXPECT_TRUE(json[columns[c]].is_null());
        } else if (const auto* text = std::get_if<std::string>(&value)) {
          EXPECT_EQ(json[columns[c]], Utf8(*text));
        } else {
          EXPECT_EQ(json[columns[c]].get<double>(), *NumberOf(value));
        }
      }
    }
    EXPECT_EQ(count, stored.size());
  }
  EXPECT_GT(with_rows, 15u) << "the fixture fills too few views to mean anything";
}

TEST_F(Rows, OnlyTheRunsRows) {
  Record();
  const int64_t second = Record({}, 4);
  collectors::ReadStore store(path_);
  ExportRequest request{store, second};
  request.view = "step_interval";
  EXPECT_EQ(ReadCsv(Written("csv", request)).size(), 5u);
  request.since_ns = kWindow;
  request.until_ns = 3 * kWindow;
  const auto part = ReadCsv(Written("csv", request));
  ASSERT_EQ(part.size(), 3u);
  EXPECT_EQ(part[1][1].text, std::to_string(kWindow));
}

TEST_F(Rows, WhatCannotBeIsRefused) {
  Record();
  collectors::ReadStore store(path_);
  ExportRequest request{store, 1};
  EXPECT_THAT(Refusal(request), HasSubstr("--view NAME"));
  request.view = "operator_summry";
  EXPECT_THAT(Refusal(request), HasSubstr("did you mean 'operator_summary'"));
  request.view = "runs; DROP TABLE runs";
  EXPECT_THAT(Refusal(request), HasSubstr("no view"));
  request.view = "runs";
  EXPECT_THAT(Refusal(request), HasSubstr("no view 'runs'")) << "tables are not the interface";
  request.view = "operator_summary";
  request.since_ns = 0;
  EXPECT_THAT(Refusal(request), HasSubstr("about the whole run"));
  EXPECT_THAT(Refusal(request, "perfetto"), HasSubstr("no single view"));
  request.view = "";
  EXPECT_THAT(Refusal(request, "pprof"), HasSubstr("totals of the whole run"));
  request.until_ns = 0;
  EXPECT_THAT(Refusal(request, "perfetto"), HasSubstr("--until is not after --since"));
  request.since_ns = 3'600'000'000'000;
  request.until_ns = INT64_MAX;
  EXPECT_THAT(Refusal(request, "perfetto"), HasSubstr("after the run's end"));
  request.since_ns = INT64_MIN;
  request.kind = "heap";
  EXPECT_THAT(Refusal(request, "folded"), HasSubstr("cpu, off_cpu, waiting, python"));
  request.kind = "waiting";
  EXPECT_THAT(Refusal(request, "pprof"), HasSubstr("leave --kind out"));
  EXPECT_THAT(Refusal(request, "perfeto"), HasSubstr("did you mean 'perfetto'"));
}

// Portions hold all rows once, in order, wherever they are cut.
TEST_F(Rows, PortionsAreTheWhole) {
  Record({}, 12'000);  // 36,000 rows of operators
  collectors::ReadStore store(path_);
  const IntervalQuery query{"operator_interval", "start_ns, operator"};
  const auto rows_from = [&](int64_t since, int64_t until) {
    size_t portions = 0, rows = 0;
    int64_t last = INT64_MIN;
    ForEachPortion(store, query, 1, since, until, [&](const SqlResult& result) {
      ++portions;
      rows += result.rows.size();
      for (const auto& row : result.rows) {
        EXPECT_LE(last, std::get<int64_t>(row[0]));
        last = std::get<int64_t>(row[0]);
      }
      // One begin is never cut.
      if (!result.rows.empty()) last = std::get<int64_t>(result.rows.back()[0]) + 1;
    });
    EXPECT_EQ(static_cast<int64_t>(rows), CountIntervals(store, query, 1, since, until));
    return std::pair(portions, rows);
  };
  const auto [portions, rows] = rows_from(INT64_MIN, INT64_MAX);
  EXPECT_GE(portions, 2u);
  EXPECT_EQ(rows, 3u * 12'000 - 2);
  EXPECT_EQ(rows_from(0, 10 * kWindow).second, 28u);
  EXPECT_EQ(rows_from(5, 5).second, 0u);
  EXPECT_TRUE(HasMoreIntervals(store, query, 1, 3 * 12'000 - 3));
  EXPECT_FALSE(HasMoreIntervals(store, query, 1, 3 * 12'000 - 2));
}

}  // namespace
}  // namespace headrace::dashboards
