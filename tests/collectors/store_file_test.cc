#include "collectors/store/store_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "base/error.h"
#include "collectors/store/embedded_sql.h"
#include "collectors/store/open_to_read.h"
#include "collectors/store/store.h"
#include "tests/collectors/store_fixture.h"

namespace headrace::collectors {
namespace {

using testing::HasSubstr;

class StoreFile : public StoreFolder {
 protected:
  // The bytes of the file, and when it was changed.
  static std::string StateOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    struct stat info = {};
    stat(path.c_str(), &info);
    return fmt::format("{} {}.{:09} ", info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec) +
           bytes.str();
  }

  // A store as the first `version` migrations make it, with a row in every table.
  static void MakeStore(const std::string& path, size_t version) {
    Database database(path, Database::Mode::kCreate);
    for (size_t i = 0; i < version; ++i) database.Execute(std::string(SchemaFiles()[i].text));
    database.Execute("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF");
    std::vector<std::string> inserts;
    {
      Statement tables(
          database,
          "SELECT m.name, group_concat(CASE c.type WHEN 'INTEGER' THEN '1' WHEN 'REAL' THEN '1.5' "
          "ELSE '''x''' END) FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type "
          "= 'table' AND m.name NOT LIKE 'sqlite%' GROUP BY m.name");
      while (tables.Step())
        inserts.push_back(
            fmt::format("INSERT INTO {} VALUES ({})", tables.text(0), tables.text(1)));
    }
    for (const std::string& insert : inserts) database.Execute(insert);
    database.Execute(fmt::format("PRAGMA application_id = {}", kApplicationId));
    database.Execute(fmt::format("PRAGMA user_version = {}", version));
  }

  static std::string Text(const SqlValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
    if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
    return "NULL";
  }
  // All rows of all views.
  static std::string Contents(const std::string& path) {
    ReadStore store(path);
    std::string all;
    for (const SqlFile& view : ViewFiles()) {
      const SqlResult rows = store.Query("SELECT * FROM " + std::string(view.name));
      all += std::string(view.name) + ":";
      for (const std::string& column : rows.columns) all += " " + column;
      for (const auto& row : rows.rows) {
        all += "\n ";
        for (const SqlValue& value : row) all += " " + Text(value);
      }
      all += "\n";
    }
    return all;
  }

  static std::string Refusal(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      return error.what();
    }
    return "not refused";
  }
};

// Holds of every migration there will be: one that changes rows, and not only adds columns and
// tables, needs more than ShowAsCurrent does, and is found here.
TEST_F(StoreFile, AnOlderStoreReadsAsItsMigratedCopyAndStaysAsItIs) {
  for (size_t version = 1; version <= SchemaFiles().size(); ++version) {
    SCOPED_TRACE(fmt::format("schema {}", version));
    const std::string old = fmt::format("{}/old{}.db", folder_, version);
    MakeStore(old, version);
    const std::string copy = old + ".copy";
    std::filesystem::copy_file(old, copy);
    { RunStore migrated(copy); }
    const std::string before = StateOf(old);
    const std::string seen = Contents(old);
    EXPECT_EQ(seen, Contents(copy));
    EXPECT_THAT(seen, HasSubstr("run_summary: run_id"));
    {
      ReadStore store(old);
      const int64_t run = store.FindRun("x");
      store.CopyRun(run, old + ".run");
      EXPECT_EQ(ReadStore(old + ".run").FindRun("x"), run);
    }
    EXPECT_EQ(StateOf(old), before);
    EXPECT_FALSE(std::filesystem::exists(old + "-wal"));
    EXPECT_FALSE(std::filesystem::exists(old + "-journal"));
  }
}

TEST_F(StoreFile, WhatADeadCollectorLeftReadsAsInterruptedAndStaysAsItIs) {
  {
    RunStore store(path_);
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    RunInfo info;
    info.name = "dead";
    info.hostname = host;
    store.BeginRun(info);
    store.BeginComparison({"killed", "a", "b", "7", 1000});
    store.database().Execute(
        "UPDATE runs SET collector_start = 1; UPDATE comparisons SET writer_start = 1; "
        "PRAGMA journal_mode = DELETE");
  }
  const std::string before = StateOf(path_);
  {
    ReadStore store(path_);
    const auto one = [&](const char* sql) { return Text(store.Query(sql).rows.at(0).at(0)); };
    EXPECT_EQ(one("SELECT state FROM run_summary"), "interrupted");
    EXPECT_EQ(one("SELECT state FROM comparison_summary"), "interrupted");
    EXPECT_EQ(store.FindRun("latest"), 1);
  }
  EXPECT_EQ(StateOf(path_), before);
  RunStore writer(path_);  // and the next one that writes keeps it
  EXPECT_EQ(writer.database().Text("SELECT state FROM main.runs"), "interrupted");
}

TEST_F(StoreFile, ImpossibleVersionsAreRefusedBeforeAnythingUsesThem) {
  for (const int64_t version : {int64_t{-1}, int64_t{-3}, int64_t{INT32_MIN}, int64_t{0},
                                int64_t(SchemaFiles().size() + 1), int64_t{INT32_MAX}}) {
    SCOPED_TRACE(version);
    const std::string path = fmt::format("{}/{}.db", folder_, version);
    MakeStore(path, SchemaFiles().size());
    Database(path, Database::Mode::kReadWrite)
        .Execute(fmt::format("PRAGMA user_version = {}", version));
    const std::string before = StateOf(path);
    const std::string said = fmt::format("schema {}", version);
    EXPECT_THAT(Refusal([&] { ReadStore store(path); }), HasSubstr(said));
    EXPECT_THAT(Refusal([&] { RunStore store(path); }), HasSubstr(said));
    EXPECT_EQ(StateOf(path), before);
  }
}

TEST_F(StoreFile, AViewPutIntoAStoreIsNotRead) {
  { RunStore store(path_); }
  Database(path_, Database::Mode::kReadWrite)
      .Execute("DROP VIEW run_summary; CREATE VIEW run_summary AS SELECT 'false' AS run_id");
  EXPECT_TRUE(ReadStore(path_).Query("SELECT * FROM run_summary").rows.empty());
}

// Reading a table must not run a statement of the file's: these have no end.
TEST_F(StoreFile, AStoreThatBringsStatementsUnderTheNamesOfTablesIsRefused) {
  constexpr const char* kEndless =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i)";
  const struct {
    const char* name;
    std::string sql;
    const char* said;
  } cases[] = {
      {"view",
       fmt::format("DROP TABLE runs; CREATE VIEW runs AS {} AS run_id, 1 AS collector_pid, 1 AS "
                   "collector_start, 'recording' AS state, '' AS hostname FROM n",
                   kEndless),
       "'runs' is not a table"},
      {"view of another case",
       fmt::format("DROP TABLE comparisons; CREATE VIEW COMPARISONS AS {} "
                   "AS comparison_id FROM n",
                   kEndless),
       "'comparisons' is not a table"},
      {"view under another name",
       fmt::format("DROP TABLE runs; CREATE VIEW other AS {} AS run_id FROM n; PRAGMA "
                   "writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'other', "
                   "'runs') WHERE name = 'other'",
                   kEndless),
       "malformed database schema"},
      {"virtual table", "DROP TABLE runs; CREATE VIRTUAL TABLE runs USING fts5(run_id, state)",
       "'runs' is a virtual table"},
      {"computed column",
       "ALTER TABLE runs ADD COLUMN more INTEGER AS (length(hex(zeroblob(400000000)))) VIRTUAL",
       "'runs' has computed columns"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string path = fmt::format("{}/{}.db", folder_, c.name);
    MakeStore(path, SchemaFiles().size());
    {
      Database database(path, Database::Mode::kReadWrite);
      sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
      database.Execute(c.sql);
    }
    EXPECT_THAT(Refusal([&] { ReadStore store(path); }), HasSubstr(c.said));
    EXPECT_THAT(Refusal([&] { RunStore store(path); }), HasSubstr(c.said));
  }
}

TEST_F(StoreFile, ATriggerThatAStoreBringsDoesNotRun) {
  { RunStore store(path_); }
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(handle, "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
                   nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(handle);
  { RunStore(path_).BeginRun({}); }
  EXPECT_EQ(OpenToRead(path_).Integer("SELECT COUNT(*) FROM runs"), 1);
}

TEST_F(StoreFile, AReaderWaitsForAStoreThatIsBeingMade) {
  std::ofstream(path_).close();
  std::thread recorder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    RunStore(path_).BeginRun({});
  });
  EXPECT_NO_THROW(OpenToRead(path_));
  recorder.join();
}

TEST_F(StoreFile, AStatementThatReadsWithoutAnEndIsStopped) {
  { RunStore store(path_); }
  Database database = OpenToRead(path_);
  EXPECT_GT(database.LimitStatements(100'000'000), 0) << "by itself";
  EXPECT_THAT(Refusal([&] {
                database.Integer(
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) "
                    "FROM n");
              }),
              HasSubstr("takes too long"));
  EXPECT_EQ(database.Integer("SELECT 1"), 1) << "the others go on";
  EXPECT_THROW(database.Text("SELECT hex(zeroblob(70 << 20))"), Error);
}

TEST_F(StoreFile, WhatIsNoFileIsRefused) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(Refusal([&] { ReadStore store(path_); }), HasSubstr("is a pipe, not a database"));
  EXPECT_THAT(Refusal([&] { RunStore store(path_); }), HasSubstr("is a pipe, not a database"));
  EXPECT_THAT(Refusal([&] { ReadStore store("/dev/zero"); }), HasSubstr("is a device"));
  EXPECT_THAT(Refusal([&] { RunStore store(folder_); }), HasSubstr("is a folder"));
}

TEST_F(StoreFile, APipeBesideAStoreIsNotWaitedAt) {
  {
    RunStore store(path_);
    store.database().Execute("PRAGMA journal_mode = DELETE");
  }
  alarm(60);  // instead of for ever
  for (const char* suffix : {"-journal", "-wal", "-shm"}) {
    const std::string beside = path_ + suffix;
    ASSERT_EQ(mkfifo(beside.c_str(), 0600), 0);
    const std::string said = beside + ": is a pipe";
    EXPECT_THAT(Refusal([&] { ReadStore store(path_); }), HasSubstr(said));
    EXPECT_THAT(Refusal([&] { RunStore store(path_); }), HasSubstr(said));
    std::filesystem::remove(beside);
  }
  alarm(0);
}

TEST_F(StoreFile, ACopyIsNotWrittenThroughALinkAndHasThePermissionsOfItsSource) {
  int64_t run = 0;
  {
    RunStore store(path_);
    run = store.BeginRun({});
  }
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  const std::string victim = folder_ + "/victim", copy = folder_ + "/copy.db";
  std::ofstream(victim).close();  // empty: SQLite would take it for a new database
  for (const pid_t pid : {getpid() - 1, getpid(), getpid() + 1})
    ASSERT_EQ(symlink(victim.c_str(), fmt::format("{}.{}.tmp", copy, pid).c_str()), 0);
  ReadStore(path_).CopyRun(run, copy);
  EXPECT_EQ(std::filesystem::file_size(victim), 0u);
  struct stat info = {};
  ASSERT_EQ(lstat(copy.c_str(), &info), 0);
  EXPECT_TRUE(S_ISREG(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace headrace::collectors
