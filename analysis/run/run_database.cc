#include "analysis/run/run_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>

#include "base/error.h"
#include "collectors/store/open_to_read.h"

namespace headrace::analysis {

int ViewRow::Find(const std::string& name) const {
  const auto it = columns_->find(name);
  return it == columns_->end() ? -1 : it->second;
}

bool ViewRow::Has(const std::string& name) const {
  const int column = Find(name);
  return column >= 0 && sqlite3_column_type(statement_, column) != SQLITE_NULL;
}

Count ViewRow::Integer(const std::string& name) const {
  if (!Has(name)) return std::nullopt;
  return sqlite3_column_int64(statement_, Find(name));
}

analysis::Real ViewRow::Real(const std::string& name) const {
  if (!Has(name)) return std::nullopt;
  return sqlite3_column_double(statement_, Find(name));
}

std::string ViewRow::Text(const std::string& name) const {
  const int column = Find(name);
  const unsigned char* text = column < 0 ? nullptr : sqlite3_column_text(statement_, column);
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

RunDatabase::RunDatabase(const std::string& path)
    : database_(collectors::OpenToRead(path, collectors::Foreign::kAsItIs)) {}

void RunDatabase::Each(const std::string& sql, int64_t run_id, const Use& use) {
  sqlite3_stmt* prepared = nullptr;
  if (database_.Prepare(sql, &prepared) != SQLITE_OK) Fail();
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
  if (sqlite3_bind_parameter_count(prepared) > 0) sqlite3_bind_int64(prepared, 1, run_id);
  std::map<std::string, int> columns;
  for (int i = 0; i < sqlite3_column_count(prepared); ++i) {
    columns[sqlite3_column_name(prepared, i)] = i;
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
