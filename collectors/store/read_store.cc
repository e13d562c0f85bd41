#include "collectors/store/read_store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cctype>

#include "base/check.h"
#include "base/error.h"
#include "collectors/store/copy_run.h"
#include "collectors/store/find_run.h"
#include "collectors/store/open_to_read.h"
#include "collectors/store/store_file.h"

namespace headrace::collectors {

size_t SqlResult::Column(std::string_view name) const {
  const auto it = std::find(columns.begin(), columns.end(), name);
  HR_CHECK(it != columns.end(), "a column of the query");
  return static_cast<size_t>(it - columns.begin());
}

ReadStore::ReadStore(const std::string& path) : database_(OpenToRead(path)) {}

SqlResult ReadStore::Collect(const std::string& sql, const std::vector<SqlValue>& parameters,
                             const UntrustedLimits& limits) {
  Statement statement(database_, sql);
  for (const SqlValue& value : parameters) {
    if (auto* integer = std::get_if<int64_t>(&value)) {
      statement.Bind(*integer);
    } else if (auto* real = std::get_if<double>(&value)) {
      statement.Bind(*real);
    } else if (auto* text = std::get_if<std::string>(&value)) {
      statement.Bind(std::string_view(*text));
    } else {
      statement.BindNull();
    }
  }
  // The first step may find the schema changed and compile anew: columns are known after it.
  SqlResult result;
  size_t held_bytes = 0;
  bool more = statement.Step();
  for (int c = 0; c < statement.num_columns(); c++) {
    result.columns.push_back(statement.column_name(c));
  }
  for (; more; more = statement.Step()) {
    if (result.rows.size() >= limits.rows) {
      result.cut = true;
      break;
    }
    auto& row = result.rows.emplace_back();
    for (int c = 0; c < statement.num_columns(); c++) {
      const bool text = statement.type(c) == SQLITE_TEXT || statement.type(c) == SQLITE_BLOB;
      held_bytes += sizeof(SqlValue) + (text ? statement.text(c).size() : 0);
    }
    held_bytes += sizeof(row);
    if (held_bytes > limits.bytes && limits.cut) {
      result.rows.pop_back();
      result.cut = true;
      break;
    }
    if (held_bytes > limits.bytes) {
      throw Error(ExitCode::kResources,
                  fmt::format("the result is larger than {} MiB", limits.bytes >> 20), "SQL",
                  "narrow it with WHERE run_id = ... or LIMIT");
    }
    for (int c = 0; c < statement.num_columns(); c++) {
      switch (statement.type(c)) {
        case SQLITE_NULL:
          row.emplace_back(std::monostate{});
          break;
        case SQLITE_INTEGER:
          row.emplace_back(statement.integer(c));
          break;
        case SQLITE_FLOAT:
          row.emplace_back(statement.real(c));
          break;
        default:
          row.emplace_back(statement.text(c));
          break;
      }
    }
  }
  return result;
}

SqlResult ReadStore::Query(const std::string& sql, const std::vector<SqlValue>& parameters) {
  return Collect(sql, parameters, {.bytes = SIZE_MAX});
}

namespace {

struct Guard {
  std::string refused;  // what was asked for and is not allowed
};

const char* ActionName(int action) {
  switch (action) {
    case SQLITE_DELETE:
      return "DELETE";
    case SQLITE_INSERT:
      return "INSERT";
    case SQLITE_UPDATE:
      return "UPDATE";
    case SQLITE_ATTACH:
      return "ATTACH";
    case SQLITE_DETACH:
      return "DETACH";
    case SQLITE_PRAGMA:
      return "PRAGMA";
    case SQLITE_TRANSACTION:
      return "BEGIN or COMMIT";
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_DROP_TEMP_TABLE:
    case SQLITE_DROP_TEMP_VIEW:
      return "DROP";
    case SQLITE_ALTER_TABLE:
      return "ALTER";
    case SQLITE_FUNCTION:
      return "this function";
    default:
      return "this statement";
  }
}

// An allowlist: what only reads.
int Authorize(void* guard, int action, const char* first, const char* second, const char*,
              const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION: {
      const std::string name = second ? second : "";
      if (name == "load_extension" || name == "writefile" || name == "edit") break;
      return SQLITE_OK;
    }
    case SQLITE_PRAGMA: {
      const std::string name = first ? first : "";
      if (!second && (name == "table_list" || name == "user_version" || name == "schema_version")) {
        return SQLITE_OK;
      }
      if (name == "table_info" || name == "table_xinfo") return SQLITE_OK;
      break;
    }
    default:
      break;
  }
  // The first refusal names the statement: DROP also asks to delete from the schema.
  auto& refused = static_cast<Guard*>(guard)->refused;
  const std::string name = ActionName(action);
  if (refused.empty() || name == "DROP" || name == "ALTER") refused = name;
  return SQLITE_DENY;
}

// "DROP TABLE runs" -> "DROP".
std::string FirstWord(const std::string& sql) {
  std::string word;
  for (const char c : sql) {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    } else if (!word.empty() || !std::isspace(static_cast<unsigned char>(c))) {
      break;
    }
  }
  return word;
}

}  // namespace

SqlResult ReadStore::QueryUntrusted(const std::string& sql, const UntrustedLimits& limits) {
  Guard guard;
  sqlite3* handle = database_.handle();
  sqlite3_set_authorizer(handle, Authorize, &guard);
  const int64_t usual_ns = database_.LimitStatements(limits.ns);
  // No single text may be larger than the result: zeroblob(1e9) takes that much before it is a row.
  const int longest = static_cast<int>(std::min<size_t>(limits.bytes, 1 << 30));
  const int usual_length = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, longest);
  const auto release = [this, handle, usual_ns, usual_length] {
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, usual_length);
    sqlite3_set_authorizer(handle, nullptr, nullptr);
    database_.LimitStatements(usual_ns);
  };
  const auto refuse = [](const std::string& what) {
    return Error(ExitCode::kUsage, fmt::format("read-only: {} is not allowed here", what), "SQL",
                 "only SELECT is; the views are listed by: headrace query \"SELECT name FROM "
                 "sqlite_master WHERE type = 'view'\"");
  };
  try {
    sqlite3_stmt* statement = nullptr;
    const char* rest = nullptr;
    const int code = database_.Prepare(sql, &statement, &rest);
    const bool reads = statement && sqlite3_stmt_readonly(statement);
    const bool empty = code == SQLITE_OK && !statement;
    sqlite3_finalize(statement);
    if (!guard.refused.empty()) {
      const std::string word = FirstWord(sql);
      throw refuse(guard.refused == "this function" || word.empty() || word == "SELECT" ||
                           word == "WITH" || word == "EXPLAIN"
                       ? guard.refused
                       : word);
    }
    if (empty)
      throw Error(ExitCode::kUsage, "no statement given", "SQL",
                  "try 'headrace query \"SELECT * FROM operator_summary\"'");
    if (code != SQLITE_OK) {
      // DROP of a table that is not there is refused as DROP, too.
      const std::string word = FirstWord(sql);
      for (const char* writing : {"DROP", "DELETE", "INSERT", "UPDATE", "REPLACE", "CREATE",
                                  "ALTER", "ATTACH", "DETACH", "VACUUM", "REINDEX", "ANALYZE"}) {
        if (word == writing) throw refuse(word);
      }
      throw Error(ExitCode::kUsage, sqlite3_errmsg(handle), "SQL",
                  "the views and their columns are in docs/store.md");
    }
    if (!reads) throw refuse(FirstWord(sql));
    while (rest && (std::isspace(static_cast<unsigned char>(*rest)) || *rest == ';')) rest++;
    if (rest && *rest) {
      throw Error(ExitCode::kUsage, "more than one statement", "SQL", "give one SELECT");
    }
    SqlResult result = Collect(sql, {}, limits);
    release();
    return result;
  } catch (const Error& error) {
    release();
    if (database_.stopped()) {
      throw Error(ExitCode::kFailure,
                  fmt::format("stopped after {} s", static_cast<double>(limits.ns) / 1e9), "SQL",
                  "narrow it with WHERE run_id = ... or LIMIT");
    }
    throw;
  }
}

int64_t ReadStore::FindRun(const std::string& run) { return FindRunOrThrow(database_, run); }

void ReadStore::CopyRun(int64_t run_id, const std::string& path) {
  collectors::CopyRun(database_, run_id, path, ModeOf(database_.path()));
}

}  // namespace headrace::collectors
