// The .sql files of collectors/store, embedded in the binary at build time (cmake/embed_sql.cmake).
#pragma once
#include <string_view>
#include <vector>

namespace headrace::collectors {

struct SqlFile {
  std::string_view name;  // file name without folder and extension: "0001_runs", "operator_summary"
  std::string_view text;
};

// Migrations in order of their number; entry i takes the database from version i to i + 1.
const std::vector<SqlFile>& SchemaFiles();
// View definitions in alphabetical order; each drops and recreates one view.
const std::vector<SqlFile>& ViewFiles();

}  // namespace headrace::collectors
