// SessionRows: the rows of one partition and the sessions they come from.
//
// A session is one visit of a user: `rows / rows_per_session` of them, log-normal in size. Each row
// has a time of day; rows lie in time order, or session by session when the table is clustered.
#pragma once
#include <cstdint>
#include <vector>

#include "workloads/spec.h"

namespace headrace::workloads {

struct SessionRow {
  uint32_t session;  // index into session_sizes
  uint32_t visit;    // 0 for the session's first row in time
  int64_t time;      // Unix seconds
};

struct SessionRows {
  std::vector<uint32_t> session_sizes;  // rows of each; they add up to rows.size()
  std::vector<uint64_t> session_keys;   // random, one per session; differ between partitions
  std::vector<SessionRow> rows;         // in table order
};

SessionRows MakeSessionRows(const WorkloadSpec& spec, uint64_t partition, uint64_t num_rows);

}  // namespace headrace::workloads
