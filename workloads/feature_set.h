// FeatureSet: the features of one table and what each looks like, fixed by the spec and its seed
// before any row is made.
//
// Means over features equal the spec's by construction: values are spread over the quantiles of
// their distribution and then shifted to the exact mean. Coverage and list length are uncorrelated,
// so the mean length is the same over features and over lists.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/batch/flat_map_batch.h"
#include "workloads/distributions.h"
#include "workloads/spec.h"

namespace headrace::workloads {

enum class IdClass : uint8_t {
  kSmall,   // 0..16383, Zipf 1.1
  kMedium,  // 27 bits, Zipf 1.05 over 100 M ids
  kLarge,   // 63 bits, Zipf 1.05 over 500 M ids
};
const char* IdClassName(IdClass id_class);  // "small", "medium", "large"

struct Feature {
  reader::FeatureKind kind = reader::FeatureKind::kDense;
  uint32_t key = 0;         // in its map column, from 1
  uint64_t random_key = 0;  // everything random about it starts here
  double coverage = 0;
  double repeat = 0;  // chance that its value repeats from one row of a session to the next
  QuantileTable::Shape shape = QuantileTable::Shape::kNormal;  // dense: its distribution
  double mean_length = 0;                                      // sparse, in ids; at least 1
  IdClass ids = IdClass::kSmall;
  bool history = false;  // sparse: a new value puts one id in front and keeps the rest
};

// "dense", "sparse", "weighted": the map column that holds the features of a kind.
const char* ColumnName(reader::FeatureKind kind);
// "sparse:17"
std::string FeatureColumn(const Feature& feature);

// Dense, then sparse, then weighted features, each by key.
std::vector<Feature> MakeFeatures(const WorkloadSpec& spec);

}  // namespace headrace::workloads
