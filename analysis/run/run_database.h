// RunDatabase: a database of runs, read by its documented views alone (docs/store.md). Used by the
// units of this folder that contain SQL: read_run, read_windows and read_other_runs.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run/run_view.h"
#include "collectors/store/statement.h"

struct sqlite3_stmt;
struct sqlite3_value;

namespace headrace::analysis {

// One row of a view, by column name; a column that the view lacks reads as null, so that a database
// another program wrote need not have all. Valid during the visit only.
class ViewRow {
 public:
  // The names of a statement's columns. Most readers ask for them in the order of the view.
  struct Columns {
    std::vector<std::string> names;
    size_t next = 0;
  };
  ViewRow(sqlite3_stmt* statement, Columns* columns) : statement_(statement), columns_(columns) {}

  Count Integer(std::string_view name) const;
  int64_t Number(std::string_view name) const { return Integer(name).value_or(0); }
  analysis::Real Real(std::string_view name) const;
  std::string Text(std::string_view name) const { return std::string(View(name)); }
  // Text that is good until the next row.
  std::string_view View(std::string_view name) const;
  // The same by the column's position in the statement, for many rows.
  Count IntegerAt(int column) const;
  int64_t NumberAt(int column) const;  // 0 for null
  // Whether the view has the column, with a value.
  bool Has(std::string_view name) const { return FindValue(name) >= 0; }

 private:
  int Find(std::string_view name) const;       // -1: none
  int FindValue(std::string_view name) const;  // -1: none, or without a value
  sqlite3_stmt* statement_;
  Columns* columns_;
};

// The same of a row of a sweep, by the column's position. Valid during the visit only.
class SweptRow {
 public:
  explicit SweptRow(sqlite3_value** values) : values_(values) {}
  Count IntegerAt(int column) const;
  int64_t NumberAt(int column) const;  // 0 for null

 private:
  sqlite3_value** values_;
};

class RunDatabase {
 public:
  using Use = std::function<void(const ViewRow&)>;
  using Sweeping = std::function<void(const SweptRow&)>;

  // Opens the file for reading; it is never written. Throws Error kBadData, as every call does:
  // there is no such file, it is no database of runs, or it is damaged.
  explicit RunDatabase(const std::string& path);

  // Calls `use` for each row of `sql`, with `run_id` bound to the first parameter if it has one.
  void Each(const std::string& sql, int64_t run_id, const Use& use);
  // The rows of that run, in the order of that column if one is given.
  void EachOf(const std::string& view, int64_t run_id, const std::string& order, const Use& use);
  // The same with those of the columns that the view has: others are then not computed.
  void EachOf(const std::string& view, const std::vector<std::string>& columns, int64_t run_id,
              const std::string& order, const Use& use);
  // The same for very many rows, in half the time: the database hands them over itself, and not one
  // at a time. They come in ascending order of the first column. The view has all of the columns.
  // A `use` that is told `anew` forgets what it was given before: rows came in another order, and
  // all of them come again.
  void Sweep(const std::string& view, const std::vector<std::string>& columns, int64_t run_id,
             const Sweeping& use, const std::function<void()>& anew);
  // Whether there is that view; another program's database may not have it.
  bool Has(const std::string& view);
  // Whether the file says that headrace wrote it: its tables are then found by their keys.
  bool is_ours() const { return is_ours_; }

 private:
  struct Visitor;
  bool SweepOnce(const std::string& sql, int64_t run_id, const Sweeping& use);
  [[noreturn]] void Fail();

  collectors::Database database_;
  bool is_ours_;
};

}  // namespace headrace::analysis
