#include "collectors/store/open_to_read.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cstdio>
#include <ctime>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/store/as_current.h"
#include "collectors/store/store_file.h"

namespace headrace::collectors {
namespace {

// Says once what a database is read without.
void SayUnread(const std::string& path, int64_t bytes) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (!said.insert(path).second) return;
  std::fputs(fmt::format("headrace: {}: read without its newest records: {}-wal ({} bytes) cannot "
                         "be used here; copy both into a folder of your own to read all\n",
                         Printable(path), Printable(path), bytes)
                 .c_str(),
             stderr);
}

// Beside a file in WAL mode are two more while anybody has it open. Where they are absent and this
// user may not make them (SQLITE_READONLY_DIRECTORY), or they may not be read, the file is read
// alone: nobody had it open, or what its log holds is out of reach.
Database OpenReadable(const std::string& path) {
  Database database(path, Database::Mode::kReadOnly);
  try {
    database.Integer("SELECT COUNT(*) FROM sqlite_master");
    return database;
  } catch (const Error&) {
    const int code = sqlite3_errcode(database.handle()) & 0xff;
    if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY) throw;
  }
  struct stat log;
  if (stat((path + "-wal").c_str(), &log) == 0 && log.st_size > 0) SayUnread(path, log.st_size);
  return Database(path, Database::Mode::kImmutable);
}

// Whether it has nothing in it yet, and is so young that a recorder may be at it.
bool IsBeingMade(Database& database) {
  constexpr time_t kYoungSeconds = 2;
  struct stat file;
  if (stat(database.path().c_str(), &file) != 0) return false;
  const time_t age = time(nullptr) - file.st_mtime;
  if (age < 0 || age > kYoungSeconds) return false;
  return database.Integer("SELECT COUNT(*) FROM sqlite_master") == 0;
}

}  // namespace

Database OpenToRead(const std::string& path, Foreign foreign) {
  Database database = OpenReadable(path);
  while (IsBeingMade(database)) {
    SleepUntilNs(MonotonicNs() + 20'000'000);
    database = OpenReadable(path);
  }
  if (foreign == Foreign::kAsItIs && database.Integer("PRAGMA application_id") != kApplicationId) {
    return database;
  }
  const int64_t version = CheckVersion(database);
  if (version == 0) {
    throw Error(ExitCode::kBadData, "an empty file, not a headrace database", path,
                "record a run first, or name another file with --db");
  }
  CheckTables(database);
  ShowAsCurrent(database, version);
  return database;
}

}  // namespace headrace::collectors
