// Deduplicated decode: of groups of sparse features, only the unique rows are decoded (RecD, MLSys
// 2023, arXiv 2211.05239). Which rows repeat is found in the encoded bytes (decode/unique_lists.h),
// so a repeated list costs a comparison of its bytes and no decoding, no copy, no memory.
//
// A group takes part when every feature of it in this stripe stores its ids one after the other:
// plain integers, no dictionary, no null elements, weights as floats. Other groups are decoded as
// usual, and may then be deduplicated by their values (batch/dedup_rows.h), with the same result.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "reader/dwrf/grouped_features.h"
#include "reader/dwrf/projection.h"

namespace headrace::reader::dwrf {

// `streams`: the plan's, unpacked. `map_present[f]`: rows that have the map of plan feature f;
// null: all. Throws Error kBadData for a damaged stream.
GroupedFeatures DecodeGroups(const StripePlan& plan,
                             const std::vector<std::span<const uint8_t>>& streams,
                             const std::vector<const PresenceBits*>& map_present,
                             const GroupRequests& requests);

}  // namespace headrace::reader::dwrf
