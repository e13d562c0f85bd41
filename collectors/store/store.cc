#include "collectors/store/store.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/temporary.h"
#include "collectors/store/as_current.h"
#include "collectors/store/copy_run.h"
#include "collectors/store/store_file.h"

namespace headrace::collectors {
namespace {

// Device and inode; zeros where there is no such file.
std::pair<uint64_t, uint64_t> FileId(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return {0, 0};
  return {info.st_dev, info.st_ino};
}

}  // namespace

RunStore::RunStore(const std::string& path) : database_(path, Database::Mode::kCreate) {
  Prepare();
  for (const int64_t run_id : FindAbandonedRuns(database_))
    FinishRun(run_id, RunState::kInterrupted);
  for (const int64_t comparison_id : FindAbandonedComparisons(database_)) {
    Prepared(
        "UPDATE comparisons SET state = 'interrupted' WHERE comparison_id = ?1 AND state = "
        "'running'")
        .Bind(comparison_id)
        .Run();
  }
}

void RunStore::Prepare() {
  if (CheckVersion(database_) > 0) CheckTables(database_);
  // WAL: readers and the writer do not wait for each other, and a killed process loses nothing that
  // was committed. NORMAL: a power failure may lose the newest transactions, never the file. Only a
  // new file can be set to this mode, in which the room of removed runs can be given back to the
  // disk.
  if (database_.Integer("PRAGMA page_count") == 0) {
    database_.Execute("PRAGMA auto_vacuum = INCREMENTAL");
  }
  SwitchToWal(database_);
  database_.Execute("PRAGMA synchronous = NORMAL");
  database_.Execute("PRAGMA foreign_keys = ON");
  database_.Execute("PRAGMA wal_autocheckpoint = 500");
  Migrate(database_);
  mode_ = ModeOf(database_.path());
  log_id_ = FileId(database_.path() + "-wal");
}

Statement& RunStore::Prepared(const char* sql) {
  auto it = prepared_.find(sql);
  if (it == prepared_.end()) it = prepared_.emplace(sql, Statement(database_, sql)).first;
  it->second.Reset();
  return it->second;
}

void RunStore::CopyRun(int64_t run_id, const std::string& path) {
  collectors::CopyRun(database_, run_id, path, mode_);
}

bool RunStore::IsDisplaced() {
  int moved = 0;
  sqlite3_file_control(database_.handle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) return false;
  const std::string& path = database_.path();
  struct stat info;
  const bool replaced = stat(path.c_str(), &info) == 0;
  // A folder that may not be looked into for a while says nothing.
  if (!replaced && errno != ENOENT && errno != ENOTDIR) return false;
  sqlite3_db_config(database_.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (replaced && log_id_.second != 0 && FileId(path + "-wal") == log_id_) {
    unlink((path + "-wal").c_str());
    unlink((path + "-shm").c_str());
  }
  return true;
}

void RunStore::MoveBeside(int64_t run_id, std::string* path) {
  const std::string beside = database_.path() + ".recovered-" + RandomDigits().substr(0, 8);
  collectors::CopyRun(database_, run_id, beside, mode_);
  *path = beside;
  prepared_.clear();
  rolled_up_.clear();  // what was merged is merged again unchanged
  database_ = Database(beside, Database::Mode::kReadWrite);
  Prepare();
}

}  // namespace headrace::collectors
