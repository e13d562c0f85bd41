// GeneratedTable: what a generated table is, with what was drawn for its features.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reader/dwrf/crypto/file_keys.h"
#include "reader/dwrf/layout_cost.h"
#include "reader/schema.h"
#include "workloads/feature_set.h"
#include "workloads/spec.h"

namespace headrace::workloads {

struct GeneratedTable {
  WorkloadSpec spec;
  uint64_t files = 0;
  uint64_t stripes = 0;
  uint64_t file_bytes = 0;
  uint64_t raw_bytes = 0;  // logical size of the values
  reader::Schema schema;
  reader::dwrf::LayoutChoice layout;
  std::vector<Feature> features;
  std::vector<uint64_t> stored_bytes;  // of features[i], in all files, without row indexes
  std::vector<bool> used;              // features[i] is projected
  std::vector<double> popularity;      // of features[i]
  std::string keys_place;              // empty: nothing is encrypted

  uint64_t feature_bytes() const;  // stored bytes of all features
  uint64_t used_bytes() const;     // ... of the projected ones
};

}  // namespace headrace::workloads
