#include "collectors/store/copy_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/temporary.h"
#include "collectors/store/store_file.h"

namespace headrace::collectors {
namespace {

// Those whose rows belong to one run; what a row refers to comes before it.
constexpr const char* kTables[] = {"runs",
                                   "stages",
                                   "operators",
                                   "queues",
                                   "resources",
                                   "steps",
                                   "step_histogram",
                                   "host_metrics",
                                   "probes",
                                   "losses",
                                   "intervals",
                                   "step_time_intervals",
                                   "step_records",
                                   "stage_intervals",
                                   "operator_intervals",
                                   "queue_intervals",
                                   "resource_intervals",
                                   "host_intervals",
                                   "processes",
                                   "metrics",
                                   "measurements",
                                   "measurement_intervals",
                                   "predictions",
                                   "run_facts",
                                   "run_settings",
                                   "layouts",
                                   "layout_stripes",
                                   "layout_streams",
                                   "layout_reads",
                                   "run_marks",
                                   "store_probes",
                                   "stacks",
                                   "detail_ranges",
                                   "decisions",
                                   "decision_changes"};

// Columns are taken by name: those of a store of an earlier version may have another order.
void CopyTable(Database& from, Database& to, const std::string& table, int64_t run_id) {
  std::string names, parameters;
  int columns = 0;
  {
    Statement of(to, "SELECT name FROM pragma_table_info(?1) ORDER BY cid");
    of.Bind(std::string_view(table));
    for (; of.Step(); ++columns) {
      names += (columns > 0 ? ", " : "") + of.text(0);
      parameters += columns > 0 ? ", ?" : "?";
    }
  }
  Statement rows(from, fmt::format("SELECT {} FROM {} WHERE run_id = ?1", names, table));
  Statement insert(to, fmt::format("INSERT INTO {} ({}) VALUES ({})", table, names, parameters));
  rows.Bind(run_id);
  while (rows.Step()) {
    for (int c = 0; c < columns; ++c) insert.BindColumn(rows, c);
    insert.Run();
  }
}

void Fill(Database& from, int64_t run_id, const std::string& path) {
  Database to(path, Database::Mode::kCreate);  // without a log beside it: one file can be mailed
  to.Execute("PRAGMA auto_vacuum = INCREMENTAL");
  Migrate(to);
  // What the source holds is copied as it is, its faults included.
  to.Execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
  Transaction transaction(to);
  for (const char* table : kTables) CopyTable(from, to, table, run_id);
  transaction.Commit();
}

void RemoveDatabase(const std::string& path) {
  for (const char* end : {"", "-wal", "-shm", "-journal"}) unlink((path + end).c_str());
}

}  // namespace

void CopyRun(Database& from, int64_t run_id, const std::string& path, uint32_t mode) {
  const auto exists = [&] {
    return Error(ExitCode::kUsage, "exists", path, "name another file with -o");
  };
  struct stat info;
  if (lstat(path.c_str(), &info) == 0) throw exists();
  const std::string temporary = NewFileBeside(path, mode);
  try {
    Fill(from, run_id, temporary);
    if (RenameToNew(AT_FDCWD, temporary.c_str(), path.c_str()) != 0) {
      if (errno == EEXIST) throw exists();
      throw ErrnoError(errno, "create", path);
    }
    SyncFolderOf(path);
  } catch (...) {
    RemoveDatabase(temporary);
    throw;
  }
}

}  // namespace headrace::collectors
