#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "collectors/store/columns.h"
#include "collectors/store/embedded_sql.h"
#include "collectors/store/store.h"

namespace headrace::collectors {
namespace {

// An empty store of this version.
class StoreColumns : public testing::Test {
 protected:
  void SetUp() override {
    for (const SqlFile& file : SchemaFiles()) database_.Execute(std::string(file.text));
    for (const SqlFile& file : ViewFiles()) database_.Execute(std::string(file.text));
  }

  std::vector<std::string> ColumnsOf(const std::string& table) {
    std::vector<std::string> names;
    Statement columns(database_, "SELECT name FROM pragma_table_info(?1) ORDER BY cid");
    columns.Bind(std::string_view(table));
    while (columns.Step()) names.push_back(columns.text(0));
    return names;
  }

  Database database_{Database::InMemory{}};
};

TEST_F(StoreColumns, EveryColumnOfAnEntityHasItsLine) {
  EachTable([&](const auto& table) {
    SCOPED_TRACE(table.totals);
    std::vector<std::string> totals = {"run_id", table.key};
    std::vector<std::string> intervals = {"run_id", "start_ns", table.key};
    for (const auto& column : table.columns) {
      totals.emplace_back(column.name);
      if (column.merge == Merge::kSum) intervals.emplace_back(column.name);
      EXPECT_STRNE(column.help, "");
    }
    EXPECT_THAT(ColumnsOf(table.totals), testing::UnorderedElementsAreArray(totals));
    EXPECT_THAT(ColumnsOf(table.intervals), testing::UnorderedElementsAreArray(intervals));
  });
}

TEST_F(StoreColumns, EveryColumnOfARowHasItsLine) {
  for (const RowTable* table : kRowTables) {
    SCOPED_TRACE(table->name);
    std::vector<std::string> columns = {"run_id"};
    for (const RowColumn& column : table->columns) {
      columns.emplace_back(column.name);
      EXPECT_STRNE(column.help, "");
    }
    EXPECT_THAT(ColumnsOf(table->name), testing::UnorderedElementsAreArray(columns));
  }
}

TEST_F(StoreColumns, WhatIsUnknownAddsNothingAndStaysUnknown) {
  OperatorSample sum, next;
  sum.completions = 2;
  sum.on_cpu_ns = 5;
  sum.time_source = "thread_clock";
  next.name = "another";
  next.completions = 3;
  next.residual_ns = 4;
  AddUp(kOperators, next, &sum);
  EXPECT_EQ(sum.completions, 5);
  EXPECT_EQ(sum.on_cpu_ns, 5);
  EXPECT_EQ(sum.runnable_ns, std::nullopt);
  EXPECT_EQ(sum.residual_ns, 4);
  EXPECT_EQ(sum.time_source, "thread_clock");
  EXPECT_EQ(sum.name, "");
  next.time_source = "ebpf";
  AddUp(kOperators, next, &sum);
  EXPECT_EQ(sum.time_source, "ebpf");
}

TEST_F(StoreColumns, AnEntityIsIdleWhereEverySumIsNothing) {
  OperatorSample op;
  op.name = "decode";
  op.position = 3;
  op.residual_ns = 7;  // has no course
  op.runnable_ns = 0;
  EXPECT_TRUE(IsIdle(kOperators, op));
  op.lock_wait_ns = 1;
  EXPECT_FALSE(IsIdle(kOperators, op));
}

// The views' columns are an interface: what the page says of them is what they have. The page is
// written by HEADRACE_UPDATE_GOLDEN=1; its difference is then what changed for users.
class StorePage : public StoreColumns {
 protected:
  static constexpr const char* kPage = HEADRACE_SOURCE_DIR "/docs/store.md";

  static std::string Join(const std::vector<std::string>& names) {
    return fmt::format("{}", fmt::join(names, ", "));
  }

  // The page as it ought to be. `*views` are those that have a row.
  std::string Rewritten(std::istream& page, std::set<std::string>* views) {
    std::string text;
    for (std::string line; std::getline(page, line);) {
      const size_t name_end = line.find("` | ", 3), columns = line.rfind(" | `");
      const std::string name = line.starts_with("| `") && name_end != std::string::npos
                                   ? line.substr(3, name_end - 3)
                                   : "";
      if (!name.empty() && columns > name_end && !ColumnsOf(name).empty()) {
        views->insert(name);
        line = fmt::format("{} | `{}` |", line.substr(0, columns), Join(ColumnsOf(name)));
      }
      text += line + "\n";
    }
    return text;
  }
};

TEST_F(StorePage, SaysWhatTheViewsHave) {
  std::ifstream file(kPage);
  std::stringstream page;
  page << file.rdbuf();
  std::set<std::string> views;
  const std::string expected = Rewritten(page, &views);
  for (const SqlFile& view : ViewFiles()) {
    EXPECT_TRUE(views.contains(std::string(view.name))) << view.name << " is not in docs/store.md";
  }
  if (std::getenv("HEADRACE_UPDATE_GOLDEN") != nullptr) std::ofstream(kPage) << expected;
  EXPECT_EQ(page.str(), expected)
      << "docs/store.md; HEADRACE_UPDATE_GOLDEN=1 rewrites it, review the difference";
}

}  // namespace
}  // namespace headrace::collectors
