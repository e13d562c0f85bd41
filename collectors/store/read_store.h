// ReadStore: a run store opened to be read, by our own queries and by those a user wrote.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "collectors/store/statement.h"

namespace headrace::collectors {

using SqlValue = std::variant<std::monostate, int64_t, double, std::string>;  // monostate: NULL
struct SqlResult {
  std::vector<std::string> columns;
  std::vector<std::vector<SqlValue>> rows;

  // Index of a column; HR_CHECKs that it exists.
  size_t Column(std::string_view name) const;
};

class ReadStore {
 public:
  // Opens read-only, and never changes the file. A store of an earlier version reads as if it were
  // of this one; runs that a killed program left behind read as interrupted. Works while a
  // collector writes. Throws Error: kBadData when there is no such file, or it is something else,
  // damaged, or of a later version.
  explicit ReadStore(const std::string& path);

  // Runs one SELECT with parameters ?1, ?2, ... Throws Error kBadData with SQLite's message.
  SqlResult Query(const std::string& sql, const std::vector<SqlValue>& parameters = {});
  // The same for SQL written by a user: anything but reading is refused (kUsage), and the statement
  // is stopped after `limit_ns`.
  SqlResult QueryUntrusted(const std::string& sql, int64_t limit_ns = 5'000'000'000);
  // The id of the run with that id or name (the newest with the name), or of the "latest". Throws
  // Error kBadData naming the runs there are.
  int64_t FindRun(const std::string& run);
  // Copies one run into a new database at `path`, which must not exist.
  void CopyRun(int64_t run_id, const std::string& path);

 private:
  SqlResult Collect(const std::string& sql, const std::vector<SqlValue>& parameters,
                    size_t limit_bytes);
  Database database_;
};

}  // namespace headrace::collectors
