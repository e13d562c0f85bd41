#include "collectors/store/store_file.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "collectors/store/embedded_sql.h"
#include "probes/process.h"

namespace headrace::collectors {
namespace {

// `sql` selects rows (id, pid, start time of the process). Returns the ids whose process is gone or
// was not recorded.
std::vector<int64_t> FindAbandoned(Database& database, const char* sql) {
  std::vector<int64_t> abandoned;
  Statement rows(database, sql);
  rows.Bind(HostName());
  while (rows.Step()) {
    const bool known = !rows.is_null(1) && !rows.is_null(2);
    if (!known || !probes::IsAlive(rows.integer(1), rows.integer(2)))
      abandoned.push_back(rows.integer(0));
  }
  return abandoned;
}

void UpdateViews(Database& database) {
  for (const SqlFile& file : ViewFiles()) {
    Statement present(database, "SELECT sql FROM sqlite_master WHERE type = 'view' AND name = ?1");
    present.Bind(file.name);
    if (present.Step() && present.text(0) == CreateStatement(file.text)) continue;
    present.Reset();
    database.Execute(std::string(file.text));
  }
}

}  // namespace

int64_t CheckVersion(Database& database) {
  // One statement, so that a database another process is just making is seen before or after.
  Statement header(database,
                   "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id "
                   "FROM pragma_application_id), (SELECT COUNT(*) FROM sqlite_master)");
  header.Step();
  const int64_t version = header.integer(0), id = header.integer(1), entries = header.integer(2);
  header.Reset();
  const int64_t known = static_cast<int64_t>(SchemaFiles().size());
  if (id != kApplicationId) {
    if (id != 0 || version != 0 || entries != 0) {
      throw Error(ExitCode::kBadData, "a SQLite file but not a headrace database", database.path(),
                  "name another file with --db");
    }
    return 0;
  }
  // Every store that was ever made has a version of at least 1, written together with its id.
  if (version < 1) {
    throw Error(
        ExitCode::kBadData,
        fmt::format("says schema {}, which no headrace writes: the file is damaged", version),
        database.path(), "name another file with --db");
  }
  if (version > known) {
    throw Error(ExitCode::kBadData,
                fmt::format("made by a newer headrace (schema {}; this is {} with schema {})",
                            version, HEADRACE_VERSION, known),
                database.path(), "upgrade headrace");
  }
  return version;
}

void Migrate(Database& database) {
  const int64_t known = static_cast<int64_t>(SchemaFiles().size());
  if (CheckVersion(database) == known && ViewsAreCurrent(database)) return;
  Transaction transaction(database);
  // Another process may have been first.
  for (int64_t version = CheckVersion(database); version < known; version++)
    database.Execute(std::string(SchemaFiles()[static_cast<size_t>(version)].text));
  database.Execute(fmt::format("PRAGMA application_id = {}", kApplicationId));
  database.Execute(fmt::format("PRAGMA user_version = {}", known));
  UpdateViews(database);
  transaction.Commit();
}

void SwitchToWal(Database& database) {
  for (int attempt = 0;; attempt++) {
    try {
      database.Execute("PRAGMA journal_mode = WAL");
      return;
    } catch (const Error& error) {
      if (error.code() != ExitCode::kFailure || attempt >= 100) throw;
    }
    SleepUntilNs(MonotonicNs() + 20'000'000);
  }
}

std::string_view CreateStatement(std::string_view text) {
  const size_t begin = text.find("CREATE VIEW");
  const size_t end = text.rfind(';');
  HR_CHECK(begin != std::string_view::npos && end != std::string_view::npos, "a view file");
  return text.substr(begin, end - begin);
}

bool ViewsAreCurrent(Database& database) {
  for (const SqlFile& file : ViewFiles()) {
    Statement present(database, "SELECT sql FROM sqlite_master WHERE type = 'view' AND name = ?1");
    present.Bind(file.name);
    if (!present.Step() || present.text(0) != CreateStatement(file.text)) return false;
  }
  return true;
}

uint32_t ModeOf(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 0666 : 0600;
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::vector<int64_t> FindAbandonedRuns(Database& database) {
  return FindAbandoned(database,
                       "SELECT run_id, collector_pid, collector_start FROM runs "
                       "WHERE state = 'recording' AND hostname = ?1");
}

std::vector<int64_t> FindAbandonedComparisons(Database& database) {
  return FindAbandoned(database,
                       "SELECT comparison_id, writer_pid, writer_start FROM comparisons "
                       "WHERE state = 'running' AND hostname IN (?1, '')");
}

}  // namespace headrace::collectors
