// Popularity: which features past jobs read, from a co-read log; and which of them a tier with a
// given budget should keep. The log has one JSON object a line, a job each; the weight may be left
// out:
//
//   {"table": "rm1", "features": ["sparse:17", "dense:3"], "weight": 2}
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reader/dwrf/projection.h"

namespace headrace::reader {

// Features by the total weight of the jobs that read them, most popular first; equal ones by name.
// Throws Error kBadData naming a line that is not such an object.
std::vector<std::string> PopularFeatures(const std::string& path);
std::vector<std::string> PopularFeaturesOf(const std::string& text, const std::string& path);

// The stored streams of one feature of a plan, as indices into StripePlan::streams.
std::vector<uint32_t> StreamsOf(const dwrf::FeaturePlan& feature);

// Goes through `popular` in order and takes the plan's features whose streams still fit into
// `budget_bytes`, if the whole table has `stripes` times the bytes of this stripe.
std::set<std::string> FeaturesThatFit(const std::vector<std::string>& popular,
                                      const dwrf::StripePlan& plan, double stripes,
                                      uint64_t budget_bytes);

}  // namespace headrace::reader
