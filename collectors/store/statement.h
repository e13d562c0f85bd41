// RAII over SQLite: Database is a connection, Statement a prepared statement. Errors leave as Error
// with the database's path; "disk full" is kResources, damage and foreign files are kBadData. One
// thread per Database.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace headrace::collectors {

class Database {
 public:
  // kImmutable reads a file that nobody can be writing, in a folder that may not be written.
  enum class Mode { kReadOnly, kImmutable, kReadWrite, kCreate };
  // Waits up to ten seconds for other writers at each statement. Throws Error; kBadData at once for
  // what is no regular file. A database opened for reading may come from anyone: its values are
  // limited to 64 MiB, its statements to one minute (LimitStatements).
  Database(const std::string& path, Mode mode);
  struct InMemory {};
  explicit Database(InMemory);  // an empty database that ends with the object
  ~Database();
  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;

  const std::string& path() const { return path_; }
  sqlite3* handle() { return handle_; }
  // Runs statements without results. Throws Error.
  void Execute(const std::string& sql);
  // First column of the first row. Throws Error; kBadData when there is no row.
  int64_t Integer(const std::string& sql);
  std::string Text(const std::string& sql);
  // From now on stops every statement that works for longer than `limit_ns`, with an Error
  // kBadData; the time between its rows does not count. Returns the previous limit; 0: none.
  int64_t LimitStatements(int64_t limit_ns);
  bool stopped() const;  // whether the last failure was such a stop
  // As sqlite3_step. `*spent_ns` is the time for which the statement has worked; this step's time
  // is added to it.
  int Step(sqlite3_stmt* statement, int64_t* spent_ns);
  int Prepare(std::string_view sql, sqlite3_stmt** statement, const char** rest = nullptr);
  int64_t last_id();
  int64_t changes();
  // Throws the Error of the connection's last failure; `sql` is what was tried.
  [[noreturn]] void Fail(std::string_view sql);

 private:
  struct Limits;
  class AtWork;
  void Open(const std::string& name, int flags);

  std::string path_;
  std::unique_ptr<Limits> limits_;  // on the heap, as SQLite keeps its address
  sqlite3* handle_ = nullptr;
};

// Parameters are bound in order from 1 by Bind; columns are read from 0. The Database must outlive
// it.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement(const Statement&) = delete;

  Statement& Bind(int64_t value);
  Statement& Bind(double value);
  Statement& Bind(std::string_view text);  // copied
  Statement& Bind(std::optional<int64_t> value);
  Statement& Bind(std::optional<double> value);
  Statement& Bind(const std::string& text) { return Bind(std::string_view(text)); }
  // No other type becomes a bool here: a text would.
  Statement& Bind(std::same_as<bool> auto value) { return Bind(int64_t{value}); }
  Statement& BindNull();
  Statement& BindColumn(const Statement& row, int column);  // of the current row of `row`
  // True when there is a row. Throws Error.
  bool Step();
  // Steps to the end and makes the statement ready for the next bindings. Throws Error.
  void Run();
  void Reset();

  int num_columns() const;
  std::string column_name(int column) const;
  int type(int column) const;  // SQLITE_INTEGER, SQLITE_NULL, ...
  bool is_null(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::optional<int64_t> optional_integer(int column) const;
  std::optional<double> optional_real(int column) const;

 private:
  Database* database_;
  sqlite3_stmt* handle_ = nullptr;
  int next_parameter_ = 1;
  int64_t spent_ns_ = 0;
};

// BEGIN IMMEDIATE ... COMMIT; rolls back unless committed. Within another one it is a part of that,
// whose end decides.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  void Commit();

 private:
  Database* database_;
  bool open_;  // begun here and not over; false also within another one
};

}  // namespace headrace::collectors
