// Reading a recorded run, and what was decided about it, from a database.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/run/run_slice.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

inline constexpr int64_t kMaxStacks = 5000;

// Reads run `run` ("latest", an id, or a name) of the database `path`, read-only. Where the course
// is long, neighbouring intervals are read as one window, those within `detail` finer:
// read_windows.h.
// Throws Error kBadData: not a headrace database, no such run.
RunView LoadRun(const std::string& path, const std::string& run, const RunTimes& detail = {0, 0});

// What a tuner decided about a run.
struct DecisionRow {
  struct Change {
    std::string knob, from_text, to_text;
  };
  // Rates in batches per second.
#define HR_DECISION_COLUMN(type, member, column, help) type member{};
#include "collectors/store/columns.def"
  std::vector<Change> changes;
};
// The decisions in order; also empty where the database is of an earlier version. Throws as
// LoadRun.
std::vector<DecisionRow> LoadDecisions(const std::string& path, const std::string& run);

// Nanoseconds of that run that are recorded by now; 0 where there is no such run. Cheap.
int64_t RecordedNs(const std::string& path, int64_t run_id);

}  // namespace headrace::analysis
