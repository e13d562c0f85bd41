// The list of recorded runs: what each was limited by, at which rate, and where it belongs to.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::cli {

// Which runs are listed.
struct RunFilter {
  std::string find;              // in name, tags, program, pipeline or number; "": any
  int64_t since_ns = INT64_MIN;  // began at or after this, since 1970
  int64_t until_ns = INT64_MAX;  // began before this
};

// Prints the newest runs, at most `most` lines, oldest first, for a terminal of `width` columns:
// with each the share of time that its trainer waited and what limited it, as its report says, and
// its rate over the whole run. The runs of a comparison are one line unless `unfold`. Lines appear
// as they are known. What was left out is said on standard error. Throws Error as ReadStore.
void PrintRunList(const std::string& database, const RunFilter& filter, size_t most, bool unfold,
                  int width);

// Every run of the filter as one object, schema headrace.runs/1; figures are over whole runs.
std::string RunListJson(const std::string& database, const RunFilter& filter);

// A time from a user's words, since 1970: "7d" or "12h" before now, "2026-11-25" or "2026-11-25
// 10:04" of this machine's clock. Throws Error kUsage.
int64_t ParseWhen(const std::string& text, const std::string& option);

}  // namespace headrace::cli
