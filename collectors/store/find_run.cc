#include "collectors/store/find_run.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace headrace::collectors {
namespace {

std::optional<int64_t> TryFindRun(Database& database, const std::string& run) {
  if (run == "latest") {
    Statement latest(database, "SELECT MAX(run_id) FROM runs");
    latest.Step();
    return latest.optional_integer(0);
  }
  Statement named(database, "SELECT MAX(run_id) FROM runs WHERE name = ?1");
  named.Bind(std::string_view(run));
  named.Step();
  if (auto id = named.optional_integer(0)) return id;
  if (!run.empty() && run.size() < 18 && run.find_first_not_of("0123456789") == run.npos) {
    Statement by_id(database, "SELECT run_id FROM runs WHERE run_id = ?1");
    by_id.Bind(int64_t{std::strtoll(run.c_str(), nullptr, 10)});
    if (by_id.Step()) return by_id.integer(0);
  }
  return std::nullopt;
}

}  // namespace

int64_t FindRunOrThrow(Database& database, const std::string& run) {
  if (auto id = TryFindRun(database, run)) return *id;
  std::string names;
  Statement all(database, "SELECT run_id, name FROM runs ORDER BY run_id DESC LIMIT 6");
  while (all.Step()) {
    names += (names.empty() ? "" : ", ") + std::to_string(all.integer(0)) + " " + all.text(1);
  }
  if (names.empty()) {
    throw Error(ExitCode::kBadData, "no runs are recorded here", database.path(),
                "record one with: headrace run PIPELINE, or headrace profile -p PID");
  }
  throw Error(ExitCode::kBadData, fmt::format("no run '{}'", run), database.path(),
              "newest runs: " + names);
}

}  // namespace headrace::collectors
