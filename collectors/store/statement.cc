#include "collectors/store/statement.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::collectors {
namespace {

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

// SQLite would wait at a pipe for its other end, and read a device without an end. It opens the
// files beside a database by itself.
void CheckKind(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return;
  const char* kind = S_ISDIR(info.st_mode)    ? "a folder"
                     : S_ISFIFO(info.st_mode) ? "a pipe"
                     : S_ISSOCK(info.st_mode) ? "a socket"
                                              : "a device";
  throw Error(ExitCode::kBadData, fmt::format("is {}, not a database", kind), path,
              "name a file with --db");
}

std::string ImmutableUri(const std::string& path) {
  std::string uri = path[0] == '/' ? "file://" : "file:";
  for (const char c : path) {
    uri += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", static_cast<unsigned>(c))
                                            : std::string(1, c);
  }
  return uri + "?immutable=1";
}

// Why `path` could not be opened or made: SQLite itself does not say.
Error CannotOpen(sqlite3* handle, const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  if (!Exists(folder)) {
    return Error(ExitCode::kBadData, fmt::format("there is no folder '{}'", Printable(folder)),
                 path, "make it, or name another file with --db");
  }
  // A folder that may not be written comes first: what SQLite met after it misleads.
  int reason = access(folder.c_str(), W_OK | X_OK) != 0 ? errno : 0;
  if (reason == 0 && handle) reason = sqlite3_system_errno(handle);
  const Error cause = ErrnoError(reason != 0 ? reason : EIO, "open the database", path);
  return Error(cause.code(), cause.fact(), path,
               cause.fix().empty() ? "name another file with --db" : cause.fix());
}

// Whether a write was refused for lack of room. What SQLite has of errno may be of a call that it
// made after the one that failed, so what there is room for is looked at as well.
bool NoRoom(sqlite3* handle, const std::string& path) {
  constexpr uint64_t kLittle = 64 << 10;
  const int reason = handle ? sqlite3_system_errno(handle) : 0;
  if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG) return true;
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
      struct stat file;
      if (stat((path + suffix).c_str(), &file) == 0 &&
          static_cast<uint64_t>(file.st_size) + kLittle >= limit.rlim_cur)
        return true;
    }
  }
  struct statvfs room;
  return statvfs(path.c_str(), &room) == 0 && room.f_bavail * room.f_frsize < kLittle;
}

Error StoreError(sqlite3* handle, int code, const std::string& path, std::string_view sql) {
  const std::string message = handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Error(ExitCode::kResources, "disk full", path, "free space, or use --db elsewhere");
    case SQLITE_NOMEM:
      return Error(ExitCode::kResources, "out of memory", path);
    case SQLITE_NOTADB:
      return Error(ExitCode::kBadData, "not a headrace database (not a SQLite file)", path,
                   "name another file with --db");
    case SQLITE_CORRUPT:
      return Error(ExitCode::kBadData, "the database is damaged: " + message, path,
                   "recover it with: sqlite3 FILE .recover | sqlite3 NEW.db");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(ExitCode::kFailure, "another process holds the database locked", path,
                   "try again when it is done");
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return Error(ExitCode::kPrivilege, "may not write the database: " + message, path);
    case SQLITE_CANTOPEN:
      return CannotOpen(handle, path);
    case SQLITE_IOERR:
      if ((code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE) && NoRoom(handle, path)) {
        return Error(ExitCode::kResources, "disk full, or a limit of the size of files", path,
                     "free space, use --db elsewhere, or see 'ulimit -f'");
      }
      return Error(ExitCode::kFailure, "input or output failed: " + message, path);
    case SQLITE_CONSTRAINT:
      return Error(ExitCode::kBadData, "does not fit what the database holds: " + message, path);
    case SQLITE_INTERRUPT:
      return Error(ExitCode::kBadData, "reading it takes too long: it is damaged, or was made so",
                   path);
    case SQLITE_ERROR:
      return Error(ExitCode::kBadData,
                   "the database refused a statement: " + message +
                       " in: " + Printable(std::string(sql), 120),
                   path);
    default:
      return Error(ExitCode::kFailure, message, path);
  }
}

// For one statement on a file that may come from anyone.
constexpr int64_t kMostReadNs = 60'000'000'000;
constexpr int kMostValueBytes = 64 << 20;  // no view holds more than a pipeline file
constexpr int kStepsPerLook = 10'000;      // steps of SQLite's virtual machine, about 0.1 ms

}  // namespace

struct Database::Limits {
  int64_t statement_ns = 0;
  int64_t deadline_ns = INT64_MAX;
  bool stopped = false;

  static int Look(void* self) {
    auto* limits = static_cast<Limits*>(self);
    return limits->stopped = MonotonicNs() > limits->deadline_ns;
  }
};

// While SQLite works for a statement.
class Database::AtWork {
 public:
  AtWork(Limits* limits, int64_t spent_ns) : limits_(limits) {
    if (limits_->statement_ns == 0) return;
    begin_ns_ = MonotonicNs();
    limits_->stopped = false;
    limits_->deadline_ns = begin_ns_ + limits_->statement_ns - spent_ns;
  }
  ~AtWork() { limits_->deadline_ns = INT64_MAX; }
  AtWork(const AtWork&) = delete;
  int64_t spent_ns() const { return begin_ns_ == 0 ? 0 : MonotonicNs() - begin_ns_; }

 private:
  Limits* limits_;
  int64_t begin_ns_ = 0;
};

Database::Database(const std::string& path, Mode mode) : path_(path) {
  if (path.empty()) throw Error(ExitCode::kUsage, "the name of the database is empty", "--db");
  if (mode != Mode::kCreate && !Exists(path)) {
    throw Error(ExitCode::kBadData, "no such database", path,
                "record a run first, or name another file with --db");
  }
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) CheckKind(path + suffix);
  const bool immutable = mode == Mode::kImmutable;
  const bool reads = mode == Mode::kReadOnly || immutable;
  const int flags = reads                      ? SQLITE_OPEN_READONLY
                    : mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE
                                               : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  // "./": a file may be named ":memory:".
  const std::string name = path[0] == '/' ? path : "./" + path;
  Open(immutable ? ImmutableUri(name) : name, flags | (immutable ? SQLITE_OPEN_URI : 0));
  if (!reads) return;
  sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, kMostValueBytes);
  LimitStatements(kMostReadNs);
}

Database::Database(InMemory) : path_(":memory:") {
  Open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

void Database::Open(const std::string& name, int flags) {
  limits_ = std::make_unique<Limits>();
  const int code = sqlite3_open_v2(name.c_str(), &handle_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) {
    const Error error = StoreError(handle_, code, path_, "open");
    sqlite3_close(handle_);
    throw error;
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, 10'000);
  // A file from elsewhere may hold views and triggers of its own: they call nothing that has
  // effects.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // Stores have none; a file of others may.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
}

Database::~Database() { sqlite3_close_v2(handle_); }

Database::Database(Database&& other) noexcept
    : path_(std::move(other.path_)),
      limits_(std::move(other.limits_)),
      handle_(std::exchange(other.handle_, nullptr)) {}

Database& Database::operator=(Database&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(limits_, other.limits_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Database::Fail(std::string_view sql) {
  throw StoreError(handle_, sqlite3_extended_errcode(handle_), path_, sql);
}

int64_t Database::LimitStatements(int64_t limit_ns) {
  sqlite3_progress_handler(handle_, limit_ns > 0 ? kStepsPerLook : 0, Limits::Look, limits_.get());
  return std::exchange(limits_->statement_ns, limit_ns);
}

bool Database::stopped() const { return limits_->stopped; }

int Database::Step(sqlite3_stmt* statement, int64_t* spent_ns) {
  const AtWork work(limits_.get(), *spent_ns);
  const int code = sqlite3_step(statement);
  *spent_ns += work.spent_ns();
  return code;
}

int Database::Prepare(std::string_view sql, sqlite3_stmt** statement, const char** rest) {
  const AtWork work(limits_.get(), 0);
  return sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), statement, rest);
}

void Database::Execute(const std::string& sql) {
  const AtWork work(limits_.get(), 0);
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) Fail(sql);
}

int64_t Database::Integer(const std::string& sql) {
  Statement statement(*this, sql);
  if (!statement.Step()) throw Error(ExitCode::kBadData, "no row for: " + sql, path_);
  return statement.integer(0);
}

std::string Database::Text(const std::string& sql) {
  Statement statement(*this, sql);
  if (!statement.Step()) throw Error(ExitCode::kBadData, "no row for: " + sql, path_);
  return statement.text(0);
}

int64_t Database::last_id() { return sqlite3_last_insert_rowid(handle_); }
int64_t Database::changes() { return sqlite3_changes64(handle_); }

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
  if (database.Prepare(sql, &handle_) != SQLITE_OK) database.Fail(sql);
}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      handle_(std::exchange(other.handle_, nullptr)),
      next_parameter_(other.next_parameter_),
      spent_ns_(other.spent_ns_) {}

Statement& Statement::Bind(int64_t value) {
  sqlite3_bind_int64(handle_, next_parameter_++, value);
  return *this;
}
Statement& Statement::Bind(double value) {
  sqlite3_bind_double(handle_, next_parameter_++, value);
  return *this;
}
Statement& Statement::Bind(std::string_view text) {
  sqlite3_bind_text(handle_, next_parameter_++, text.empty() ? "" : text.data(),
                    static_cast<int>(text.size()), SQLITE_TRANSIENT);
  return *this;
}
Statement& Statement::Bind(std::optional<int64_t> value) {
  return value ? Bind(*value) : BindNull();
}
Statement& Statement::Bind(std::optional<double> value) {
  return value ? Bind(*value) : BindNull();
}
Statement& Statement::BindNull() {
  sqlite3_bind_null(handle_, next_parameter_++);
  return *this;
}

Statement& Statement::BindColumn(const Statement& row, int column) {
  sqlite3_bind_value(handle_, next_parameter_++, sqlite3_column_value(row.handle_, column));
  return *this;
}

bool Statement::Step() {
  const int code = database_->Step(handle_, &spent_ns_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  try {
    database_->Fail(sqlite3_sql(handle_) ? sqlite3_sql(handle_) : "");
  } catch (...) {
    Reset();
    throw;
  }
}

void Statement::Run() {
  while (Step()) {
  }
  Reset();
}

void Statement::Reset() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
  next_parameter_ = 1;
  spent_ns_ = 0;
}

int Statement::num_columns() const { return sqlite3_column_count(handle_); }
std::string Statement::column_name(int column) const {
  const char* name = sqlite3_column_name(handle_, column);
  return name ? name : "";
}
int Statement::type(int column) const { return sqlite3_column_type(handle_, column); }
bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}
int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }
double Statement::real(int column) const { return sqlite3_column_double(handle_, column); }
std::string Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(handle_, column);
  const int size = sqlite3_column_bytes(handle_, column);
  return bytes ? std::string(static_cast<const char*>(bytes), static_cast<size_t>(size)) : "";
}
std::optional<int64_t> Statement::optional_integer(int column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}
std::optional<double> Statement::optional_real(int column) const {
  if (is_null(column)) return std::nullopt;
  return real(column);
}

Transaction::Transaction(Database& database)
    : database_(&database), open_(sqlite3_get_autocommit(database.handle()) != 0) {
  if (open_) database.Execute("BEGIN IMMEDIATE");
}
Transaction::~Transaction() {
  // After "disk full" SQLite has rolled back by itself; a second rollback fails harmlessly.
  if (open_) sqlite3_exec(database_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}
void Transaction::Commit() {
  if (!open_) return;
  database_->Execute("COMMIT");
  open_ = false;
}

}  // namespace headrace::collectors
