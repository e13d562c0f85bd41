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
  bool cut = false;  // there is more, which a limit left out

  // Index of a column; HR_CHECKs that it exists.
  size_t Column(std::string_view name) const;
};

// How much SQL written by a user may take.
struct UntrustedLimits {
  int64_t ns = 5'000'000'000;
  size_t bytes = 512 << 20;  // of the result
  size_t rows = SIZE_MAX;
  bool cut = false;  // what is beyond bytes is left out, as what is beyond rows is; else refused
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
  // The same for SQL written by a user: anything but reading is refused (kUsage), the statement is
  // stopped after `limits.ns` (kFailure), and a result that is larger is refused (kResources).
  SqlResult QueryUntrusted(const std::string& sql, const UntrustedLimits& limits = {});
  // The id of the run with that id or name (the newest with the name), or of the "latest". Throws
  // Error kBadData naming the runs there are.
  int64_t FindRun(const std::string& run);
  // Copies one run into a new database at `path`, which must not exist.
  void CopyRun(int64_t run_id, const std::string& path);

 private:
  SqlResult Collect(const std::string& sql, const std::vector<SqlValue>& parameters,
                    const UntrustedLimits& limits);
  Database database_;
};

}  // namespace headrace::collectors
