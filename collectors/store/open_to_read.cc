#include "collectors/store/open_to_read.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <set>
#include <thread>

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

// An empty file that is so young may be a store that a recorder is just making.
bool IsBeingMade(const std::string& path) {
  constexpr time_t kYoungSeconds = 2;
  struct stat file;
  return stat(path.c_str(), &file) == 0 && std::abs(time(nullptr) - file.st_mtime) <= kYoungSeconds;
}

}  // namespace

Database OpenToRead(const std::string& path, Foreign foreign) {
  Database database = OpenReadable(path);
  if (foreign == Foreign::kAsItIs && database.Integer("PRAGMA application_id") != kApplicationId) {
    return database;
  }
  int64_t version = CheckVersion(database);
  for (int attempt = 0; version == 0 && attempt < 100 && IsBeingMade(path); attempt++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    version = CheckVersion(database);
  }
  if (version == 0) {
    throw Error(ExitCode::kBadData, "an empty file, not a headrace database", path,
                "record a run first, or name another file with --db");
  }
  CheckTables(database);
  ShowAsCurrent(database, version);
  return database;
}

}  // namespace headrace::collectors
