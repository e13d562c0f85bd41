// Which features a model reads. Chosen after the table is written, from the bytes each feature
// really takes there, so that the share of bytes used holds for every codec, scale and layout.
#pragma once
#include <cstdint>
#include <vector>

#include "workloads/feature_set.h"
#include "workloads/spec.h"

namespace headrace::workloads {

// used[i] for features[i]: as many of each kind as ScaledCounts says, drawn with odds that grow
// with stored bytes (high coverage, long lists) just so much that the used features hold
// bytes_used_ratio of `stored_bytes`, then exchanged one by one until the share is as near as the
// features allow.
std::vector<bool> SelectFeatures(const WorkloadSpec& spec, const std::vector<Feature>& features,
                                 const std::vector<uint64_t>& stored_bytes);

// Reads per job of each feature, in jobs of many teams: 1 for the most popular, falling by a power
// of the rank chosen so that hot_bytes_ratio of the bytes serves 80 % of all bytes read. Used
// features rank first.
std::vector<double> Popularity(const WorkloadSpec& spec, const std::vector<bool>& used,
                               const std::vector<uint64_t>& stored_bytes);

}  // namespace headrace::workloads
