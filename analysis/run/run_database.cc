#include "analysis/run/run_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>

#include "base/error.h"
#include "collectors/store/open_to_read.h"

namespace headrace::analysis {

int ViewRow::Find(std::string_view name) const {
  const std::vector<std::string>& names = columns_->names;
  for (size_t tried = 0; tried < names.size(); ++tried) {
    const size_t i = (columns_->next + tried) % names.size();
    if (names[i] != name) continue;
    columns_->next = i + 1;
    return static_cast<int>(i);
  }
  return -1;
}

int ViewRow::FindValue(std::string_view name) const {
  const int column = Find(name);
  return column >= 0 && sqlite3_column_type(statement_, column) != SQLITE_NULL ? column : -1;
}

Count ViewRow::Integer(std::string_view name) const {
  const int column = FindValue(name);
  if (column < 0) return std::nullopt;
  return sqlite3_column_int64(statement_, column);
}

Count ViewRow::IntegerAt(int column) const {
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
  return sqlite3_column_int64(statement_, column);
}

int64_t ViewRow::NumberAt(int column) const { return sqlite3_column_int64(statement_, column); }

analysis::Real ViewRow::Real(std::string_view name) const {
  const int column = FindValue(name);
  if (column < 0) return std::nullopt;
  return sqlite3_column_double(statement_, column);
}

std::string_view ViewRow::View(std::string_view name) const {
  const int column = FindValue(name);
  const unsigned char* text = column < 0 ? nullptr : sqlite3_column_text(statement_, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

RunDatabase::RunDatabase(const std::string& path)
    : database_(collectors::OpenToRead(path, collectors::Foreign::kAsItIs)) {}

void RunDatabase::Each(const std::string& sql, int64_t run_id, const Use& use) {
  sqlite3_stmt* prepared = nullptr;
  if (database_.Prepare(sql, &prepared) != SQLITE_OK) Fail();
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
  if (sqlite3_bind_parameter_count(prepared) > 0) sqlite3_bind_int64(prepared, 1, run_id);
  ViewRow::Columns columns;
  for (int i = 0; i < sqlite3_column_count(prepared); ++i) {
    columns.names.emplace_back(sqlite3_column_name(prepared, i));
  }
  int code;
  int64_t spent_ns = 0;
  while ((code = database_.Step(prepared, &spent_ns)) == SQLITE_ROW) {
    use(ViewRow(prepared, &columns));
  }
  if (code != SQLITE_DONE) Fail();
}

bool RunDatabase::Has(const std::string& view) {
  bool found = false;
  Each(fmt::format("SELECT 1 FROM sqlite_master WHERE name = '{0}' UNION ALL "
                   "SELECT 1 FROM sqlite_temp_master WHERE name = '{0}'",
                   view),
       0, [&](const ViewRow&) { found = true; });
  return found;
}

void RunDatabase::EachOf(const std::string& view, int64_t run_id, const std::string& order,
                         const Use& use) {
  Each(fmt::format("SELECT * FROM {} WHERE run_id = ?1{}", view,
                   order.empty() ? "" : " ORDER BY " + order),
       run_id, use);
}

void RunDatabase::Fail() {
  if (database_.stopped()) database_.Fail("");
  const std::string message = sqlite3_errmsg(database_.handle());
  if (message.find("no such table") != std::string::npos ||
      message.find("not a database") != std::string::npos) {
    throw Error(ExitCode::kBadData, "is not a headrace database (" + message + ")",
                database_.path(),
                "give the file that 'headrace run' or 'headrace profile' wrote with --db");
  }
  throw Error(ExitCode::kBadData, message, database_.path(), "the file may be damaged or in use");
}

}  // namespace headrace::analysis
