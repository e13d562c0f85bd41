#include "collectors/store/as_current.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "collectors/store/embedded_sql.h"
#include "collectors/store/store_file.h"

namespace headrace::collectors {
namespace {

constexpr const char* kColumnsSql =
    "SELECT m.name, c.name, COALESCE(c.dflt_value, 'NULL') FROM sqlite_master AS m, "
    "pragma_table_info(m.name) AS c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' "
    "ORDER BY m.name, c.cid";

struct CurrentColumn {
  std::string name, default_sql;
};
using Tables = std::map<std::string, std::vector<CurrentColumn>>;

// What all migrations together make.
const Tables& CurrentTables() {
  static const Tables current = [] {
    Database empty(Database::InMemory{});
    for (const SqlFile& file : SchemaFiles()) empty.Execute(std::string(file.text));
    Tables tables;
    Statement columns(empty, kColumnsSql);
    while (columns.Step()) tables[columns.text(0)].push_back({columns.text(1), columns.text(2)});
    return tables;
  }();
  return current;
}

Error NotOurs(Database& database, const std::string& what) {
  return Error(ExitCode::kBadData, what + ": no headrace wrote this file", database.path(),
               "name another file with --db");
}

std::set<std::pair<std::string, std::string>> PresentColumns(Database& database) {
  std::set<std::pair<std::string, std::string>> present;
  Statement columns(database, kColumnsSql);
  while (columns.Step()) present.emplace(columns.text(0), columns.text(1));
  return present;
}

// Puts a view of all of `columns` before a table. Rows of `interrupted` (by the first column) have
// that state.
void Shadow(Database& database, const std::string& table, const std::vector<CurrentColumn>& columns,
            const std::set<std::pair<std::string, std::string>>& present,
            const std::vector<int64_t>& interrupted = {}) {
  std::string list;
  bool any = false;
  for (const CurrentColumn& column : columns) {
    const bool has = present.contains({table, column.name});
    any |= has;
    std::string value = has ? column.name : column.default_sql;
    if (column.name == "state" && !interrupted.empty()) {
      value = fmt::format("CASE WHEN {} IN ({}) THEN 'interrupted' ELSE {} END", columns[0].name,
                          fmt::join(interrupted, ", "), value);
    }
    list += fmt::format("{}{} AS {}", list.empty() ? "" : ", ", value, column.name);
  }
  database.Execute(
      fmt::format("DROP VIEW IF EXISTS temp.{0}; CREATE TEMP VIEW {0} AS SELECT {1}{2}", table,
                  list, any ? " FROM main." + table : " WHERE 0"));
}

}  // namespace

void CheckTables(Database& database) {
  // What SQLite makes of an entry, the statement in it decides; its type is only said.
  Statement entries(
      database,
      "SELECT name FROM sqlite_master WHERE sql NOT NULL AND NOT CASE type "
      "WHEN 'table' THEN sql GLOB 'CREATE TABLE *' "
      "WHEN 'view' THEN sql GLOB 'CREATE VIEW *' "
      "WHEN 'trigger' THEN sql GLOB 'CREATE TRIGGER *' "
      "WHEN 'index' THEN sql GLOB 'CREATE INDEX *' OR sql GLOB 'CREATE UNIQUE INDEX *' "
      "ELSE 0 END");
  if (entries.Step()) {
    throw NotOurs(database, fmt::format("'{}' is a virtual table, or not what its entry in the "
                                        "schema says",
                                        Printable(entries.text(0), 80)));
  }
  Statement columns(database, "SELECT COUNT(*), TOTAL(hidden) FROM pragma_table_xinfo(?1, 'main')");
  for (const auto& [table, unused] : CurrentTables()) {
    const bool is_table =
        sqlite3_table_column_metadata(database.handle(), "main", table.c_str(), nullptr, nullptr,
                                      nullptr, nullptr, nullptr, nullptr) == SQLITE_OK;
    columns.Bind(std::string_view(table)).Step();
    const bool absent = columns.integer(0) == 0, computes = columns.real(1) != 0;
    columns.Reset();
    if (!is_table && !absent) throw NotOurs(database, fmt::format("'{}' is not a table", table));
    if (computes) throw NotOurs(database, fmt::format("'{}' has computed columns", table));
  }
}

void ShowAsCurrent(Database& database, int64_t version) {
  const bool older = version < static_cast<int64_t>(SchemaFiles().size());
  const Tables& tables = CurrentTables();
  std::set<std::pair<std::string, std::string>> present;
  const auto look = [&] {
    if (present.empty()) present = PresentColumns(database);
  };
  if (older) {
    look();
    for (const auto& [table, columns] : tables) {
      bool whole = true;
      for (const CurrentColumn& column : columns) whole &= present.contains({table, column.name});
      if (!whole) Shadow(database, table, columns, present);
    }
  }
  bool abandoned = false;
  for (const auto& [table, ids] : {std::pair("runs", FindAbandonedRuns(database)),
                                   std::pair("comparisons", FindAbandonedComparisons(database))}) {
    if (ids.empty()) continue;
    abandoned = true;
    look();
    Shadow(database, table, tables.at(table), present, ids);
  }
  if (!older && !abandoned && ViewsAreCurrent(database)) return;
  for (const SqlFile& file : ViewFiles()) {
    const std::string create(CreateStatement(file.text));
    database.Execute("CREATE TEMP VIEW" + create.substr(create.find(" VIEW") + 5));
  }
}

}  // namespace headrace::collectors
