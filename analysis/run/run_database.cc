#include "analysis/run/run_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>

#include "base/error.h"
#include "collectors/store/open_to_read.h"
#include "collectors/store/store_file.h"

namespace headrace::analysis {
namespace {

using Prepared = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;
using Registered = std::unique_ptr<sqlite3, void (*)(sqlite3*)>;

constexpr const char* kVisit = "headrace_visit";  // the function that a sweep calls

}  // namespace

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

Count SweptRow::IntegerAt(int column) const {
  if (sqlite3_value_type(values_[column]) == SQLITE_NULL) return std::nullopt;
  return sqlite3_value_int64(values_[column]);
}

int64_t SweptRow::NumberAt(int column) const { return sqlite3_value_int64(values_[column]); }

RunDatabase::RunDatabase(const std::string& path)
    : database_(collectors::OpenToRead(path, collectors::Foreign::kAsItIs)),
      is_ours_(database_.Integer("PRAGMA application_id") == collectors::kApplicationId) {}

void RunDatabase::Each(const std::string& sql, int64_t run_id, const Use& use) {
  sqlite3_stmt* prepared = nullptr;
  if (database_.Prepare(sql, &prepared) != SQLITE_OK) Fail();
  const Prepared statement(prepared, sqlite3_finalize);
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

void RunDatabase::EachOf(const std::string& view, const std::vector<std::string>& columns,
                         int64_t run_id, const std::string& order, const Use& use) {
  sqlite3_stmt* prepared = nullptr;
  if (database_.Prepare("SELECT * FROM " + view, &prepared) != SQLITE_OK) Fail();
  const Prepared statement(prepared, sqlite3_finalize);
  std::string list;
  for (int i = 0; i < sqlite3_column_count(prepared); ++i) {
    const std::string name = sqlite3_column_name(prepared, i);
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) continue;
    list += (list.empty() ? "" : ", ") + name;
  }
  Each(fmt::format("SELECT {} FROM {} WHERE run_id = ?1 ORDER BY {}", list.empty() ? "*" : list,
                   view, order),
       run_id, use);
}

// What is called for each row of a sweep, as an aggregate function.
struct RunDatabase::Visitor {
  const Sweeping* use;
  int64_t last = std::numeric_limits<int64_t>::min();
  bool in_order = true;
  std::exception_ptr failure = nullptr;  // none may pass through the database

  static void Visit(sqlite3_context* context, int, sqlite3_value** values) {
    auto* self = static_cast<Visitor*>(sqlite3_user_data(context));
    const SweptRow row(values);
    const int64_t key = row.NumberAt(0);
    self->in_order = key >= self->last;
    self->last = key;
    if (!self->in_order) return Stop(context, "rows out of order");
    try {
      (*self->use)(row);
    } catch (...) {
      self->failure = std::current_exception();
      Stop(context, "a row could not be used");
    }
  }
  // Of the statement: what follows is of no use.
  static void Stop(sqlite3_context* context, const char* why) {
    sqlite3_result_error(context, why, -1);
  }
  static void End(sqlite3_context*) {}
};

bool RunDatabase::SweepOnce(const std::string& sql, int64_t run_id, const Sweeping& use) {
  Visitor visitor{&use};
  if (sqlite3_create_function_v2(database_.handle(), kVisit, -1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                 &visitor, nullptr, Visitor::Visit, Visitor::End,
                                 nullptr) != SQLITE_OK)
    Fail();
  const Registered until_the_end(database_.handle(), [](sqlite3* handle) {
    sqlite3_create_function_v2(handle, kVisit, -1, SQLITE_UTF8, nullptr, nullptr, nullptr, nullptr,
                               nullptr);
  });
  try {
    Each(sql, run_id, [](const ViewRow&) {});
  } catch (const Error&) {
    if (visitor.failure) std::rethrow_exception(visitor.failure);
    if (visitor.in_order) throw;
  }
  return visitor.in_order;
}

void RunDatabase::Sweep(const std::string& view, const std::vector<std::string>& columns,
                        int64_t run_id, const Sweeping& use, const std::function<void()>& anew) {
  const std::string list = fmt::format("{}", fmt::join(columns, ", "));
  // An order that is asked for makes each row be copied once more. Our tables have it by their key.
  if (SweepOnce(fmt::format("SELECT {}({}) FROM {} WHERE run_id = ?1", kVisit, list, view), run_id,
                use))
    return;
  anew();
  SweepOnce(
      fmt::format(
          "SELECT {0}({1}) FROM (SELECT {1} FROM {2} WHERE run_id = ?1 ORDER BY {3} LIMIT -1)",
          kVisit, list, view, columns[0]),
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
