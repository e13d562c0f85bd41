// The request and the result of deduplicated decode (decode_groups.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/batch/dedup_rows.h"
#include "reader/batch/flat_map_batch.h"

namespace headrace::reader::dwrf {

struct GroupRequest {
  std::string name;
  std::vector<std::string> features;  // by their names in the batch
  uint32_t account = UINT32_MAX;      // for finding its duplicates; UINT32_MAX: none
};

struct GroupRequests {
  DedupScope scope = DedupScope::kNeighbours;
  std::vector<GroupRequest> groups;
  RowHash hash = HashBytes;  // of kBatch
};

// The groups that took part, and their features' columns; column.group is a place in `groups`.
struct GroupedFeatures {
  std::vector<DedupGroup> groups;
  std::vector<SparseColumn> columns;
  std::vector<uint32_t> features;  // by column: index of its feature in the plan
  uint64_t decoded_bytes = 0;
};

}  // namespace headrace::reader::dwrf
